// Package embedded keeps the credits of one process in a file. A charge is in the
// file before Charge returns, so that a crash loses none;
// reservations are in memory, and end with the process, which is their lease.
//
// The owner of the directory keeps other processes out.
package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage/credits"
)

// Ledger is the open ledger of a directory.
type Ledger struct {
	// turn is held by whoever writes to the file. It comes before mu.
	turn sync.Mutex
	file *file

	// mu is never held while the disk is waited for.
	mu           sync.Mutex
	accounts     map[string]*credits.Balance
	reservations map[uuid.UUID]*reservation
	lines        []byte // charges that are not in the file yet
	failing      bool   // the file did not take the charges that came before
	closed       bool
}

type reservation struct {
	credits.Reservation
	charged plugins.Nanodollars
}

// held is what is reserved and not charged.
func (r *reservation) held() plugins.Nanodollars { return max(r.Amount-r.charged, 0) }

// Open opens the ledger of the directory, which must exist, or begins one. The
// error says what to do when the file has been deleted, replaced by an older one,
// or damaged: a ledger never forgets charges in silence. What a crash cut short is
// dropped, and logged.
func Open(dir string, logger *zap.Logger) (*Ledger, error) {
	return open(&file{path: filepath.Join(dir, "credits"), minLimit: 1 << 20, logger: logger, sync: (*os.File).Sync})
}

// Check reads the ledger of a directory, and changes nothing. The error says what is
// wrong with it; a directory without one is as it should be.
func Check(dir string) error {
	f := &file{path: filepath.Join(dir, "credits")}
	err := f.read(os.O_RDONLY, func(entry) {})
	if f.f != nil {
		err = errors.Join(err, f.f.Close())
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func open(f *file) (*Ledger, error) {
	l := &Ledger{file: f, accounts: make(map[string]*credits.Balance), reservations: make(map[uuid.UUID]*reservation)}
	if err := f.open(l.apply); err != nil {
		return nil, unavailable(err)
	}
	return l, nil
}

func unavailable(err error) error { return fmt.Errorf("%w: %w", credits.ErrUnavailable, err) }

func (l *Ledger) apply(e entry) {
	a := l.accounts[e.Org]
	if a == nil {
		a = &credits.Balance{Org: e.Org}
		l.accounts[e.Org] = a
	}
	a.Granted += e.Grant
	a.Spent += e.Charge
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
	a, closed := l.accounts[org], l.closed
	l.mu.Unlock()
	switch {
	case closed:
		return unavailable(os.ErrClosed)
	case a != nil && first:
		return nil
	case a != nil && (amount > 0 && a.Granted > math.MaxInt64-amount || amount < 0 && a.Granted < math.MinInt64-amount):
		return fmt.Errorf("credits: %s was granted %s, and cannot be granted %s more: the sum is out of range", org, a.Granted, amount)
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
func (l *Ledger) Reserve(_ context.Context, r credits.Reservation) error {
	if r.Amount < 0 {
		return fmt.Errorf("credits: cannot reserve %s: want 0 or more", r.Amount)
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
	if made := l.reservations[r.ID]; made != nil {
		if made.Reservation != r {
			return fmt.Errorf("credits: the reservation %s is in use for %s of %s", r.ID, made.Amount, made.Org)
		}
		return nil
	}
	a := l.accounts[r.Org]
	if a == nil || a.Available() < r.Amount {
		return credits.ErrInsufficient
	}
	a.Reserved += r.Amount
	l.reservations[r.ID] = &reservation{Reservation: r}
	return nil
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
	made := l.reservations[r.ID]
	if made == nil {
		return fmt.Errorf("%w: %s", credits.ErrNoReservation, r.ID)
	}
	e := entry{Org: made.Org, Charge: total - made.charged}
	if e.Charge == 0 {
		return nil
	}
	held := made.held()
	made.charged = total
	l.apply(e)
	l.accounts[made.Org].Reserved += made.held() - held
	l.lines = appendLine(l.lines, e)
	return nil
}

// Release implements credits.Ledger.
func (l *Ledger) Release(_ context.Context, r credits.Reservation) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return unavailable(os.ErrClosed)
	}
	if made := l.reservations[r.ID]; made != nil {
		l.accounts[made.Org].Reserved -= made.held()
		delete(l.reservations, r.ID)
	}
	return nil
}

// Balance implements credits.Ledger.
func (l *Ledger) Balance(_ context.Context, org string) (credits.Balance, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return credits.Balance{}, unavailable(os.ErrClosed)
	}
	if a := l.accounts[org]; a != nil {
		return *a, nil
	}
	return credits.Balance{Org: org}, nil
}

// Balances implements credits.Ledger.
func (l *Ledger) Balances(context.Context) ([]credits.Balance, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, unavailable(os.ErrClosed)
	}
	return l.balances(), nil
}

// balances needs mu.
func (l *Ledger) balances() []credits.Balance {
	list := make([]credits.Balance, 0, len(l.accounts))
	for _, a := range l.accounts {
		list = append(list, *a)
	}
	slices.SortFunc(list, func(a, b credits.Balance) int { return cmp.Compare(a.Org, b.Org) })
	return list
}

// flush writes the charges that wait, those of other goroutines included.
func (l *Ledger) flush() error {
	l.turn.Lock()
	defer l.turn.Unlock()
	l.compact()
	l.mu.Lock()
	lines := l.lines
	l.lines = nil
	l.mu.Unlock()
	err := l.file.append(lines, false)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failing = err != nil
	if err != nil {
		l.lines = append(lines, l.lines...)
		return unavailable(err)
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
	balances, lines := l.balances(), l.lines
	l.lines = nil
	l.mu.Unlock()
	if err := l.file.replace(balances); err != nil {
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
	return errors.Join(err, l.file.close())
}

// Interface guards
var _ credits.Ledger = (*Ledger)(nil)
