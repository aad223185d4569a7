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

// Model says what a ledger must answer: it adds everything up again each time.
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
		of := credits.Account{Org: g.Org}
		if !slices.ContainsFunc(list, func(b credits.Balance) bool { return b.Account == of }) {
			list = append(list, m.Balance(of))
		}
	}
	slices.SortFunc(list, func(a, b credits.Balance) int { return cmp.Compare(a.Org, b.Org) })
	return list
}

// Counted returns what the ledger must count of a budget, by value.
func (m *Model) Counted(of credits.Hold) []credits.Balance {
	list := []credits.Balance{}
	for _, r := range m.Reservations {
		for _, h := range r.Holds {
			known := slices.ContainsFunc(list, func(b credits.Balance) bool { return b.Value == h.Value })
			if h.Org != of.Org || h.Budget != of.Budget || known {
				continue
			}
			each := of
			each.Value = h.Value
			sum, _ := each.Standing(0, m.Balance)
			sum.Granted = 0
			list = append(list, sum)
		}
	}
	slices.SortFunc(list, func(a, b credits.Balance) int { return cmp.Compare(a.Value, b.Value) })
	return list
}

// Balance returns what the ledger must count in one account.
func (m *Model) Balance(of credits.Account) credits.Balance {
	b := credits.Balance{Account: of}
	for _, g := range m.Grants {
		if of == (credits.Account{Org: g.Org}) {
			b.Granted += g.N
		}
	}
	for _, r := range m.Reservations {
		if !slices.ContainsFunc(r.Holds, func(h credits.Hold) bool { return h.Account == of }) {
			continue
		}
		b.Spent += r.Charged
		if !r.Released {
			b.Reserved += max(r.Amount-r.Charged, 0)
		}
	}
	return b
}

// short returns the first account that does not cover a reservation, nil if all do.
func (m *Model) short(r credits.Reservation) *credits.InsufficientError {
	for _, h := range r.Holds {
		b := m.Balance(h.Account)
		known := h.Budget != "" || slices.ContainsFunc(m.Grants, func(g Amount) bool { return g.Org == h.Org })
		if h.Budget != "" {
			b.Granted = h.Limit
		}
		leaving := []storage.Timestamp{h.Ends}
		for _, of := range m.earlier(h) {
			step := m.Balance(of)
			b.Spent, b.Reserved, leaving = b.Spent+step.Spent, b.Reserved+step.Reserved, append(leaving, of.Ends)
		}
		if known && b.Available() >= r.Amount {
			continue
		}
		short := &credits.InsufficientError{Balance: b}
		if h.Rolling > 0 {
			short.FreeAt = slices.MinFunc(leaving, func(a, b storage.Timestamp) int {
				return cmp.Or(-compareBool(m.fits(h, r.Amount, a), m.fits(h, r.Amount, b)), cmp.Compare(a, b))
			})
		}
		return short
	}
	return nil
}

// earlier returns the steps before a hold's that its window counts, each once.
func (m *Model) earlier(h credits.Hold) (list []credits.Account) {
	for _, r := range m.Reservations {
		for _, other := range r.Holds {
			of := h.Account
			of.Begins, of.Ends = other.Begins, other.Ends
			if of == other.Account && of.Begins < h.Begins && of.Ends > h.Begins && h.Rolling > 0 && !slices.Contains(list, of) {
				list = append(list, of)
			}
		}
	}
	return list
}

// fits reports whether an amount fits when all steps have left that end by a time.
func (m *Model) fits(h credits.Hold, amount plugins.Nanodollars, at storage.Timestamp) bool {
	left := h.Limit
	for _, of := range append(m.earlier(h), h.Account) {
		if of.Ends > at {
			b := m.Balance(of)
			left -= b.Spent + b.Reserved
		}
	}
	return left >= amount
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

// Clone returns the model after the death of all nodes: charges stay, and open reservations
// end with what they lose, except reservations that outlive the node.
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

// Settle ends what a process has left that has died: each call has cost a number from what
// was charged up to the most that it can have cost.
func (m *Machine) Settle(t T) {
	err := settle(m.Ledger, func(left credits.Reservation, charged plugins.Nanodollars) (plugins.Nanodollars, error) {
		i := slices.IndexFunc(m.Model.Reservations, func(r *Reserved) bool { return r.ID == left.ID })
		if i < 0 {
			t.Fatalf("%s is left, and was never made", left.ID)
		}
		r := m.Model.Reservations[i]
		if r.Released || r.Until > 0 || r.Lost == 0 || r.Charged != charged {
			t.Fatalf("%+v is left with %s charged", r, charged)
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

// Machine does the same with a ledger and its model.
type Machine struct {
	Ledger credits.Ledger
	Model  *Model
}

// T is a test that draws the steps of a Machine.
type T interface {
	Fatalf(format string, args ...any)
	// Draw returns a number from 0 up to n, without n. what is for the log.
	Draw(n int, what string) int
}

var (
	orgs    = []string{"acme", "umbrella", "\"ö\n"}
	actions = []string{"grant", "seed", "reserve", "reserve to last", "charge", "charge", "charge", "release", "end"}
)

// Step does something at random, and checks that the ledger does as the model.
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
		if short := m.Model.short(r); short != nil {
			want = credits.ErrInsufficient
			var told *credits.InsufficientError
			if errors.As(err, &told) && *told != *short {
				t.Fatalf("%+v is short, want %+v", told, short)
			}
		} else {
			m.Model.Reservations = append(m.Model.Reservations, &Reserved{Reservation: r})
		}
	default:
		if len(m.Model.Reservations) == 0 {
			return
		}
		r := m.Model.Reservations[t.Draw(len(m.Model.Reservations), "reservation")]
		lasts := action == "end"
		switch {
		case lasts:
			_, err = m.Ledger.End(ctx, r.ID, amount)
		case action == "release":
			err = m.Ledger.Release(ctx, r.Reservation)
			r.Released = r.Released || r.Until == 0
		default:
			err = m.Ledger.Charge(ctx, r.Reservation, amount)
		}
		switch {
		case action == "release":
		case r.Released || lasts != (r.Until > 0):
			want = credits.ErrNoReservation
		default:
			r.Charged, r.Released = amount, lasts
		}
	}
	if !is(err, want) {
		t.Fatalf("the error is %v, want %v", err, want)
	}
	m.Check(t)
}

// ends is when the windows of the tests end: no test takes so long.
var ends = storage.Millis(time.Now().Add(24 * time.Hour))

// windows are what budgets count, without their organisation.
var windows = []credits.Hold{
	{Account: credits.Account{Budget: "month", Begins: 1, Ends: ends}},
	{Account: credits.Account{Budget: "month", Begins: 2, Ends: ends}},
	{Account: credits.Account{Budget: "user", Value: "ada"}},
	{Account: credits.Account{Budget: "user", Value: "b:o\n"}},
	{Account: credits.Account{Budget: "user"}},
	rolling(0), rolling(time.Hour), rolling(25 * time.Hour),
}

// rolling is a hold in a window of a day, so long after the test began.
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
