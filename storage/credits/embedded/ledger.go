// Package embedded keeps the credits and the budgets of one process in a file. A charge is in the
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
	"maps"
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
)

// Ledger is the open ledger of a directory.
type Ledger struct {
	// turn is held by whoever writes to the file. It comes before mu.
	turn sync.Mutex
	file *file

	// mu is never held while the disk is waited for.
	mu           sync.Mutex
	accounts     map[credits.Account]*credits.Balance
	reservations map[uuid.UUID]*reservation
	lines        []byte // charges that are not in the file yet
	failing      bool   // the file did not take the charges that came before
	closed       bool
}

type reservation struct {
	credits.Reservation
	charged plugins.Nanodollars
}

// entry is the line of a charge: one for all accounts, so that a crash leaves it in all of
// them or in no account.
func (r *reservation) entry(charge plugins.Nanodollars) entry {
	e := entry{Org: r.Org, Charge: charge}
	if len(r.Holds) > 1 || r.Holds[0].Budget != "" {
		for _, h := range r.Holds {
			e.Accounts = append(e.Accounts, h.Account)
		}
	}
	return e
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
	l := &Ledger{file: f, accounts: make(map[credits.Account]*credits.Balance), reservations: make(map[uuid.UUID]*reservation)}
	if err := f.open(l.apply); err != nil {
		return nil, unavailable(err)
	}
	return l, nil
}

func unavailable(err error) error { return fmt.Errorf("%w: %w", credits.ErrUnavailable, err) }

func (l *Ledger) apply(e entry) {
	accounts := e.Accounts
	if accounts == nil {
		accounts = []credits.Account{{Org: e.Org}}
	}
	for _, of := range accounts {
		a := l.account(of)
		a.Granted += e.Grant
		a.Spent += e.Charge
	}
}

// account is the balance of an account, which begins with nothing.
func (l *Ledger) account(of credits.Account) *credits.Balance {
	a := l.accounts[of]
	if a == nil {
		a = &credits.Balance{Account: of}
		l.accounts[of] = a
	}
	return a
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
	a, closed := l.accounts[credits.Account{Org: org}], l.closed
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
	if made := l.reservations[r.ID]; made != nil {
		if !made.Equal(r) {
			return fmt.Errorf("credits: the reservation %s is in use for %s of %s", r.ID, made.Amount, made.Org)
		}
		return nil
	}
	for _, h := range r.Holds {
		b, freeAt := h.Standing(r.Amount, l.balance)
		if h.Budget == "" && l.accounts[h.Account] == nil || b.Available() < r.Amount {
			return &credits.InsufficientError{Balance: b, FreeAt: freeAt}
		}
	}
	for _, h := range r.Holds {
		l.account(h.Account).Reserved += r.Amount
	}
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
	e := made.entry(total - made.charged)
	if e.Charge == 0 {
		return nil
	}
	held := made.held()
	made.charged = total
	l.apply(e)
	l.hold(made, made.held()-held)
	l.lines = appendLine(l.lines, e)
	return nil
}

// hold adds to what is reserved in the accounts of a reservation. A budget that counts
// nothing of a value forgets the value.
func (l *Ledger) hold(r *reservation, more plugins.Nanodollars) {
	for _, h := range r.Holds {
		a := l.account(h.Account)
		a.Reserved += more
		if h.Budget != "" && *a == (credits.Balance{Account: h.Account}) {
			delete(l.accounts, h.Account)
		}
	}
}

// balance is the state of an account. It needs mu.
func (l *Ledger) balance(of credits.Account) credits.Balance {
	if a := l.accounts[of]; a != nil {
		return *a
	}
	return credits.Balance{Account: of}
}

// Release implements credits.Ledger.
func (l *Ledger) Release(_ context.Context, r credits.Reservation) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return unavailable(os.ErrClosed)
	}
	if made := l.reservations[r.ID]; made != nil {
		l.hold(made, -made.held())
		delete(l.reservations, r.ID)
	}
	return nil
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
	return l.list(func(of credits.Account) bool { return of.Budget == "" })
}

// Counted implements credits.Ledger.
func (l *Ledger) Counted(_ context.Context, of credits.Hold) ([]credits.Balance, error) {
	begins := make(map[storage.Timestamp]bool)
	for step := range of.Steps {
		begins[step.Begins] = true
	}
	list, err := l.list(func(a credits.Account) bool { return a.Org == of.Org && a.Budget == of.Budget && begins[a.Begins] })
	return of.ByValue(list), err
}

// list returns the accounts that are wanted.
func (l *Ledger) list(wanted func(credits.Account) bool) ([]credits.Balance, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, unavailable(os.ErrClosed)
	}
	return l.balances(wanted), nil
}

// balances needs mu.
func (l *Ledger) balances(wanted func(credits.Account) bool) []credits.Balance {
	list := []credits.Balance{}
	for of, a := range l.accounts {
		if wanted(of) {
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
	maps.DeleteFunc(l.accounts, func(of credits.Account, a *credits.Balance) bool {
		return of.Ends != 0 && of.Forgotten() < now && a.Reserved == 0
	})
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
	l.forget()
	balances, lines := l.balances(func(credits.Account) bool { return true }), l.lines
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
