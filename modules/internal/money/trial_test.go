package money

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// A trial of a budget over a month of recorded calls refuses the calls that the budget refuses if
// what a call may use is what it uses, call by call, and counts the same.
func TestTrialRefusesWhatTheBudgetRefuses(t *testing.T) {
	rules := []*Budget{
		{Name: "month", Limit: "40", Window: "month"},
		{Name: "each", Limit: "0.90", Window: "day", Per: "user", Trust: true},
		{Name: "pace", Limit: "9", Quantity: "requests", Window: "day", Per: "user", Trust: true},
		{Name: "words", Limit: "2000", Quantity: "output_tokens", Window: "7h"},
		{Name: "all", Limit: "60", Window: "total", Unpriced: passUnpriced},
	}
	m, store := withStore(t)
	journal, err := store.Journal()
	if err != nil {
		t.Fatal(err)
	}
	numbers := rand.New(rand.NewPCG(53, 4))
	begin := moment(t, "2099-10-01T00:00:00Z") // a ledger forgets windows that are over
	var records []*storage.Record
	for i := range 1000 {
		tokens := 1 + numbers.Int64N(400)
		r := &storage.Record{
			ID: uuid.Must(uuid.NewV7()), Org: stores.DefaultName, UserID: fmt.Sprint("user", numbers.IntN(4)), GatewayNode: "n", TargetURL: "/v1",
			CreatedAt: begin + storage.Timestamp(i)*storage.Timestamp(43*time.Minute/time.Millisecond),
			Usage:     plugins.Usage{Input: plugins.Known(1), Output: plugins.Known(tokens)}, Status: plugins.Known(200),
		}
		if i%97 != 0 {
			r.Cost = plugins.KnownCost(plugins.Nanodollars(tokens * (1 + numbers.Int64N(1e6))))
		}
		records = append(records, r)
		if err := journal.Append(r, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, rule := range rules {
		refusing, _ := withLedger(t, rule)
		var want []uuid.UUID
		admitted := plugins.Nanodollars(0)
		for _, r := range records {
			used := bound.Used{Cost: r.Cost, Usage: r.Usage}
			s := spendingOf(r.UserID, r.CreatedAt, 0)
			s.MaxUsage = func(int64) bound.Used { return used }
			bill, err := refusing.Admit(t.Context(), s)
			if err != nil {
				want = append(want, r.ID)
				continue
			}
			if n, _ := rule.used(r); true {
				admitted += n
			}
			if err := errors.Join(bill.Charge(t.Context(), used), bill.Release(t.Context())); err != nil {
				t.Fatal(err)
			}
		}
		var got []uuid.UUID
		tried, err := m.Try(t.Context(), rule, begin, records[len(records)-1].CreatedAt+1, func(r *Refusal) { got = append(got, r.ID) })
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) || tried.Calls != 1000 || tried.Refused != int64(len(want)) || tried.Admitted != admitted {
			t.Errorf("%s: a trial refuses %d calls and counts %d, the budget refuses %d and counts %d", rule.Name, len(got), tried.Admitted, len(want), admitted)
		}
		if len(want) < 10 || len(want) > 900 {
			t.Errorf("%s refuses %d calls: they are no test", rule.Name, len(want))
		}
	}
}

// What runs at the same time is what counts for a limit of calls at once. Calls that no budget
// can refuse do not count.
func TestTrialOfConcurrentCalls(t *testing.T) {
	m, store := withStore(t)
	journal, err := store.Journal()
	if err != nil {
		t.Fatal(err)
	}
	begin := moment(t, "2026-10-01T00:00:00Z")
	for i, call := range []struct {
		at, length int64
		change     func(*storage.Record)
		refused    bool
	}{
		{0, 100, nil, false},
		{10, 10, nil, false},
		{15, 50, nil, true},
		{20, 5, nil, false},
		{21, 5, func(r *storage.Record) { r.GatewayNode = "" }, false}, // it was reported
		{22, 5, func(r *storage.Record) { r.Subscription = true }, false},
	} {
		r := &storage.Record{
			ID: uuid.Must(uuid.NewV7()), Org: stores.DefaultName, GatewayNode: "n", TargetURL: "/v1", UserID: fmt.Sprint(i, call.refused),
			CreatedAt: begin + storage.Timestamp(call.at), Latency: plugins.KnownDuration(time.Duration(call.length) * time.Millisecond),
		}
		if call.change != nil {
			call.change(r)
		}
		if err := journal.Append(r, nil); err != nil {
			t.Fatal(err)
		}
	}
	b := &Budget{Name: "b", Limit: "2", Quantity: "concurrent"}
	if err := b.provision(stores.DefaultName, func(string) bool { return false }); err != nil {
		t.Fatal(err)
	}
	var refused []string
	tried, err := m.Try(t.Context(), b, begin, begin+1000, func(r *Refusal) { refused = append(refused, r.User) })
	if err != nil || !slices.Equal(refused, []string{"2 true"}) || tried.Calls != 4 || len(tried.callers) != 1 {
		t.Errorf("%v, %+v, refused %v", err, tried, refused)
	}
}
