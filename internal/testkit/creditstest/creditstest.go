// Package creditstest tests ledgers of credits.
package creditstest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
)

// Place is where one ledger is kept. A node at a time has it open.
type Place struct {
	// Open opens the ledger for a node, and settles nothing.
	Open func() (credits.Ledger, error)
	// Kill ends a node as the death of its process does, without Close, and
	// returns when its lease has expired.
	Kill func(credits.Ledger)
}

// Run checks a kind of ledger. place makes a place with a new, empty ledger.
func Run(t *testing.T, place func() Place) {
	for name, test := range map[string]func(*testing.T, *node){
		"reserve, charge, release":                       testAccounting,
		"repeated calls change nothing":                  testRepeated,
		"a refused reservation reserves nothing":         testRefused,
		"a charge may exceed its reservation":            testBeyond,
		"no charge without a reservation":                testNoReservation,
		"a seed is granted once":                         testSeed,
		"what a node has reserved is spent by its death": testRestart,
		"what a node has left is settled once":           testSettled,
		"what lasts outlives its node":                   testLasting,
		"what has lasted too long is spent":              testExpired,
		"concurrent calls reserve no more than there is": testConcurrent,
		"a closed ledger is unavailable":                 testClosed,
	} {
		t.Run(name, func(t *testing.T) {
			n := &node{t: t, place: place()}
			n.open()
			t.Cleanup(func() { _ = n.Close(context.Background()) })
			test(t, n)
		})
	}
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("random calls and deaths ", seed), func(t *testing.T) {
			testRandom(random{t, rand.New(rand.NewPCG(seed, 0))}, place())
		})
	}
}

// random is a test that draws numbers.
type random struct {
	testing.TB
	numbers *rand.Rand
}

func (r random) Draw(n int, _ string) int { return r.numbers.IntN(n) }

func testRandom(t random, p Place) {
	m := &Machine{Model: new(Model)}
	open := func() {
		var err error
		if m.Ledger, err = p.Open(); err != nil {
			t.Fatal(err)
		}
		m.Settle(t)
		m.Check(t)
	}
	open()
	for range 100 {
		switch t.Draw(8, "") {
		case 0:
			p.Kill(m.Ledger)
			open()
		case 1:
			if err := m.Ledger.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			open()
		default:
			m.Step(t)
		}
	}
	_ = m.Ledger.Close(context.Background())
}

// matches reports whether err is want, nil included.
func matches(err, want error) bool {
	return want == nil && err == nil || want != nil && errors.Is(err, want)
}

// node has a ledger open.
type node struct {
	credits.Ledger
	t     *testing.T
	place Place
}

// open opens the ledger again, and settles the calls of the process before with the most that
// they can have cost.
func (n *node) open() {
	n.t.Helper()
	n.openLeft()
	n.do(settle(n.Ledger, HighestReservation))
}

// settle waits until everything is settled: a ledger that was away may put it off.
func settle(l credits.Ledger, total func(credits.Reservation, plugins.Nanodollars) (plugins.Nanodollars, error)) error {
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		switch settled, err := l.Settle(context.Background(), total); {
		case settled || err != nil:
			return err
		case time.Now().After(deadline):
			return errors.New("what a node has left is not settled within 30 seconds")
		}
	}
}

// openLeft is open with what the process before has left.
func (n *node) openLeft() {
	n.t.Helper()
	var err error
	if n.Ledger, err = n.place.Open(); err != nil {
		n.t.Fatal(err)
	}
}

// HighestReservation is what a call of a process that has died can have cost, for Settle.
func HighestReservation(r credits.Reservation, charged plugins.Nanodollars) (plugins.Nanodollars, error) {
	return max(r.Lost, charged), nil
}

func (n *node) do(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// want checks the credits of acme.
func (n *node) want(granted, spent, reserved plugins.Nanodollars) {
	n.t.Helper()
	want := credits.Balance{Account: acme, Granted: granted, Spent: spent, Reserved: reserved}
	got, err := n.Balance(n.t.Context(), credits.Hold{Account: acme})
	if err != nil || got != want {
		n.t.Fatalf("the balance is %+v, %v; want %+v", got, err, want)
	}
	list, err := n.Balances(n.t.Context())
	if err != nil || !slices.Contains(list, want) {
		n.t.Fatalf("the balances are %+v, %v; want %+v", list, err, want)
	}
}

// acme are the credits of an organisation.
var acme = credits.Account{Org: "acme"}

// reservationOf is a reservation for acme.
func reservationOf(amount plugins.Nanodollars) credits.Reservation {
	return credits.Reservation{ID: uuid.New(), Org: "acme", Amount: amount, Holds: []credits.Hold{{Account: acme}}}
}

func testAccounting(t *testing.T, n *node) {
	ctx := t.Context()
	n.do(n.Grant(ctx, "acme", 70))
	n.do(n.Grant(ctx, "acme", 40))
	n.do(n.Grant(ctx, "acme", -10))
	r := reservationOf(60)
	n.do(n.Reserve(ctx, r))
	n.want(100, 0, 60)
	n.do(n.Charge(ctx, r, 10))
	n.want(100, 10, 50)
	n.do(n.Charge(ctx, r, 25)) // usage that came later
	n.want(100, 25, 35)
	n.do(n.Charge(ctx, r, 5)) // what was known before was too much
	n.want(100, 5, 55)
	n.do(n.Release(ctx, r))
	n.want(100, 5, 0)
}

func testRepeated(t *testing.T, n *node) {
	ctx := t.Context()
	n.do(n.Grant(ctx, "acme", 100))
	r := reservationOf(60)
	for range 2 {
		n.do(n.Reserve(ctx, r))
		n.want(100, 0, 60)
	}
	for range 2 {
		n.do(n.Charge(ctx, r, 10))
		n.want(100, 10, 50)
	}
	n.do(n.Reserve(ctx, r))
	n.want(100, 10, 50)
	for range 2 {
		n.do(n.Release(ctx, r))
		n.want(100, 10, 0)
	}
}

func testRefused(t *testing.T, n *node) {
	ctx := t.Context()
	n.do(n.Grant(ctx, "acme", 100))
	reserved := reservationOf(60)
	n.do(n.Reserve(ctx, reserved))
	for name, c := range map[string]struct {
		reservation  credits.Reservation
		insufficient bool
	}{
		"too much":            {reservationOf(41), true},
		"no organisation":     {credits.Reservation{ID: uuid.New(), Org: "nobody", Holds: []credits.Hold{{Account: credits.Account{Org: "nobody"}}}}, true},
		"less than nothing":   {reservationOf(-1), false},
		"no account":          {credits.Reservation{ID: uuid.New(), Org: "acme"}, false},
		"an id that is taken": {credits.Reservation{ID: reserved.ID, Org: "acme", Amount: 1, Holds: []credits.Hold{{Account: acme}}}, false},
	} {
		err := n.Reserve(ctx, c.reservation)
		if err == nil || errors.Is(err, credits.ErrInsufficient) != c.insufficient {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	n.want(100, 0, 60)
	n.do(n.Reserve(ctx, reservationOf(40)))
	n.do(n.Reserve(ctx, reservationOf(0)))
	n.want(100, 0, 100)
	if list, err := n.Balances(ctx); err != nil || len(list) != 1 {
		t.Errorf("who was refused has an account: %+v, %v", list, err)
	}
}

func testBeyond(t *testing.T, n *node) {
	ctx := t.Context()
	n.do(n.Grant(ctx, "acme", 100))
	r := reservationOf(75)
	n.do(n.Reserve(ctx, r))
	n.do(n.Charge(ctx, r, 120))
	n.want(100, 120, 0)
	if err := n.Reserve(ctx, reservationOf(0)); !errors.Is(err, credits.ErrInsufficient) {
		t.Errorf("reserved on a debt: %v", err)
	}
	n.do(n.Charge(ctx, r, 70))
	n.want(100, 70, 5)
	n.do(n.Release(ctx, r))
	n.want(100, 70, 0)
}

func testNoReservation(t *testing.T, n *node) {
	ctx := t.Context()
	n.do(n.Grant(ctx, "acme", 100))
	n.do(n.Release(ctx, reservationOf(1)))
	released := reservationOf(10)
	n.do(n.Reserve(ctx, released))
	n.do(n.Charge(ctx, released, 10))
	n.do(n.Release(ctx, released))
	for name, r := range map[string]credits.Reservation{"never made": reservationOf(10), "released": released} {
		if err := n.Charge(ctx, r, 20); !errors.Is(err, credits.ErrNoReservation) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	n.want(100, 10, 0)
}

func testSeed(t *testing.T, n *node) {
	ctx := t.Context()
	for range 2 {
		n.do(n.Seed(ctx, "acme", 100))
		n.want(100, 0, 0)
	}
	n.do(n.Close(ctx))
	n.open()
	n.do(n.Seed(ctx, "acme", 100))
	n.want(100, 0, 0)
	n.do(n.Grant(ctx, "acme", -100))
	n.do(n.Seed(ctx, "acme", 100)) // what was taken back is not seeded again
	n.want(0, 0, 0)
}

func testRestart(t *testing.T, n *node) {
	ctx := t.Context()
	for name, end := range map[string]func(){
		"death": func() { n.place.Kill(n.Ledger) },
		"close": func() { n.do(n.Close(ctx)) },
	} {
		before, err := n.Balance(ctx, credits.Hold{Account: acme})
		n.do(err)
		n.do(n.Grant(ctx, "acme", 100))
		lost, charged, ends, released := reservationOf(40), reservationOf(10), reservationOf(30), reservationOf(10)
		lost.Lost, charged.Lost, released.Lost = 35, 10, 10
		for _, r := range []credits.Reservation{lost, charged, ends, released} {
			n.do(n.Reserve(ctx, r))
		}
		n.do(n.Charge(ctx, lost, 20))
		n.do(n.Charge(ctx, charged, 15))
		n.do(n.Charge(ctx, released, 5))
		n.do(n.Release(ctx, released))
		end()
		n.open()
		spent := before.Spent + 35 + 15 + 5
		n.want(before.Granted+100, spent, 0)
		all := reservationOf(before.Granted + 100 - spent)
		if err := n.Reserve(ctx, all); err != nil {
			t.Errorf("after %s what ends with the node is not free: %v", name, err)
		}
		n.do(n.Release(ctx, all))
	}
}

func testSettled(t *testing.T, n *node) {
	ctx := t.Context()
	n.do(n.Grant(ctx, "acme", 1000))
	run := credits.Hold{Account: credits.Account{Org: "acme", Budget: "run", Value: "a"}, Limit: 500}
	untouched, cut, early, counted, lasts := reservationOf(60), reservationOf(50), reservationOf(40), reservationOf(30), reservationOf(20)
	untouched.Lost, cut.Lost, early.Lost, lasts.Lost, lasts.Until = 60, 50, 70, 20, ends
	charged := map[uuid.UUID]plugins.Nanodollars{untouched.ID: 25, cut.ID: 20, early.ID: 0}
	costs := map[uuid.UUID]plugins.Nanodollars{untouched.ID: 25, cut.ID: 50, early.ID: 7}
	unsettled := map[uuid.UUID]credits.Reservation{}
	for i, r := range []credits.Reservation{untouched, cut, early, counted, lasts} {
		r.Holds = append(r.Holds, run)
		r.Call = credits.Call{ID: uuid.New(), CreatedAt: storage.Timestamp(i + 1), Spent: 3, UserID: "\"ö\n", Model: "m"}
		n.do(n.Reserve(ctx, r))
		if r.Until == 0 && r.Lost > 0 {
			unsettled[r.ID] = r
		}
	}
	n.do(n.Charge(ctx, untouched, 10))
	n.do(n.Charge(ctx, untouched, 25))
	n.do(n.Charge(ctx, cut, 20))
	n.do(n.Charge(ctx, counted, 5))
	broken := errors.New("the records cannot be read")
	settle := func(fails func(uuid.UUID) bool) error {
		t.Helper()
		return settle(n, func(r credits.Reservation, paid plugins.Nanodollars) (plugins.Nanodollars, error) {
			want, known := unsettled[r.ID]
			if !known || r.Org != want.Org || r.Lost != want.Lost || r.Call != want.Call || !slices.Equal(r.Accounts(), want.Accounts()) || paid != charged[r.ID] {
				t.Errorf("%+v is left with %s charged, want %+v with %s", r, paid, want, charged[r.ID])
			}
			if fails(r.ID) {
				return 0, broken
			}
			delete(unsettled, r.ID)
			return costs[r.ID], nil
		})
	}
	for range 2 { // a process that dies before it has settled anything
		n.place.Kill(n.Ledger)
		n.openLeft()
		b, err := n.Balance(ctx, run)
		if n.do(err); b.Spent+b.Reserved < 60+50+70+5+20 {
			t.Errorf("too much is free before it is settled: %+v", b)
		}
	}
	if err := settle(func(id uuid.UUID) bool { return id == cut.ID }); !errors.Is(err, broken) || len(unsettled) != 1 {
		t.Errorf("settled: %v; %d are left", err, len(unsettled))
	}
	n.place.Kill(n.Ledger)
	n.openLeft()
	for range 2 {
		if err := settle(func(uuid.UUID) bool { return false }); err != nil || len(unsettled) != 0 {
			t.Errorf("settled: %v; %d are left", err, len(unsettled))
		}
		n.want(1000, 25+50+7+5, 20)
		if b, err := n.Balance(ctx, run); err != nil || b.Spent != 25+50+7+5 || b.Reserved != 20 {
			t.Errorf("the budget counts %+v, %v", b, err)
		}
		n.place.Kill(n.Ledger)
		n.openLeft()
	}
}

func testLasting(t *testing.T, n *node) {
	ctx := t.Context()
	n.do(n.Grant(ctx, "acme", 100))
	budget := credits.Hold{Account: credits.Account{Org: "acme", Budget: "run", Value: "a"}, Limit: 70}
	r := reservationOf(60)
	r.Lost, r.Until = 60, ends
	r.Holds = append(r.Holds, budget)
	for range 2 {
		n.do(n.Reserve(ctx, r))
	}
	for name, end := range map[string]func(){
		"death": func() { n.place.Kill(n.Ledger) },
		"close": func() { n.do(n.Close(ctx)) },
	} {
		end()
		n.open()
		n.want(100, 0, 60)
		if err := n.Reserve(ctx, reservationOf(41)); !errors.Is(err, credits.ErrInsufficient) {
			t.Errorf("after %s, what is reserved is free: %v", name, err)
		}
	}
	if err := n.Charge(ctx, r, 10); !errors.Is(err, credits.ErrNoReservation) {
		t.Errorf("charged: %v", err)
	}
	n.do(n.Release(ctx, r))
	n.want(100, 0, 60)
	accounts, err := n.End(ctx, r.ID, 25)
	if n.do(err); !slices.Equal(accounts, r.Accounts()) {
		t.Errorf("the accounts are %+v", accounts)
	}
	n.want(100, 25, 0)
	if b, err := n.Balance(ctx, budget); err != nil || b.Spent != 25 || b.Reserved != 0 {
		t.Errorf("the budget counts %+v, %v", b, err)
	}
	short := reservationOf(1)
	short.Lost = 1
	n.do(n.Reserve(ctx, short))
	for name, id := range map[string]uuid.UUID{"ended": r.ID, "never made": uuid.New(), "of a call": short.ID} {
		if _, err := n.End(ctx, id, 10); !errors.Is(err, credits.ErrNoReservation) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	n.do(n.Release(ctx, short))
	refused := r
	refused.ID = uuid.New()
	refused.Holds = []credits.Hold{{Account: acme}, {Account: credits.Account{Org: "acme", Budget: "run", Value: "b"}, Limit: 70}}
	n.do(n.Reserve(ctx, refused))
	_, err = n.End(ctx, refused.ID, 0)
	n.do(err)
	n.place.Kill(n.Ledger)
	n.open()
	n.want(100, 25, 0)
}

func testExpired(t *testing.T, n *node) {
	ctx := t.Context()
	n.do(n.Grant(ctx, "acme", 100))
	lasting, r := reservationOf(20), reservationOf(60)
	lasting.Lost, lasting.Until = 20, storage.Millis(time.Now().Add(time.Hour))
	r.Lost, r.Until = 60, storage.Millis(time.Now().Add(100*time.Millisecond))
	n.do(n.Reserve(ctx, lasting))
	n.want(100, 0, 20)
	n.do(n.Reserve(ctx, r))
	late := time.Now().Add(20 * time.Second)
	for b := (credits.Balance{}); b.Spent != 60 || b.Reserved != 20; time.Sleep(10 * time.Millisecond) {
		other := reservationOf(0)
		n.do(n.Reserve(ctx, other))
		n.do(n.Release(ctx, other))
		var err error
		if b, err = n.Balance(ctx, credits.Hold{Account: acme}); err != nil || time.Now().After(late) {
			t.Fatalf("the balance is %+v, %v", b, err)
		}
	}
	if _, err := n.End(ctx, r.ID, 10); !errors.Is(err, credits.ErrNoReservation) {
		t.Errorf("ended again: %v", err)
	}
}

func testConcurrent(t *testing.T, n *node) {
	ctx := t.Context()
	n.do(n.Grant(ctx, "acme", 1000))
	var group sync.WaitGroup
	var charged, refused atomic.Int64
	for range 20 {
		group.Go(func() {
			for range 20 {
				r := reservationOf(7)
				switch err := n.Reserve(ctx, r); {
				case errors.Is(err, credits.ErrInsufficient):
					refused.Add(1)
					continue
				case err != nil:
					t.Error(err)
				}
				if b, err := n.Balance(ctx, credits.Hold{Account: acme}); err != nil || b.Available() < 0 {
					t.Errorf("the balance is %+v, %v", b, err)
				}
				if err := n.Charge(ctx, r, 5); err != nil {
					t.Error(err)
				}
				charged.Add(5)
				if err := n.Release(ctx, r); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	n.want(1000, plugins.Nanodollars(charged.Load()), 0)
	if remaining := 1000 - charged.Load(); remaining < 0 || refused.Load() == 0 {
		t.Errorf("%d are left, %d were refused", remaining, refused.Load())
	}
	n.place.Kill(n.Ledger)
	n.open()
	n.want(1000, plugins.Nanodollars(charged.Load()), 0)
}

func testClosed(t *testing.T, n *node) {
	ctx := t.Context()
	n.do(n.Grant(ctx, "acme", 100))
	r := reservationOf(10)
	n.do(n.Reserve(ctx, r))
	n.do(n.Close(ctx))
	n.do(n.Close(ctx))
	_, ended := n.End(ctx, r.ID, 1)
	_, balance := n.Balance(ctx, credits.Hold{Account: acme})
	_, balances := n.Balances(ctx)
	for name, err := range map[string]error{
		"Grant": n.Grant(ctx, "acme", 1), "Seed": n.Seed(ctx, "other", 1), "Reserve": n.Reserve(ctx, reservationOf(1)),
		"Charge": n.Charge(ctx, r, 1), "Release": n.Release(ctx, r), "End": ended, "Balance": balance, "Balances": balances,
	} {
		if !errors.Is(err, credits.ErrUnavailable) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	n.open()
	n.want(100, 0, 0)
}
