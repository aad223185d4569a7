package creditstest

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
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

// Balances returns what the ledger must return.
func (m *Model) Balances() []credits.Balance {
	list := []credits.Balance{}
	for _, g := range m.Grants {
		if !slices.ContainsFunc(list, func(b credits.Balance) bool { return b.Org == g.Org }) {
			list = append(list, credits.Balance{Org: g.Org})
		}
	}
	for i := range list {
		b := &list[i]
		for _, g := range m.Grants {
			if g.Org == b.Org {
				b.Granted += g.N
			}
		}
		for _, r := range m.Reservations {
			if r.Org != b.Org {
				continue
			}
			b.Spent += r.Charged
			if !r.Released {
				b.Reserved += max(r.Amount-r.Charged, 0)
			}
		}
	}
	slices.SortFunc(list, func(a, b credits.Balance) int { return cmp.Compare(a.Org, b.Org) })
	return list
}

// Balance returns what the ledger must return.
func (m *Model) Balance(org string) credits.Balance {
	for _, b := range m.Balances() {
		if b.Org == org {
			return b
		}
	}
	return credits.Balance{Org: org}
}

// Clone returns the model after the death of all nodes: charges stay, reservations
// end.
func (m *Model) Clone() *Model {
	dead := &Model{Grants: slices.Clone(m.Grants)}
	for _, r := range m.Reservations {
		dead.Reservations = append(dead.Reservations, &Reserved{r.Reservation, r.Charged, true})
	}
	return dead
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
	actions = []string{"grant", "seed", "reserve", "charge", "charge", "charge", "release"}
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
	case "reserve":
		r := credits.Reservation{ID: uuid.New(), Org: org, Amount: amount}
		err = m.Ledger.Reserve(ctx, r)
		known := slices.ContainsFunc(m.Model.Grants, func(g Amount) bool { return g.Org == org })
		if !known || m.Model.Balance(org).Available() < amount {
			want = credits.ErrInsufficient
		} else {
			m.Model.Reservations = append(m.Model.Reservations, &Reserved{Reservation: r})
		}
	default:
		if len(m.Model.Reservations) == 0 {
			return
		}
		r := m.Model.Reservations[t.Draw(len(m.Model.Reservations), "reservation")]
		if action == "release" {
			err = m.Ledger.Release(ctx, r.Reservation)
			r.Released = true
			break
		}
		err = m.Ledger.Charge(ctx, r.Reservation, amount)
		if r.Released {
			want = credits.ErrNoReservation
		} else {
			r.Charged = amount
		}
	}
	if !is(err, want) {
		t.Fatalf("the error is %v, want %v", err, want)
	}
	m.Check(t)
}

// Check compares the balances.
func (m *Machine) Check(t T) {
	got, err := m.Ledger.Balances(context.Background())
	if want := m.Model.Balances(); err != nil || !slices.Equal(got, want) {
		t.Fatalf("the balances are %s, %v; want %s", fmt.Sprint(got), err, fmt.Sprint(want))
	}
}
