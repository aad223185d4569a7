package money

import (
	"net/http"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
)

// What is set aside for a batch ends once, with what its calls have used, in every budget that
// counts them. Two batches have reservations of their own, though a client has given both records
// one id.
func TestBatchesEndOnce(t *testing.T) {
	budgets, ledger := withLedger(t, &Budget{Name: "all", Limit: "10", Window: "total", Stages: []*Stage{{At: 50}}},
		&Budget{Name: "words", Limit: "1000", Quantity: "tokens", Window: "total"}, &Budget{Name: "calls", Limit: "10", Quantity: "requests", Window: "total"},
		&Budget{Name: "at once", Limit: "1", Quantity: "concurrent"})
	logs, lines := observer.New(zap.WarnLevel)
	budgets.Logger = zap.New(logs)
	s := spendingOf("ada", storage.Millis(time.Now()), 4e9)
	s.Batch = []string{"m", "n"}
	s.MaxUsage = func(int64) bound.Used {
		return bound.Used{Cost: plugins.KnownCost(4e9), Usage: plugins.Usage{Input: plugins.Known(100), Output: plugins.Known(200)}}
	}
	want := func(when string, expected map[string][2]plugins.Nanodollars) {
		t.Helper()
		for name, want := range expected {
			b, err := ledger.Balance(t.Context(), credits.Hold{Account: credits.Account{Org: stores.DefaultName, Budget: name}})
			if err != nil || b.Spent != want[0] || b.Reserved != want[1] {
				t.Errorf("%s, %q has %+v, %v; want %d", when, name, b, err, want)
			}
		}
	}
	var made []*Bill
	for range 2 {
		bill, err := budgets.Admit(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if err := bill.Charge(t.Context(), bound.Used{Cost: plugins.KnownCost(0)}); err != nil {
			t.Error(err)
		}
		bill.Answered(http.StatusOK, nil)
		if err := bill.Release(t.Context()); err != nil {
			t.Error(err)
		}
		made = append(made, bill)
	}
	want("while both run", map[string][2]plugins.Nanodollars{"all": {0, 8e9}, "words\ntokens": {0, 600}, "calls\nrequests": {2, 0}, "at once\nconcurrent": {0, 0}})
	used := bound.Used{Usage: plugins.Usage{Input: plugins.Known(10), Output: plugins.Known(20)}}
	for range 2 {
		if err := budgets.EndBatch(t.Context(), stores.DefaultName, made[0].Batch(), used); err != nil {
			t.Error(err)
		}
		want("without a cost", map[string][2]plugins.Nanodollars{"all": {0, 8e9}, "words\ntokens": {30, 300}})
	}
	for i, cost := range []plugins.Nanodollars{3e9, 2e9} {
		used.Cost = plugins.KnownCost(cost)
		for range 2 {
			if err := budgets.EndBatch(t.Context(), stores.DefaultName, made[i].Batch(), used); err != nil {
				t.Error(err)
			}
		}
		if told := lines.FilterMessage("a budget is spent to a part of its limit").Len(); told != i {
			t.Errorf("%d alerts after %d batches", told, i+1)
		}
	}
	want("in the end", map[string][2]plugins.Nanodollars{"all": {5e9, 0}, "words\ntokens": {60, 0}})
}
