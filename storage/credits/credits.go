// Package credits keeps what organisations may spend: a file of grants and
// charges beside the journal, and in memory what calls in flight have reserved.
// Charges are written before the client has the end of its answer, as records
// are, so the end of the process forgets none; what a call had reserved without
// having been charged is free again after it.
package credits

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/google/uuid"
	"github.com/weirhq/weir/plugins"
)

// ErrInsufficient: the balance does not cover the reservation.
var ErrInsufficient = errors.New("insufficient credits")

// Ledger is an open file of credits. It is safe for use by several goroutines of
// one process; the journal's lock keeps out other processes.
type Ledger struct {
	mu       sync.Mutex
	file     *os.File
	size     int64
	accounts map[string]*account
}

type account struct{ granted, spent, reserved plugins.Nanodollars }

// available is what can be reserved.
func (a *account) available() plugins.Nanodollars { return a.granted - a.spent - a.reserved }

// entry is a line of the file.
type entry struct {
	Org string `json:"org"`
	// Grant is added to what the organisation may spend, Charge to what it has
	// spent.
	Grant  plugins.Nanodollars `json:"grant,omitempty"`
	Charge plugins.Nanodollars `json:"charge,omitempty"`
	// Request is the call that is charged.
	Request string `json:"request,omitempty"`
}

// maxFile is the size, in bytes, from which a file is rewritten with one line
// for each organisation when it is opened.
const maxFile = 1 << 20

// Open opens the file at path, or creates it. A line that a crash cut short is
// dropped; any other that cannot be read is an error.
func Open(path string) (*Ledger, error) {
	l := &Ledger{accounts: make(map[string]*account)}
	if err := l.load(path); err != nil {
		return nil, err
	}
	if l.size > maxFile {
		if err := l.rewrite(path); err != nil {
			return nil, fmt.Errorf("credits: %w", err)
		}
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("credits: %w", err)
	}
	if err := file.Truncate(l.size); err != nil {
		return nil, errors.Join(fmt.Errorf("credits: %w", err), file.Close())
	}
	l.file = file
	return l, nil
}

// load reads the entries of the file, if there is one.
func (l *Ledger) load(path string) error {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("credits: %w", err)
	}
	defer file.Close()
	lines := bufio.NewReader(file)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("credits: %w", err)
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("credits: %s: line %d: %w", path, n, err)
		}
		l.apply(e)
		l.size += int64(len(line))
	}
}

// rewrite replaces the file by a short one of the same balances.
func (l *Ledger) rewrite(path string) error {
	var text []byte
	for _, org := range slices.Sorted(maps.Keys(l.accounts)) {
		line, err := json.Marshal(entry{Org: org, Grant: l.accounts[org].granted, Charge: l.accounts[org].spent})
		if err != nil {
			return err
		}
		text = append(append(text, line...), '\n')
	}
	fresh := path + ".new"
	if err := os.WriteFile(fresh, text, 0o600); err != nil {
		return err
	}
	l.size = int64(len(text))
	return os.Rename(fresh, path)
}

func (l *Ledger) apply(e entry) {
	a := l.account(e.Org)
	a.granted += e.Grant
	a.spent += e.Charge
}

func (l *Ledger) account(org string) *account {
	a := l.accounts[org]
	if a == nil {
		a = new(account)
		l.accounts[org] = a
	}
	return a
}

// write adds an entry to the file, or leaves no trace of it there.
func (l *Ledger) write(e entry) error {
	if l.file == nil {
		return os.ErrClosed
	}
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	if _, err := l.file.WriteAt(line, l.size); err != nil {
		return errors.Join(fmt.Errorf("credits: %w", err), l.file.Truncate(l.size))
	}
	l.size += int64(len(line))
	return nil
}

// Seed grants amount to an organisation that has never had a grant.
func (l *Ledger) Seed(org string, amount plugins.Nanodollars) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.accounts[org] != nil {
		return nil
	}
	return l.grant(org, amount)
}

// Grant adds amount, which may be negative, to what an organisation may spend.
func (l *Ledger) Grant(org string, amount plugins.Nanodollars) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.grant(org, amount)
}

func (l *Ledger) grant(org string, amount plugins.Nanodollars) error {
	e := entry{Org: org, Grant: amount}
	if err := l.write(e); err != nil {
		return err
	}
	l.apply(e)
	return nil
}

// Balance is the state of one organisation's credits.
type Balance struct {
	Org string
	// Granted is the sum of all grants, Spent that of all charges.
	Granted, Spent plugins.Nanodollars
	// Reserved is what calls in flight may still spend.
	Reserved plugins.Nanodollars
}

// Balances are those of all organisations that ever had credits, by name.
func (l *Ledger) Balances() []Balance {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []Balance
	for org, a := range l.accounts {
		list = append(list, Balance{org, a.granted, a.spent, a.reserved})
	}
	slices.SortFunc(list, func(a, b Balance) int { return cmp.Compare(a.Org, b.Org) })
	return list
}

// Reservation is what one call may spend.
type Reservation struct {
	ledger  *Ledger
	org     string
	request uuid.UUID
	amount  plugins.Nanodollars
	held    plugins.Nanodollars // of amount, not yet charged
	charged plugins.Nanodollars
}

// Reserve sets amount aside for a call, or answers ErrInsufficient.
func (l *Ledger) Reserve(org string, request uuid.UUID, amount plugins.Nanodollars) (*Reservation, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[org]
	if a == nil || amount < 0 || a.available() < amount {
		return nil, ErrInsufficient
	}
	a.reserved += amount
	return &Reservation{ledger: l, org: org, request: request, amount: amount, held: amount}, nil
}

// Amount is what was set aside.
func (r *Reservation) Amount() plugins.Nanodollars { return r.amount }

// Charge makes total what the call has cost: another charge replaces it. An
// error is one of writing; the charge holds then until the process ends.
func (r *Reservation) Charge(total plugins.Nanodollars) error {
	l := r.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	more := total - r.charged
	if more == 0 {
		return nil
	}
	r.charged = total
	l.hold(r, max(r.amount-total, 0))
	e := entry{Org: r.org, Charge: more, Request: r.request.String()}
	l.apply(e)
	return l.write(e)
}

// Release frees what was set aside and not charged. A charge that comes later
// sets nothing aside again.
func (r *Reservation) Release() {
	r.ledger.mu.Lock()
	defer r.ledger.mu.Unlock()
	r.amount = 0
	r.ledger.hold(r, 0)
}

// hold makes n what r holds.
func (l *Ledger) hold(r *Reservation, n plugins.Nanodollars) {
	l.account(r.org).reserved += n - r.held
	r.held = n
}

// Close closes the file. Charges that come later are lost.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}
