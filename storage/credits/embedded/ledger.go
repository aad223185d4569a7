// Package embedded keeps the credits and the budgets of one process in a file. A reservation is
// in the file before Reserve returns, and a charge before Charge returns, so that a crash loses
// neither. The process is the lease of its reservations: Settle ends the reservations of the
// process before.
//
// The owner of the directory keeps other processes out.
package embedded

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
	"github.com/weirhq/weir/storage/journal"
)

// Ledger is the open ledger of a directory.
type Ledger struct {
	// turn is held by whoever writes to the file. It comes before mu.
	turn   sync.Mutex
	file   *file
	detach func() // ends the journal's syncs, nil without a journal

	// mu is never held while the disk is waited for.
	mu           sync.Mutex
	accounts     map[credits.Account]map[string]*credits.Balance // by the account without a value, and by the value
	maxValues    int                                             // of values of a budget without an end
	reservations map[uuid.UUID]*reservation
	// charged has the charges of the file, by reservation, until Recover.
	charged map[uuid.UUID]plugins.Nanodollars
	// generation is given to each charge: the balances of all later generations have the charge. It
	// is above the file's after a try to replace the file.
	generation uint64
	until      storage.Timestamp // the first Until of all reservations, or an earlier time
	unsettled  []*reservation    // left by the process before, until Settle
	lines      []byte            // lines that are not in the file yet
	spare      []byte            // memory of written lines, to use again
	failing    bool              // the file did not take the lines that came before
	closed     bool
}

type reservation struct {
	credits.Reservation
	charged plugins.Nanodollars
	// generation is that of the latest charge of this process.
	generation uint64
	// released is true until Recover if the call has ended, and its record may be lost.
	released bool
}

// entry returns an entry of the reservation. All accounts share the entry, so that a crash
// leaves it in all accounts or in no account.
func (r *reservation) entry() entry {
	e := entry{Org: r.Org, ID: r.ID}
	if len(r.Holds) > 1 || r.Holds[0].Budget != "" {
		e.Accounts = r.Accounts()
	}
	return e
}

// reserved is what is reserved and not charged.
func (r *reservation) reserved() plugins.Nanodollars { return max(r.Amount-r.charged, 0) }

// FileName is the name of the file in the journal's directory.
const FileName = "credits"

// Open opens the ledger of the directory, or begins a new ledger. The directory must exist. j is
// the journal in the directory, which knows how far the file must reach, and syncs it; nil if
// nothing does. The error says what to do when the file has been deleted, replaced by an older
// file, or damaged: a ledger never forgets charges in silence. What a crash cut short is
// dropped, and logged.
func Open(dir string, j *journal.Journal, logger *zap.Logger) (*Ledger, error) {
	return open(&file{path: filepath.Join(dir, FileName), journal: j, minLimit: 1 << 20, logger: logger, sync: (*os.File).Sync})
}

// Exists reports whether a directory has a ledger.
func Exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, FileName))
	return err == nil
}

// Check reads the ledger of a directory, and changes nothing. was is how far the ledger must
// reach, zero if it need not be there. The error says what is wrong with the ledger; it is nil
// for a directory without a ledger.
func Check(dir string, was journal.Reach) error {
	f := &file{path: filepath.Join(dir, FileName)}
	err := f.read(os.O_RDONLY, func(entry) {})
	if f.f != nil {
		err = errors.Join(err, f.f.Close())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return journal.CompareReach(dir, FileName, f.reach(), was)
}

// Forget makes the ledger of a directory that no process uses take its file as it is: whatever
// the file beside it says, nothing is missing.
func Forget(dir string) error {
	err := os.Remove((&file{path: filepath.Join(dir, FileName)}).statePath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func open(f *file) (*Ledger, error) {
	l := &Ledger{file: f, maxValues: credits.MaxValues, accounts: make(map[credits.Account]map[string]*credits.Balance), reservations: make(map[uuid.UUID]*reservation), charged: make(map[uuid.UUID]plugins.Nanodollars)}
	if err := f.open(l.load); err != nil {
		return nil, unavailable(err)
	}
	l.generation = f.state.Generation
	for _, stored := range l.reservations {
		l.hold(stored, stored.reserved())
	}
	if f.journal != nil {
		f.journal.Note(FileName, f.reach())
		l.detach = f.journal.Attach(FileName, l.sync)
	}
	return l, nil
}

// sync makes what was written survive a power cut, and returns how far the file then reaches. No
// lock is held while the disk works.
func (l *Ledger) sync() (is journal.Reach, ok bool) {
	l.mu.Lock()
	failing := l.failing
	l.mu.Unlock()
	if failing && l.flush() != nil {
		return is, false
	}
	l.turn.Lock()
	f, is := l.file.f, l.file.reach()
	synced := l.file.synced == is.Size
	l.turn.Unlock()
	if f == nil || synced {
		return is, f != nil
	}
	if err := l.file.sync(f); err != nil {
		if !errors.Is(err, os.ErrClosed) { // else its balances replaced it
			l.file.logger.Error("charges may not survive a power cut", zap.String("file", l.file.path), zap.Error(err))
		}
		return is, false
	}
	l.turn.Lock()
	defer l.turn.Unlock()
	if l.file.state.Generation == is.Generation {
		l.file.synced = is.Size
	}
	return is, true
}

// load applies a line of the file.
func (l *Ledger) load(e entry) {
	stored := l.reservations[e.ID]
	if e.Lost == 0 && (!e.Released || e.Charge != 0) {
		l.apply(e)
	}
	switch {
	case e.ID == uuid.Nil:
	case e.Charged != 0:
		l.charged[e.ID] = e.Charged
	default:
		l.charged[e.ID] += e.Charge
	}
	switch {
	case e.Lost > 0:
		stored = &reservation{Reservation: credits.Reservation{ID: e.ID, Org: e.Org, Amount: e.Lost, Lost: e.Lost, Until: e.Until}, charged: e.Charged}
		for _, of := range e.accounts() {
			stored.Holds = append(stored.Holds, credits.Hold{Account: of})
		}
		if e.Call != nil {
			stored.Call = *e.Call
		}
		l.reservations[e.ID] = stored
		l.unsettled = append(l.unsettled, stored)
	case stored != nil && e.Released && stored.charged > 0 && l.file.size >= l.file.certain:
		stored.Amount, stored.Lost, stored.released = stored.charged, stored.charged, true
	case stored != nil && e.Released:
		delete(l.reservations, e.ID)
	case stored != nil:
		stored.charged += e.Charge
	}
}

// Recover implements credits.Recoverer.
func (l *Ledger) Recover(context.Context) error {
	charged := l.charged
	l.charged = nil
	if l.file.journal == nil {
		return nil
	}
	type version struct {
		credits.Charge
		end storage.EndState
	}
	recorded := make(map[uuid.UUID]version) // the last version of each
	err := l.file.journal.Charges(l.file.state.Counted, func(end storage.EndState, charges map[string]string) {
		for name, text := range charges {
			var c credits.Charge
			id, err := uuid.Parse(name)
			if err == nil {
				err = json.Unmarshal([]byte(text), &c)
			}
			if err != nil {
				l.file.logger.Error("a charge in the journal cannot be read", zap.String("reservation", name), zap.Error(err))
				continue
			}
			recorded[id] = version{c, end}
		}
	})
	if err != nil {
		return unavailable(err)
	}
	l.mu.Lock()
	again := 0
	for id, c := range recorded {
		e := entry{Org: c.Org, ID: id, Accounts: c.Accounts, Charge: c.Total - charged[id]}
		if e.Charge <= 0 || c.Generation < l.file.state.Generation { // the balances have it
			continue
		}
		again++
		l.apply(e)
		if stored := l.reservations[id]; stored != nil {
			reserved := stored.reserved()
			stored.charged = c.Total
			l.hold(stored, stored.reserved()-reserved)
		}
		l.lines = appendLine(l.lines, e)
	}
	for id, stored := range l.reservations {
		if !stored.released {
			continue
		}
		stored.released = false
		if c, there := recorded[id]; there && c.end != storage.Interrupted {
			delete(l.reservations, id)
		} else {
			l.lines = appendLine(l.lines, stored.line()) // Settle looks for its record
		}
	}
	l.mu.Unlock()
	if again > 0 {
		l.file.logger.Warn("calls are charged again, because a power cut has taken their charges", zap.Int("calls", again))
	}
	return l.flush()
}

// Settle implements credits.Ledger. What the process before has reserved stays set aside until
// Settle.
func (l *Ledger) Settle(ctx context.Context, total func(r credits.Reservation, charged plugins.Nanodollars) (plugins.Nanodollars, error)) (settled bool, failed error) {
	unsettled := l.unsettled
	l.unsettled = nil
	for _, stored := range unsettled {
		l.mu.Lock()
		open, charged := l.reservations[stored.ID] == stored, stored.charged
		l.mu.Unlock()
		if !open || stored.Until > 0 {
			continue
		}
		n, err := total(stored.Reservation, charged)
		if err == nil {
			err = errors.Join(l.Charge(ctx, stored.Reservation, n), l.Release(ctx, stored.Reservation))
		}
		if err != nil {
			l.unsettled, failed = append(l.unsettled, stored), errors.Join(failed, err)
		}
	}
	return len(l.unsettled) == 0, failed
}

func unavailable(err error) error { return fmt.Errorf("%w: %w", credits.ErrUnavailable, err) }

func (l *Ledger) apply(e entry) {
	for _, of := range e.accounts() {
		a := l.account(of)
		a.Granted += e.Grant
		a.Spent += e.Charge
	}
}

// account is the balance of an account, which begins with nothing.
func (l *Ledger) account(of credits.Account) *credits.Balance {
	a := l.lookup(of)
	if a == nil {
		a = &credits.Balance{Account: of}
		all := shared(of)
		if l.accounts[all] == nil {
			l.accounts[all] = make(map[string]*credits.Balance)
		}
		l.accounts[all][of.Value] = a
	}
	return a
}

// known is the balance of an account, nil if the account has nothing. It needs mu.
func (l *Ledger) lookup(of credits.Account) *credits.Balance { return l.accounts[shared(of)][of.Value] }

// shared is an account without its value.
func shared(of credits.Account) credits.Account {
	of.Value = ""
	return of
}

// Grant implements credits.Ledger.
func (l *Ledger) Grant(_ context.Context, org string, amount plugins.Nanodollars) error {
	return l.grant(org, amount, false)
}

// Seed implements credits.Ledger.
func (l *Ledger) Seed(_ context.Context, org string, amount plugins.Nanodollars) error {
	return l.grant(org, amount, true)
}

func (l *Ledger) grant(org string, amount plugins.Nanodollars, first bool) error {
	l.turn.Lock()
	defer l.turn.Unlock()
	l.mu.Lock()
	a, closed := l.lookup(credits.Account{Org: org}), l.closed
	var granted plugins.Nanodollars // only the turn's owner changes it
	if a != nil {
		granted = a.Granted
	}
	l.mu.Unlock()
	switch {
	case closed:
		return unavailable(os.ErrClosed)
	case a != nil && first:
		return nil
	case a != nil && (amount > 0 && granted > math.MaxInt64-amount || amount < 0 && granted < math.MinInt64-amount):
		return fmt.Errorf("credits: %s was granted %s, and cannot be granted %s more: the sum is out of range", org, granted, amount)
	}
	l.compact()
	e := entry{Org: org, Grant: amount}
	if err := l.file.append(appendLine(nil, e), true); err != nil {
		return unavailable(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.apply(e)
	return nil
}

// Reserve implements credits.Ledger.
func (l *Ledger) Reserve(ctx context.Context, r credits.Reservation) error {
	if err := l.reserve(r); err != nil || r.Lost == 0 {
		return err
	}
	if err := l.flush(); err != nil {
		_ = l.Release(ctx, r) // the disk refuses this line, too, for now
		return err
	}
	return nil
}

func (l *Ledger) reserve(r credits.Reservation) error {
	if r.Amount < 0 {
		return fmt.Errorf("credits: cannot reserve %s: want 0 or more", r.Amount)
	}
	if len(r.Holds) == 0 {
		return credits.ErrNoAccount
	}
	l.mu.Lock()
	if l.failing {
		l.mu.Unlock()
		if err := l.flush(); err != nil {
			return err
		}
		l.mu.Lock()
	}
	defer l.mu.Unlock()
	if l.closed {
		return unavailable(os.ErrClosed)
	}
	l.expire(storage.Millis(time.Now()))
	if stored := l.reservations[r.ID]; stored != nil {
		if !stored.Equal(r) {
			return fmt.Errorf("credits: the reservation %s is in use for %s of %s", r.ID, stored.Amount, stored.Org)
		}
		return nil
	}
	for _, h := range r.Holds {
		b, freeAt := h.Standing(r.Amount, l.balance)
		if h.Budget == "" && l.lookup(h.Account) == nil || b.Available() < r.Amount {
			return &credits.InsufficientError{Balance: b, FreeAt: freeAt}
		}
	}
	for _, h := range r.Holds {
		if h.Endless() && l.lookup(h.Account) == nil && len(l.accounts[shared(h.Account)]) >= l.maxValues {
			return &credits.FullError{Account: h.Account}
		}
	}
	for _, h := range r.Holds {
		l.account(h.Account).Reserved += r.Amount
	}
	stored := &reservation{Reservation: r}
	l.reservations[r.ID] = stored
	if r.Lost > 0 {
		l.lines = appendLine(l.lines, stored.line())
	}
	if r.Until > 0 {
		l.until = min(l.until, r.Until)
	}
	return nil
}

// expire ends the reservations with an Until that is over. It needs mu.
func (l *Ledger) expire(now storage.Timestamp) {
	if now < l.until {
		return
	}
	l.until = math.MaxInt64
	for _, stored := range l.reservations {
		switch {
		case stored.Until == 0:
		case stored.Until <= now:
			l.conclude(stored, max(stored.Lost, stored.charged))
		default:
			l.until = min(l.until, stored.Until)
		}
	}
}

// line is the entry of a reservation that is open.
func (r *reservation) line() entry {
	e := r.entry()
	e.Lost, e.Charged, e.Call, e.Until = r.Lost, r.charged, &r.Call, r.Until
	return e
}

// Charge implements credits.Ledger.
func (l *Ledger) Charge(_ context.Context, r credits.Reservation, total plugins.Nanodollars) error {
	if err := l.charge(r, total); err != nil {
		return err
	}
	return l.flush()
}

func (l *Ledger) charge(r credits.Reservation, total plugins.Nanodollars) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return unavailable(os.ErrClosed)
	}
	stored := l.reservations[r.ID]
	if stored == nil || stored.Until > 0 {
		return fmt.Errorf("%w: %s", credits.ErrNoReservation, r.ID)
	}
	e := stored.entry()
	if e.Charge = total - stored.charged; e.Charge == 0 {
		return nil
	}
	reserved := stored.reserved()
	stored.charged, stored.generation = total, l.generation
	l.apply(e)
	l.hold(stored, stored.reserved()-reserved)
	l.lines = appendLine(l.lines, e)
	return nil
}

// Charged implements credits.Recoverer.
func (l *Ledger) Charged(id uuid.UUID) (c credits.Charge, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	stored := l.reservations[id]
	if stored == nil || stored.charged == 0 {
		return credits.Charge{}, false
	}
	return credits.Charge{Org: stored.Org, Accounts: stored.Accounts(), Total: stored.charged, Generation: stored.generation}, true
}

// hold adds to what is reserved in the accounts of a reservation. A budget forgets a value of
// which nothing is spent or reserved.
func (l *Ledger) hold(r *reservation, more plugins.Nanodollars) {
	for _, h := range r.Holds {
		a := l.account(h.Account)
		a.Reserved += more
		if h.Budget != "" && *a == (credits.Balance{Account: h.Account}) {
			l.drop(h.Account)
		}
	}
}

// drop forgets an account. It needs mu.
func (l *Ledger) drop(of credits.Account) {
	all := shared(of)
	if delete(l.accounts[all], of.Value); len(l.accounts[all]) == 0 {
		delete(l.accounts, all)
	}
}

// balance is the state of an account. It needs mu.
func (l *Ledger) balance(of credits.Account) credits.Balance {
	if a := l.lookup(of); a != nil {
		return *a
	}
	return credits.Balance{Account: of}
}

// Release implements credits.Ledger.
func (l *Ledger) Release(_ context.Context, r credits.Reservation) error {
	l.mu.Lock()
	stored := l.reservations[r.ID]
	switch {
	case l.closed:
		l.mu.Unlock()
		return unavailable(os.ErrClosed)
	case stored == nil || stored.Until > 0:
		l.mu.Unlock()
		return nil
	}
	l.conclude(stored, stored.charged)
	l.mu.Unlock()
	if stored.Lost == 0 {
		return nil
	}
	return l.flush()
}

// conclude ends a reservation and spends total, in a single line. It needs mu.
func (l *Ledger) conclude(stored *reservation, total plugins.Nanodollars) {
	e := entry{Org: stored.Org, ID: stored.ID, Released: true}
	if total != stored.charged {
		e.Accounts, e.Charge = stored.entry().Accounts, total-stored.charged
		l.apply(e)
	}
	l.hold(stored, -stored.reserved())
	delete(l.reservations, stored.ID)
	if stored.Lost > 0 {
		l.lines = appendLine(l.lines, e)
	}
}

// End implements credits.Ledger.
func (l *Ledger) End(_ context.Context, id uuid.UUID, total plugins.Nanodollars) ([]credits.Account, error) {
	l.mu.Lock()
	stored := l.reservations[id]
	switch {
	case l.closed:
		l.mu.Unlock()
		return nil, unavailable(os.ErrClosed)
	case stored == nil || stored.Until == 0:
		l.mu.Unlock()
		return nil, fmt.Errorf("%w: %s", credits.ErrNoReservation, id)
	}
	l.conclude(stored, total)
	l.mu.Unlock()
	return stored.Accounts(), l.flush()
}

// Balance implements credits.Ledger.
func (l *Ledger) Balance(_ context.Context, of credits.Hold) (credits.Balance, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return credits.Balance{}, unavailable(os.ErrClosed)
	}
	b, _ := of.Standing(0, l.balance)
	return b, nil
}

// Balances implements credits.Ledger.
func (l *Ledger) Balances(context.Context) ([]credits.Balance, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, unavailable(os.ErrClosed)
	}
	return l.balances(func(all credits.Account) bool { return all.Budget == "" }), nil
}

// Counted implements credits.Ledger. It looks only at the accounts of the budget, because calls
// wait meanwhile.
func (l *Ledger) Counted(_ context.Context, of credits.Hold) ([]credits.Balance, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, unavailable(os.ErrClosed)
	}
	var list []credits.Balance
	for step := range of.Steps {
		for _, a := range l.accounts[shared(step)] {
			list = append(list, *a)
		}
	}
	return of.ByValue(list), nil
}

// balances are the balances of the wanted accounts, in order. wanted gets accounts without
// their value. It needs mu.
func (l *Ledger) balances(wanted func(all credits.Account) bool) []credits.Balance {
	list := []credits.Balance{}
	for all, values := range l.accounts {
		if !wanted(all) {
			continue
		}
		for _, a := range values {
			list = append(list, *a)
		}
	}
	slices.SortFunc(list, func(a, b credits.Balance) int {
		return cmp.Or(cmp.Compare(a.Org, b.Org), cmp.Compare(a.Budget, b.Budget), cmp.Compare(a.Begins, b.Begins), cmp.Compare(a.Value, b.Value))
	})
	return list
}

// forget drops the accounts of windows that are over. It needs mu.
func (l *Ledger) forget() {
	now := storage.Millis(time.Now())
	for all, values := range l.accounts {
		if all.Ends == 0 || all.Forgotten() >= now {
			continue
		}
		for _, a := range values {
			if a.Reserved == 0 {
				l.drop(a.Account)
			}
		}
	}
}

// maxSpare bounds the memory that is used again, in bytes: lines may have waited for a disk.
const maxSpare = 1 << 20

// flush writes the lines that wait, also the lines of other goroutines.
func (l *Ledger) flush() error {
	l.turn.Lock()
	defer l.turn.Unlock()
	l.compact()
	l.mu.Lock()
	lines := l.lines
	l.lines, l.spare = l.spare, nil
	l.mu.Unlock()
	err := l.file.append(lines, false)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failing = err != nil
	if err != nil {
		l.lines = append(lines, l.lines...)
		return unavailable(err)
	}
	if cap(lines) <= maxSpare {
		l.spare = lines[:0]
	}
	return nil
}

// compact replaces the file by its balances when it has grown, with the charges
// that wait. It needs turn.
func (l *Ledger) compact() {
	if !l.file.full() {
		return
	}
	l.mu.Lock()
	l.forget()
	l.generation++ // charges from now on are lines behind the balances
	next := state{Generation: l.generation, Counted: l.file.end()}
	balances, lines := l.balances(func(credits.Account) bool { return true }), l.lines
	l.lines = nil
	var open []entry
	for _, stored := range l.reservations {
		if stored.Lost > 0 || stored.charged != 0 { // the record of a charge may come after the balances
			open = append(open, stored.line())
		}
	}
	l.mu.Unlock()
	if err := l.file.replace(balances, open, next); err != nil {
		l.file.logger.Error("the credits cannot be compacted: the file grows until they can", zap.String("file", l.file.path), zap.Error(err))
		l.mu.Lock()
		l.lines = append(lines, l.lines...)
		l.mu.Unlock()
	}
}

// Close implements credits.Ledger.
func (l *Ledger) Close(context.Context) error {
	err := l.flush()
	l.turn.Lock()
	defer l.turn.Unlock()
	l.mu.Lock()
	closed := l.closed
	l.closed = true
	l.mu.Unlock()
	if closed {
		return nil
	}
	err = errors.Join(err, l.file.close())
	if l.detach != nil {
		l.detach()
		l.file.journal.Note(FileName, l.file.reach())
	}
	return err
}

// Interface guards
var _ credits.Recoverer = (*Ledger)(nil)
