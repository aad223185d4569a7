package money

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
)

// Over a month of made-up calls, budgets that observe report the calls that the same budgets refuse
// in a second run, call by call, and refuse none. What they would have lowered counts as lowered.
func TestObserveReportsWhatRefuseRefuses(t *testing.T) {
	for _, fit := range []bool{false, true} {
		t.Run(fmt.Sprint("fit ", fit), func(t *testing.T) { observeAMonth(t, fit) })
	}
}

func observeAMonth(t *testing.T, fit bool) {
	rules := func(observe bool) []*Budget {
		return []*Budget{
			{Name: "month", Limit: "40", Window: "month", Observe: observe},
			{Name: "each", Limit: "0.90", Window: "day", Per: "user", Trust: true, Observe: observe},
			{Name: "pace", Limit: "9", Quantity: "requests", Window: "day", Per: "user", Trust: true, Observe: observe},
			{Name: "words", Limit: "2000", Quantity: "output_tokens", Window: "7h", Observe: observe},
		}
	}
	observing, ledger := withLedger(t, rules(true)...)
	refusing, _ := withLedger(t, rules(false)...)
	numbers := rand.New(rand.NewPCG(53, 3))
	begin := moment(t, "2099-10-01T00:00:00Z") // a ledger forgets windows that are over
	refused := make(map[string]int)
	for i := range 1000 {
		at := begin + storage.Timestamp(i)*storage.Timestamp(43*time.Minute/time.Millisecond)
		user, tokens := fmt.Sprint("user", numbers.IntN(4)), 1+numbers.Int64N(400)
		price, written := 1+numbers.Int64N(1e6), numbers.Int64N(tokens+1)
		used := func(output int64) bound.Used {
			return bound.Used{Cost: plugins.KnownCost(plugins.Nanodollars(output * price)), Usage: plugins.Usage{Input: plugins.Known(1), Output: plugins.Known(output)}}
		}
		admit := func(m *Budgets) (*Bill, error) {
			s := spendingOf(user, at, 0)
			if fit {
				s.Fit = bound.Limits{Least: 16, Asked: tokens}
			}
			s.MaxUsage = func(limit int64) bound.Used {
				u := used(min(cmp.Or(limit, tokens), tokens))
				if i%97 == 0 {
					u.Cost = plugins.Cost{}
				}
				return u
			}
			bill, err := m.Admit(t.Context(), s)
			if err != nil {
				return nil, err
			}
			return bill, errors.Join(bill.Charge(t.Context(), used(min(written, cmp.Or(bill.limit(), tokens)))), bill.Release(t.Context()))
		}
		observed, err := admit(observing)
		if err != nil || observed.limit() != 0 {
			t.Fatalf("call %d of budgets that observe: %v, %+v", i, err, observed)
		}
		if _, err := admit(refusing); (err != nil) != (observed.WouldRefuse != "") {
			t.Fatalf("call %d is refused with %v, and observed as %q", i, err, observed.WouldRefuse)
		}
		refused[observed.WouldRefuse]++
	}
	if len(refused) < 3 || refused[""] < 200 || refused[""] > 950 {
		t.Errorf("the calls are no test: %v", refused)
	}
	for _, b := range observing.Configured(stores.DefaultName) {
		for _, mark := range []string{"", surplusMark} {
			accounts, err := ledger.Counted(t.Context(), b.marked(b.hold(new(storage.Record), begin), mark))
			if err != nil {
				t.Fatal(err)
			}
			for _, of := range accounts {
				if of.Reserved != 0 {
					t.Errorf("%q holds %s of %q", of.Budget, of.Reserved, of.Value)
				}
			}
		}
	}
}

// Calls at once are all made, and leave nothing set aside.
func TestObserveAtOnce(t *testing.T) {
	m, ledger := withLedger(t, &Budget{Name: "b", Limit: "5", Window: "total", Observe: true}, &Budget{Name: "crowd", Limit: "2", Quantity: "concurrent", Observe: true})
	var calls sync.WaitGroup
	for range 32 {
		calls.Go(func() {
			bill, err := m.Admit(t.Context(), spendingOf("ada", storage.Millis(time.Now()), 1e9))
			if err == nil {
				err = errors.Join(bill.Charge(t.Context(), bound.Used{Cost: plugins.KnownCost(1e9)}), bill.Release(t.Context()))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	for name, want := range map[string][2]plugins.Nanodollars{"b": {32e9, 32e9}, "b" + surplusMark: {27e9, 32e9}, "crowd\nconcurrent": {}, "crowd\nconcurrent" + surplusMark: {}} {
		of, err := ledger.Balance(t.Context(), credits.Hold{Account: credits.Account{Org: stores.DefaultName, Budget: name}})
		if err != nil || of.Reserved != 0 || of.Spent < want[0] || of.Spent > want[1] {
			t.Errorf("%q has %+v, %v", name, of, err)
		}
	}
}

// A budget that comes to refuse goes on with all that it has counted, and one that comes to observe
// would refuse at once what it has refused before.
func TestObserveKeepsTheAccount(t *testing.T) {
	first, ledger := withLedger(t, &Budget{Name: "b", Limit: "2", Window: "total"})
	now := storage.Millis(time.Now())
	spend := func(m *Budgets, user string) (*Bill, error) {
		bill, err := m.Admit(t.Context(), spendingOf(user, now, 1e9))
		if err == nil {
			if err := bill.Charge(t.Context(), bound.Used{Cost: plugins.KnownCost(1e9)}); err != nil {
				t.Fatal(err)
			}
			err = bill.Release(t.Context())
		}
		return bill, err
	}
	for i, allowed := range []bool{true, true, false} {
		if _, err := spend(first, "ada"); (err == nil) != allowed {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	second := newBudgets(t, &Budget{Name: "b", Limit: "2", Window: "total", Observe: true})
	second.Ledger = first.Ledger
	for _, user := range []string{"ada", "ada", "bob"} {
		bill, err := second.Admit(t.Context(), func() Spending {
			s := spendingOf(user, now, 1e9)
			s.Record.KeyID = user
			return s
		}())
		if err != nil || bill.WouldRefuse != "b" {
			t.Fatalf("%v, %+v", err, bill)
		}
		if err := bill.Charge(t.Context(), bound.Used{Cost: plugins.KnownCost(1e9)}); err != nil {
			t.Fatal(err)
		}
		if err := bill.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	got, err := second.Configured(stores.DefaultName)[0].WouldRefuse(t.Context(), ledger)
	if err != nil || *got != (Refusals{Calls: 3, Callers: 2}) {
		t.Errorf("%+v, %v", got, err)
	}
	third := newBudgets(t, &Budget{Name: "b", Limit: "5.50", Window: "total"})
	third.Ledger = first.Ledger
	if _, err := spend(third, "ada"); err == nil {
		t.Error("what was counted while the budget observed is forgotten")
	}
}

// A ledger that cannot be read stops no call that is only observed.
func TestObserveWithoutLedger(t *testing.T) {
	m := newBudgets(t, &Budget{Name: "b", Limit: "2", Observe: true})
	m.Ledger = func(string) (credits.Ledger, error) { return nil, credits.ErrUnavailable }
	bill, err := m.Admit(t.Context(), spendingOf("ada", 1, 1e9))
	if err != nil || bill.Bounded() {
		t.Errorf("%+v, %v", bill, err)
	}
}

// What a budget that observes would have refused of a batch ends with the batch.
func TestObservedBatchEnds(t *testing.T) {
	m, ledger := withLedger(t, &Budget{Name: "b", Limit: "3", Window: "total", Observe: true})
	s := spendingOf("ada", storage.Millis(time.Now()), 4e9)
	s.Batch = []string{"m"}
	bill, err := m.Admit(t.Context(), s)
	if err != nil || bill.WouldRefuse != "b" {
		t.Fatal(bill, err)
	}
	bill.Answered(200, nil)
	if err := bill.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := m.EndBatch(t.Context(), stores.DefaultName, bill.Batch(), bound.Used{Cost: plugins.KnownCost(1e9)}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b", "b" + surplusMark} {
		of, err := ledger.Balance(t.Context(), credits.Hold{Account: credits.Account{Org: stores.DefaultName, Budget: name}})
		if err != nil || of.Spent != 1e9 || of.Reserved != 0 {
			t.Errorf("%q has %+v, %v", name, of, err)
		}
	}
}
