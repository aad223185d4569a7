// Package embedded keeps the credits and the budgets of one process in a file. A reservation is
// in the file before Reserve returns, and a charge before Charge returns, so that a crash loses
// neither. The process is the lease of its reservations: Settle ends the reservations of the
// process before.
//
// The owner of the directory keeps other processes out.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
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
	accounts     balances
	maxValues    int // of values of a budget without an end
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
	return err == nil || journal.Knows(dir, FileName)
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
	l := &Ledger{file: f, maxValues: credits.MaxValues, accounts: make(balances), reservations: make(map[uuid.UUID]*reservation), charged: make(map[uuid.UUID]plugins.Nanodollars)}
	if err := f.open(l.load); err != nil {
		return nil, unavailable(err)
	}
	l.generation = f.state.Generation
	for _, stored := range l.reservations {
		l.accounts.reserve(stored, stored.reserved())
	}
	if f.journal != nil {
		f.journal.Witness().Note(FileName, f.reach())
		l.detach = f.journal.Witness().Attach(FileName, l.sync)
	}
	return l, nil
}

func unavailable(err error) error { return fmt.Errorf("%w: %w", credits.ErrUnavailable, err) }

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
	a, closed := l.accounts.lookup(credits.Account{Org: org}), l.closed
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
	l.accounts.apply(e)
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
		b, freeAt := h.Standing(r.Amount, l.accounts.balance)
		if h.Budget == "" && l.accounts.lookup(h.Account) == nil || b.Available() < r.Amount {
			return &credits.InsufficientError{Balance: b, FreeAt: freeAt}
		}
	}
	for _, h := range r.Holds {
		if h.Endless() && l.accounts.lookup(h.Account) == nil && len(l.accounts.values(h.Account)) >= l.maxValues {
			return &credits.FullError{Account: h.Account}
		}
	}
	for _, h := range r.Holds {
		l.accounts.open(h.Account).Reserved += r.Amount
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
	l.accounts.apply(e)
	l.accounts.reserve(stored, stored.reserved()-reserved)
	l.lines = appendLine(l.lines, e)
	return nil
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
		l.accounts.apply(e)
	}
	l.accounts.reserve(stored, -stored.reserved())
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
	b, _ := of.Standing(0, l.accounts.balance)
	return b, nil
}

// Balances implements credits.Ledger.
func (l *Ledger) Balances(context.Context) ([]credits.Balance, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, unavailable(os.ErrClosed)
	}
	return l.accounts.list(func(all credits.Account) bool { return all.Budget == "" }), nil
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
		for _, a := range l.accounts.values(step) {
			list = append(list, *a)
		}
	}
	return of.ByValue(list), nil
}

// Interface guards
var _ credits.Recoverer = (*Ledger)(nil)
