package redis

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
)

// maxAmount bounds the amounts of one call, about nine million dollars: the scripts
// compare them in Lua's numbers.
const maxAmount plugins.Nanodollars = 1 << 53

// Ledger is one node's use of the credits of a store.
type Ledger struct {
	client *client
	node   string
	file   file

	generation *generation
	processes  *processes // used by Settle alone
	maxValues  int        // bound of the values that a budget without an end has

	// mu is never held while Redis is waited for.
	mu         sync.Mutex
	unreleased map[uuid.UUID]*reservation // reservations of this node that are not released
	waiting    []*reservation             // what Redis has not taken, the oldest first
	lent       map[string]plugins.Nanodollars
	closed     bool

	renewFailed time.Time // the last renewal of the lease that failed

	flushing sync.Mutex // by who sends what waits; it comes before all other locks

	stop context.CancelFunc
	done chan struct{}
}

// reservation is what this node knows of a reservation.
type reservation struct {
	credits.Reservation
	node string // the process that has made it, "" for a line of an earlier version
	lent bool   // Redis does not have it

	// turn is held by whoever sends to Redis. It comes before the ledger's lock, which
	// guards the rest.
	turn    sync.Mutex
	charged plugins.Nanodollars
	// What Redis may not know, in the order in which it is sent: unsure, that the attempt
	// to reserve in Redis, which got no answer, has failed; unpaid, what was charged; and
	// released, that the reservation was released. Each is sent again until Redis has
	// answered, and only then the next: a charge that was repeated after the release of
	// its reservation would be taken twice.
	unsure, unpaid, released bool
	filed                    bool // the file has the charge, but no line that Redis took it
}

func newLedger(c *client) (*Ledger, error) {
	l := &Ledger{
		client: c, node: uuid.NewString(), maxValues: credits.MaxValues, done: make(chan struct{}), file: file{path: c.File},
		unreleased: make(map[uuid.UUID]*reservation), lent: make(map[string]plugins.Nanodollars),
	}
	var err error
	if l.generation, err = openGeneration(c.File + ".generation"); err != nil {
		return nil, unavailable(err)
	}
	if l.processes, err = openProcesses(c.File+".processes", l.node); err != nil {
		return nil, unavailable(err)
	}
	if l.waiting, err = l.file.open(); err != nil {
		return nil, unavailable(err)
	}
	var ctx context.Context
	ctx, l.stop = context.WithCancel(context.Background())
	go l.run(ctx)
	return l, nil
}

func unavailable(err error) error { return fmt.Errorf("%w: %w", credits.ErrUnavailable, err) }

// Grant implements credits.Ledger.
func (l *Ledger) Grant(ctx context.Context, org string, amount plugins.Nanodollars) error {
	return l.grant(ctx, org, amount, "")
}

// Seed implements credits.Ledger.
func (l *Ledger) Seed(ctx context.Context, org string, amount plugins.Nanodollars) error {
	return l.grant(ctx, org, amount, "first")
}

func (l *Ledger) grant(ctx context.Context, org string, amount plugins.Nanodollars, first string) error {
	if l.isClosed() {
		return unavailable(os.ErrClosed)
	}
	_, err := l.script(ctx, grant, []string{l.org(org), l.client.key("orgs")}, number(amount), number(-amount), org, first)
	if err != nil && strings.Contains(err.Error(), "overflow") {
		return fmt.Errorf("credits: %s cannot be granted %s: the sum is out of range", org, amount)
	}
	return err
}

// Reserve implements credits.Ledger. While Redis cannot be reached, it reserves from
// the allowance of Options.
func (l *Ledger) Reserve(ctx context.Context, r credits.Reservation) error {
	if r.Amount < 0 || max(r.Amount, r.Lost) > maxAmount {
		return fmt.Errorf("credits: cannot reserve %s: want 0 to %s", max(r.Amount, r.Lost), maxAmount)
	}
	if len(r.Holds) == 0 {
		return credits.ErrNoAccount
	}
	l.mu.Lock()
	closed, entry, failing := l.closed, l.unreleased[r.ID], len(l.waiting) > 0
	l.mu.Unlock()
	switch {
	case closed:
		return unavailable(os.ErrClosed)
	case entry != nil && !entry.Equal(r):
		return fmt.Errorf("credits: the reservation %s is in use for %s of %s", r.ID, entry.Amount, entry.Org)
	case entry != nil:
		return nil
	}
	entry = &reservation{Reservation: r, node: l.node}
	var err error
	switch {
	case failing && !l.client.answers.Load(): // each call would wait for the calls before it
		err = unavailable(errNoAnswer)
	case failing: // nothing is spent before what was spent is written
		err = l.flush(ctx)
	}
	lasts := ""
	if err == nil && r.Until > 0 {
		lasts, err = "1", l.outlive(ctx, r.Until)
	}
	if err == nil {
		var n int64
		n, err = l.script(ctx, reserve, l.stepKeys(entry), entry.args(r.Org, number(r.Amount), number(-r.Amount), number(r.Lost), strconv.Itoa(2*l.maxValues), entry.encode(), lasts)...)
		switch {
		case err != nil:
			entry.unsure = !forgotten(err)
		case n > 0:
			return l.insufficient(ctx, r.Holds[n-1], r.Amount)
		case n < -1:
			return &credits.FullError{Account: r.Holds[-n-2].Account}
		case n < 0:
			return fmt.Errorf("credits: the reservation %s is in use for something else", r.ID)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if entry.unsure {
		l.waiting = append(l.waiting, entry)
	}
	if err != nil {
		if err := l.lend(entry, err); err != nil {
			return err
		}
	}
	if r.Until == 0 {
		l.unreleased[r.ID] = entry
	}
	return nil
}

// lend reserves from the allowance, because Redis has failed with err. l.mu is locked.
func (l *Ledger) lend(entry *reservation, err error) error {
	if forgotten(err) || entry.Until > 0 || l.lent[entry.Org]+entry.Amount > l.client.Allowance {
		entry.released = true
		return err
	}
	entry.lent, entry.unpaid, entry.filed = true, true, true
	if failed := l.file.add(entry); failed != nil {
		entry.lent, entry.unpaid, entry.filed, entry.released = false, false, false, true
		return errors.Join(err, unavailable(failed))
	}
	if !entry.unsure {
		l.waiting = append(l.waiting, entry)
	}
	l.lent[entry.Org] += entry.Amount
	l.client.Lent(entry.Amount)
	return nil
}

// End implements credits.Ledger.
func (l *Ledger) End(ctx context.Context, id uuid.UUID, total plugins.Nanodollars) ([]credits.Account, error) {
	if total > maxAmount {
		return nil, fmt.Errorf("credits: cannot charge %s: want at most %s", total, maxAmount)
	}
	if l.isClosed() {
		return nil, unavailable(os.ErrClosed)
	}
	reply, err := l.ask(ctx, end, []string{l.client.key("call:" + id.String())}, number(total), l.org(""))
	if err != nil {
		return nil, err
	}
	text, err := reply.AsBytes()
	switch {
	case err != nil:
		return nil, unavailable(err)
	case len(text) == 0:
		return nil, fmt.Errorf("%w: %s", credits.ErrNoReservation, id)
	}
	var k settlement
	return k.Accounts, json.Unmarshal(text, &k)
}

// insufficient is the error of a reservation that an account does not cover.
func (l *Ledger) insufficient(ctx context.Context, h credits.Hold, amount plugins.Nanodollars) error {
	b, freeAt, err := l.standing(ctx, h, amount)
	if err != nil {
		return err
	}
	return &credits.InsufficientError{Balance: b, FreeAt: freeAt}
}

// standing is Hold.Standing.
func (l *Ledger) standing(ctx context.Context, h credits.Hold, amount plugins.Nanodollars) (credits.Balance, storage.Timestamp, error) {
	list, err := l.balances(ctx, slices.Collect(h.Steps))
	if err != nil {
		return credits.Balance{}, 0, err
	}
	b, freeAt := h.Standing(amount, func(credits.Account) (b credits.Balance) {
		b, list = list[0], list[1:]
		return b
	})
	return b, freeAt, nil
}

// Charge implements credits.Ledger.
func (l *Ledger) Charge(ctx context.Context, r credits.Reservation, total plugins.Nanodollars) error {
	if total > maxAmount {
		return fmt.Errorf("credits: cannot charge %s: want at most %s", total, maxAmount)
	}
	l.mu.Lock()
	entry := l.unreleased[r.ID]
	switch {
	case l.closed:
		l.mu.Unlock()
		return unavailable(os.ErrClosed)
	case entry == nil:
		l.mu.Unlock()
		return fmt.Errorf("%w: %s", credits.ErrNoReservation, r.ID)
	}
	entry.charged, entry.unpaid = total, true
	l.mu.Unlock()
	return l.send(ctx, entry)
}

// Release implements credits.Ledger.
func (l *Ledger) Release(ctx context.Context, r credits.Reservation) error {
	l.mu.Lock()
	entry := l.unreleased[r.ID]
	switch {
	case l.closed:
		l.mu.Unlock()
		return unavailable(os.ErrClosed)
	case entry == nil:
		l.mu.Unlock()
		return nil
	}
	delete(l.unreleased, r.ID)
	entry.released = true
	l.mu.Unlock()
	return l.send(ctx, entry)
}

// Balance implements credits.Ledger.
func (l *Ledger) Balance(ctx context.Context, of credits.Hold) (credits.Balance, error) {
	b, _, err := l.standing(ctx, of, 0)
	return b, err
}

// Balances implements credits.Ledger.
func (l *Ledger) Balances(ctx context.Context) ([]credits.Balance, error) {
	var orgs []string
	err := l.client.do(ctx, func(ctx context.Context, server rueidis.Client) (err error) {
		orgs, err = server.Do(ctx, server.B().Smembers().Key(l.client.key("orgs")).Build()).AsStrSlice()
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(orgs)
	accounts := make([]credits.Account, len(orgs))
	for i, org := range orgs {
		accounts[i].Org = org
	}
	return l.balances(ctx, accounts)
}

// Counted implements credits.Ledger.
func (l *Ledger) Counted(ctx context.Context, of credits.Hold) ([]credits.Balance, error) {
	if l.isClosed() {
		return nil, unavailable(os.ErrClosed)
	}
	var list []credits.Balance
	err := l.client.do(ctx, func(ctx context.Context, server rueidis.Client) error {
		var commands rueidis.Commands
		for step := range of.Steps {
			commands = append(commands, server.B().Hgetall().Key(l.account(step)).Build())
		}
		for _, reply := range server.DoMulti(ctx, commands...) {
			fields, err := reply.AsStrMap()
			if err == nil {
				list, err = appendCounted(list, fields)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return of.ByValue(list), err
}

// appendCounted appends the balances of an account's hash, by value.
func appendCounted(list []credits.Balance, fields map[string]string) ([]credits.Balance, error) {
	for field, text := range fields {
		value, ok := strings.CutPrefix(field, "available:")
		if !ok {
			continue
		}
		available, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, err
		}
		spent, _ := strconv.ParseInt(fields["spent:"+value], 10, 64) // nothing is 0
		list = append(list, credits.Balance{Account: credits.Account{Value: value}, Spent: plugins.Nanodollars(spent), Reserved: plugins.Nanodollars(-spent - available)})
	}
	return list, nil
}

func (l *Ledger) balances(ctx context.Context, accounts []credits.Account) ([]credits.Balance, error) {
	if l.isClosed() {
		return nil, unavailable(os.ErrClosed)
	}
	if err := l.meet(ctx); err != nil {
		return nil, err
	}
	list := make([]credits.Balance, len(accounts))
	err := l.client.do(ctx, func(ctx context.Context, server rueidis.Client) error {
		commands := make(rueidis.Commands, len(accounts))
		for i, of := range accounts {
			commands[i] = server.B().Hmget().Key(l.account(of)).Field("granted", "spent"+suffix(of), "available"+suffix(of)).Build()
		}
		for i, reply := range server.DoMulti(ctx, commands...) {
			fields, err := reply.ToArray()
			if err != nil {
				return err
			}
			var sums [3]int64 // null is 0
			for j := range fields {
				if sums[j], err = fields[j].AsInt64(); err != nil && !rueidis.IsRedisNil(err) {
					return err
				}
			}
			list[i] = credits.Balance{
				Account: accounts[i], Granted: plugins.Nanodollars(sums[0]), Spent: plugins.Nanodollars(sums[1]),
				Reserved: plugins.Nanodollars(sums[0] - sums[1] - sums[2]),
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Close implements credits.Ledger. What Redis has not taken waits in the file.
func (l *Ledger) Close(ctx context.Context) error {
	l.mu.Lock()
	closed := l.closed
	l.closed = true
	l.mu.Unlock()
	if closed {
		return nil
	}
	l.stop()
	<-l.done
	err := l.flush(ctx)
	if err == nil {
		err = l.end(ctx)
	}
	return errors.Join(err, l.file.Close())
}

func (l *Ledger) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// flush sends Redis all waiting reservations at once, and returns the error of any. Nothing
// is spent until flush is done, so it must not take a round trip for each call that was in
// flight when Redis was lost.
func (l *Ledger) flush(ctx context.Context) error {
	l.flushing.Lock()
	defer l.flushing.Unlock()
	l.mu.Lock()
	waiting := slices.Clone(l.waiting)
	l.mu.Unlock()
	sent := make(chan error, len(waiting))
	for _, r := range waiting {
		go func() { sent <- l.send(ctx, r) }()
	}
	var failed error
	for range waiting {
		failed = cmp.Or(<-sent, failed)
	}
	return failed
}

// send gives Redis what this node does with a reservation, or keeps the reservation
// waiting. It finishes what it began even when ctx ends.
func (l *Ledger) send(ctx context.Context, r *reservation) error {
	ctx = context.WithoutCancel(ctx)
	r.turn.Lock()
	defer r.turn.Unlock()
	for {
		l.mu.Lock()
		unsure, unpaid, released, charged := r.unsure, r.unpaid, r.released, r.charged
		if !unsure && !unpaid && !released {
			err := l.sent(r)
			l.mu.Unlock()
			return err
		}
		l.mu.Unlock()
		var err error
		if unpaid && !unsure {
			_, err = l.script(ctx, charge, l.keys(r), r.args(l.chargeArgs(r, charged)...)...)
		} else {
			if unsure { // nothing of the reservation is charged in Redis
				charged = 0
			}
			_, err = l.script(ctx, release, l.keys(r), r.args(number(charged))...)
		}
		l.mu.Lock()
		switch {
		case err != nil:
			if !slices.Contains(l.waiting, r) {
				l.waiting = append(l.waiting, r)
			}
			if unpaid {
				r.filed = true
				err = errors.Join(err, l.file.add(r))
			}
		case unsure:
			r.unsure = false
		case unpaid:
			r.unpaid = r.charged != charged
			if r.filed && !r.unpaid { // before the release: later the charge could be taken again
				r.filed = false
				err = l.file.add(r)
			}
		default:
			r.released = false
		}
		l.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// chargeArgs returns the arguments of the script that makes charged what a call has cost so far.
func (l *Ledger) chargeArgs(r *reservation, charged plugins.Nanodollars) []string {
	args := []string{r.Org, number(charged), "", "", ""}
	if r.lent {
		args[2], args[3] = number(r.Lost), r.encode()
	}
	if r.node != "" && r.node != l.node {
		args[4] = "1"
	}
	return args
}

// sent takes a reservation out of what waits. It needs mu.
func (l *Ledger) sent(r *reservation) error {
	was := len(l.waiting)
	l.waiting = slices.DeleteFunc(l.waiting, func(other *reservation) bool { return other == r })
	if was == 0 || len(l.waiting) > 0 {
		return nil
	}
	clear(l.lent) // what was lent is charged, or was never spent
	return l.file.clear()
}

func (l *Ledger) org(name string) string { return l.client.key("org:" + name) }

// account is the hash of an account. The values of a budget in a window share a hash.
func (l *Ledger) account(of credits.Account) string {
	if of.Budget == "" {
		return l.org(of.Org)
	}
	return l.client.key(fmt.Sprintf("budget:%d:%s:%s", of.Begins, of.Budget, of.Org))
}

// suffix is the suffix of the account's fields in the account's hash.
func suffix(of credits.Account) string {
	if of.Budget == "" {
		return ""
	}
	return ":" + of.Value
}

func (l *Ledger) reservations(node string) string { return l.client.key("node:" + node) }

func (l *Ledger) keys(r *reservation) []string {
	node := cmp.Or(r.node, l.node)
	if r.Until > 0 {
		node = nodeUntil(r.Until)
	}
	keys := []string{l.client.key("call:" + r.ID.String()), l.reservations(node)}
	for _, h := range r.Holds {
		keys = append(keys, l.account(h.Account))
	}
	return keys
}

// stepKeys are the keys of a reservation, followed by the accounts of the earlier steps of
// rolling windows.
func (l *Ledger) stepKeys(r *reservation) []string {
	keys := l.keys(r)
	for _, h := range r.Holds {
		for of := range h.Steps {
			if of != h.Account {
				keys = append(keys, l.account(of))
			}
		}
	}
	return keys
}

// args are the arguments of a script, followed by the arguments of the accounts.
func (r *reservation) args(args ...string) []string {
	for _, h := range r.Holds {
		limit, earlier := "", -1
		if h.Budget != "" {
			limit = number(min(h.Limit, maxAmount))
		}
		for range h.Steps {
			earlier++
		}
		args = append(args, suffix(h.Account), limit, strconv.FormatInt(int64(h.Forgotten()), 10), strconv.Itoa(earlier))
	}
	return args
}

// Interface guards
var _ credits.Ledger = (*Ledger)(nil)
