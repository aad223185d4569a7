package creditstest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
)

// Model is a simple ledger, which knows what a real one must return. It adds everything up again
// each time.
type Model struct {
	Grants       []Amount
	Reservations []*Reserved
}

// Amount is what one organisation was granted.
type Amount struct {
	Org string
	N   plugins.Nanodollars
}

// Reserved is a reservation and what it has cost.
type Reserved struct {
	credits.Reservation
	Charged  plugins.Nanodollars
	Released bool
}

// Balances returns the credits that the ledger must return.
func (m *Model) Balances() []credits.Balance {
	list := []credits.Balance{}
	for _, g := range m.Grants {
		account := credits.Account{Org: g.Org}
		if !slices.ContainsFunc(list, func(b credits.Balance) bool { return b.Account == account }) {
			list = append(list, m.Balance(account))
		}
	}
	slices.SortFunc(list, func(a, b credits.Balance) int { return cmp.Compare(a.Org, b.Org) })
	return list
}

// Counted returns what the ledger must count for a budget, one balance for each value.
func (m *Model) Counted(budget credits.Hold) []credits.Balance {
	list := []credits.Balance{}
	for _, r := range m.Reservations {
		for _, h := range r.Holds {
			listed := slices.ContainsFunc(list, func(b credits.Balance) bool { return b.Value == h.Value })
			if h.Org != budget.Org || h.Budget != budget.Budget || listed {
				continue
			}
			each := budget
			each.Value = h.Value
			sum, _ := each.Standing(0, m.Balance)
			sum.Granted = 0
			list = append(list, sum)
		}
	}
	slices.SortFunc(list, func(a, b credits.Balance) int { return cmp.Compare(a.Value, b.Value) })
	return list
}

// Balance returns what the ledger must count for one account.
func (m *Model) Balance(account credits.Account) credits.Balance {
	b := credits.Balance{Account: account}
	for _, g := range m.Grants {
		if account == (credits.Account{Org: g.Org}) {
			b.Granted += g.N
		}
	}
	for _, r := range m.Reservations {
		if !slices.ContainsFunc(r.Holds, func(h credits.Hold) bool { return h.Account == account }) {
			continue
		}
		b.Spent += r.Charged
		if !r.Released {
			b.Reserved += max(r.Amount-r.Charged, 0)
		}
	}
	return b
}

// insufficient returns the error of the first account that does not cover a reservation, or nil if
// all do.
func (m *Model) insufficient(r credits.Reservation) *credits.InsufficientError {
	for _, h := range r.Holds {
		b := m.Balance(h.Account)
		limited := h.Budget != "" || slices.ContainsFunc(m.Grants, func(g Amount) bool { return g.Org == h.Org })
		if h.Budget != "" {
			b.Granted = h.Limit
		}
		stepEnds := []storage.Timestamp{h.Ends}
		for _, step := range m.earlierSteps(h) {
			counted := m.Balance(step)
			b.Spent, b.Reserved, stepEnds = b.Spent+counted.Spent, b.Reserved+counted.Reserved, append(stepEnds, step.Ends)
		}
		if limited && b.Available() >= r.Amount {
			continue
		}
		e := &credits.InsufficientError{Balance: b}
		if h.Rolling > 0 {
			e.FreeAt = slices.MinFunc(stepEnds, func(a, b storage.Timestamp) int {
				return cmp.Or(-compareBool(m.fits(h, r.Amount, a), m.fits(h, r.Amount, b)), cmp.Compare(a, b))
			})
		}
		return e
	}
	return nil
}

// earlierSteps returns the steps that a rolling window counts before the step of the hold, each
// once.
func (m *Model) earlierSteps(h credits.Hold) (list []credits.Account) {
	for _, r := range m.Reservations {
		for _, other := range r.Holds {
			step := h.Account
			step.Begins, step.Ends = other.Begins, other.Ends
			if step == other.Account && step.Begins < h.Begins && step.Ends > h.Begins && h.Rolling > 0 && !slices.Contains(list, step) {
				list = append(list, step)
			}
		}
	}
	return list
}

// fits reports whether an amount fits once all steps that end by a time are out of the window.
func (m *Model) fits(h credits.Hold, amount plugins.Nanodollars, at storage.Timestamp) bool {
	remaining := h.Limit
	for _, step := range append(m.earlierSteps(h), h.Account) {
		if step.Ends > at {
			b := m.Balance(step)
			remaining -= b.Spent + b.Reserved
		}
	}
	return remaining >= amount
}

// compareBool orders false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// Clone returns the model after the death of all nodes: charges stay, and an open reservation ends
// at its Lost, if it was charged less. Reservations with an Until outlive their node.
func (m *Model) Clone() *Model {
	dead := &Model{Grants: slices.Clone(m.Grants)}
	for _, r := range m.Reservations {
		charged := r.Charged
		switch {
		case r.Until > 0:
			dead.Reservations = append(dead.Reservations, new(*r))
			continue
		case !r.Released:
			charged = max(charged, r.Lost)
		}
		dead.Reservations = append(dead.Reservations, &Reserved{r.Reservation, charged, true})
	}
	return dead
}

// Settle settles the reservations that a dead process has left open. It draws the cost of each
// call, from what was charged up to the reservation's Lost.
func (m *Machine) Settle(t T) {
	err := settle(m.Ledger, func(open credits.Reservation, charged plugins.Nanodollars) (plugins.Nanodollars, error) {
		i := slices.IndexFunc(m.Model.Reservations, func(r *Reserved) bool { return r.ID == open.ID })
		if i < 0 {
			t.Fatalf("%s is open, and was never made", open.ID)
		}
		r := m.Model.Reservations[i]
		if r.Released || r.Until > 0 || r.Lost == 0 || r.Charged != charged {
			t.Fatalf("%+v is open with %s charged", r, charged)
		}
		r.Charged += plugins.Nanodollars(t.Draw(int(max(r.Lost-charged, 0))+1, "cost"))
		r.Released = true
		return r.Charged, nil
	})
	if err != nil {
		t.Fatalf("settled: %v", err)
	}
	for _, r := range m.Model.Reservations {
		if !r.Released && r.Until == 0 && r.Lost > 0 {
			t.Fatalf("%+v is not settled", r)
		}
		r.Released = r.Released || r.Until == 0
	}
}

// Machine does the same things with a ledger and with its model, and compares them.
type Machine struct {
	Ledger credits.Ledger
	Model  *Model
}

// T is a test that draws the steps of a Machine.
type T interface {
	Fatalf(format string, args ...any)
	// Draw returns a random number from 0 to n-1. The label is for the log.
	Draw(n int, label string) int
}

var (
	orgs    = []string{"acme", "umbrella", "\"ö\n"}
	actions = []string{"grant", "seed", "reserve", "reserve to last", "charge", "charge", "charge", "release", "end"}
)

// Step takes a random action, and checks that the ledger does what the model does.
func (m *Machine) Step(t T) {
	ctx := context.Background()
	org := orgs[t.Draw(len(orgs), "org")]
	amount := plugins.Nanodollars(t.Draw(101, "amount"))
	var err, want error
	switch action := actions[t.Draw(len(actions), "action")]; action {
	case "grant":
		amount -= 20
		err = m.Ledger.Grant(ctx, org, amount)
		m.Model.Grants = append(m.Model.Grants, Amount{org, amount})
	case "seed":
		err = m.Ledger.Seed(ctx, org, amount)
		if !slices.ContainsFunc(m.Model.Grants, func(g Amount) bool { return g.Org == org }) {
			m.Model.Grants = append(m.Model.Grants, Amount{org, amount})
		}
	case "reserve", "reserve to last":
		r := credits.Reservation{ID: uuid.New(), Org: org, Amount: amount, Holds: holds(t, org), Lost: plugins.Nanodollars(t.Draw(2, "lost")) * amount}
		if action != "reserve" && amount > 0 {
			r.Lost, r.Until = amount, ends
		}
		err = m.Ledger.Reserve(ctx, r)
		if insufficient := m.Model.insufficient(r); insufficient != nil {
			want = credits.ErrInsufficient
			var got *credits.InsufficientError
			if errors.As(err, &got) && *got != *insufficient {
				t.Fatalf("the error is %+v, want %+v", got, insufficient)
			}
		} else {
			m.Model.Reservations = append(m.Model.Reservations, &Reserved{Reservation: r})
		}
	default:
		if len(m.Model.Reservations) == 0 {
			return
		}
		r := m.Model.Reservations[t.Draw(len(m.Model.Reservations), "reservation")]
		isEnd := action == "end"
		switch {
		case isEnd:
			_, err = m.Ledger.End(ctx, r.ID, amount)
		case action == "release":
			err = m.Ledger.Release(ctx, r.Reservation)
			r.Released = r.Released || r.Until == 0
		default:
			err = m.Ledger.Charge(ctx, r.Reservation, amount)
		}
		switch {
		case action == "release":
		case r.Released || isEnd != (r.Until > 0):
			want = credits.ErrNoReservation
		default:
			r.Charged, r.Released = amount, isEnd
		}
	}
	if !matches(err, want) {
		t.Fatalf("the error is %v, want %v", err, want)
	}
	m.Check(t)
}

// ends is when the windows of the tests end: a day from now, which is longer than any test.
var ends = storage.Millis(time.Now().Add(24 * time.Hour))

// windows are holds of all kinds of budgets, without their organisation.
var windows = []credits.Hold{
	{Account: credits.Account{Budget: "month", Begins: 1, Ends: ends}},
	{Account: credits.Account{Budget: "month", Begins: 2, Ends: ends}},
	{Account: credits.Account{Budget: "user", Value: "ada"}},
	{Account: credits.Account{Budget: "user", Value: "b:o\n"}},
	{Account: credits.Account{Budget: "user"}},
	rolling(0), rolling(time.Hour), rolling(25 * time.Hour),
}

// rolling returns a hold in a rolling window of a day, at a time after now.
func rolling(after time.Duration) credits.Hold {
	h := credits.Hold{Rolling: credits.Rolling((24 * time.Hour).Milliseconds())}
	h.Budget = "rate"
	h.Begins, h.Ends = h.Rolling.Around(storage.Millis(time.Now().Add(after)))
	return h
}

// holds draws the accounts of a reservation.
func holds(t T, org string) (list []credits.Hold) {
	if t.Draw(2, "credits") == 0 {
		list = append(list, credits.Hold{Account: credits.Account{Org: org}})
	}
	first := t.Draw(len(windows), "budgets")
	for _, h := range windows[first : first+t.Draw(len(windows)-first+1, "of these")] {
		h.Org, h.Limit = org, plugins.Nanodollars(100+t.Draw(100, "limit"))
		list = append(list, h)
	}
	if list == nil {
		list = append(list, credits.Hold{Account: credits.Account{Org: org}})
	}
	return list
}

// Check compares the balances.
func (m *Machine) Check(t T) {
	for _, org := range orgs {
		for _, of := range windows {
			of.Org = org
			got, err := m.Ledger.Counted(context.Background(), of)
			got = slices.DeleteFunc(got, empty) // a ledger may know an account with nothing spent or reserved
			if want := slices.DeleteFunc(m.Model.Counted(of), empty); err != nil || !slices.Equal(got, want) {
				t.Fatalf("the budget %s counts %+v, %v; want %+v", of.Budget, got, err, want)
			}
		}
	}
	got, err := m.Ledger.Balances(context.Background())
	if want := m.Model.Balances(); err != nil || !slices.Equal(got, want) {
		t.Fatalf("the balances are %s, %v; want %s", fmt.Sprint(got), err, fmt.Sprint(want))
	}
}

func empty(b credits.Balance) bool { return b.Spent == 0 && b.Reserved == 0 }
