package redis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/disk"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage/credits"
)

// processes are the processes that have used a directory, and may have left reservations. Each
// process is a node of its own, with a lease. The names of the processes are in a file.
type processes struct {
	path   string
	own    string
	before []string
}

func openProcesses(path, own string) (*processes, error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	p := &processes{path: path, own: own, before: strings.Fields(string(text))}
	for _, node := range p.before {
		if err := uuid.Validate(node); err != nil {
			return nil, fmt.Errorf("%s cannot be read, so that calls of killed processes would stay without their cost; delete it to leave them so: %w", path, err)
		}
	}
	return p, p.save()
}

func (p *processes) save() error {
	return disk.Replace(p.path, []byte(strings.Join(append(slices.Clone(p.before), p.own), "\n")+"\n"), 0o600)
}

// settlement is what Redis has of a reservation for those who end it after its process.
type settlement struct {
	Accounts []credits.Account `json:"accounts"`
	Call     credits.Call      `json:"call,omitzero"`
}

// encode is what Redis keeps of the reservation, "" for a reservation that ends with its process.
func (r *reservation) encode() string {
	if r.Lost == 0 && r.Until == 0 {
		return ""
	}
	encoded, _ := json.Marshal(settlement{r.Accounts(), r.Call}) // strings and numbers cannot fail
	return string(encoded)
}

// Settle implements credits.Ledger. The reservations of an earlier process stay while the
// process has a lease; then the most that its calls can have cost is spent until the process is
// settled. A copy of the directory elsewhere does not end what a living process has reserved,
// because a living process has a lease.
func (l *Ledger) Settle(ctx context.Context, total func(r credits.Reservation, charged plugins.Nanodollars) (plugins.Nanodollars, error)) (settled bool, err error) {
	switch {
	case l.isClosed():
		return false, unavailable(os.ErrClosed)
	case len(l.processes.before) == 0:
		return true, nil
	case l.wasAway(): // leases may have ended because nobody could renew them
		return false, nil
	}
	if err := l.flush(ctx); err != nil { // the charges that these processes have left in the file
		return false, err
	}
	var left []string
	for _, node := range l.processes.before {
		ended, failed := l.settle(ctx, node, total)
		if err = errors.Join(err, failed); !ended {
			left = append(left, node)
		}
	}
	l.processes.before = left
	return len(left) == 0, errors.Join(err, l.processes.save())
}

// settle ends the reservations that a process has left, and reports whether no more are left.
func (l *Ledger) settle(ctx context.Context, node string, total func(credits.Reservation, plugins.Nanodollars) (plugins.Nanodollars, error)) (ended bool, err error) {
	lives, err := l.script(ctx, leaseLasts, []string{l.client.key("lease:" + node)})
	if err == nil && lives == 0 {
		err = l.expire(ctx, node)
	}
	if err != nil || lives == 1 {
		return false, err
	}
	for {
		reply, err := l.ask(ctx, dead, []string{l.reservations(node)})
		if err != nil {
			return false, err
		}
		list, err := reply.AsStrSlice()
		if err != nil || len(list) == 0 {
			return err == nil, err
		}
		var failed error
		for fields := range slices.Chunk(list, 5) {
			failed = errors.Join(failed, l.settleOne(ctx, node, fields, total))
		}
		if failed != nil {
			return false, failed
		}
	}
}

// settleOne ends a dead reservation. fields are its key, its organisation, what was charged,
// what is lost and what is kept.
func (l *Ledger) settleOne(ctx context.Context, node string, fields []string, total func(credits.Reservation, plugins.Nanodollars) (plugins.Nanodollars, error)) error {
	r := credits.Reservation{Org: fields[1]}
	paid, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return unavailable(err)
	}
	cost := plugins.Nanodollars(paid)
	if fields[4] != "" {
		var k settlement
		lost, broken := strconv.ParseInt(fields[3], 10, 64)
		id, unnamed := uuid.Parse(strings.TrimPrefix(fields[0], l.client.key("call:")))
		if err := errors.Join(broken, unnamed, json.Unmarshal([]byte(fields[4]), &k)); err != nil {
			return unavailable(err)
		}
		r.ID, r.Lost, r.Call = id, plugins.Nanodollars(lost), k.Call
		for _, of := range k.Accounts {
			r.Holds = append(r.Holds, credits.Hold{Account: of})
		}
		if cost, err = total(r, cost); err != nil {
			return err
		}
	}
	_, err = l.script(ctx, settle, []string{fields[0], l.reservations(node)}, number(cost), l.org(""))
	return err
}
