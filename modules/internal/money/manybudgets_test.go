//go:build !race

package money

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage/credits"
)

const (
	ofOtherKeys = `{"request_response_rmt":{"key_id":{"equals":"key_%d"}}}`
	ofAllKeys   = `{"request_response_rmt":{"key_id":{"not-equals":"key_%d"}}}`
)

// manyBudgets are so many budgets of an organisation, and a call that can be lowered.
func manyBudgets(t testing.TB, budgets int, filter string) (*Budgets, Spending) {
	t.Helper()
	all := make([]*Budget, budgets)
	for i := range all {
		all[i] = &Budget{Name: fmt.Sprint("budget ", i), Limit: "1000000", Filter: fmt.Appendf(nil, filter, i)}
	}
	m, _ := withLedger(t, all...)
	call := spendingOf("ada", 1e12, 1000)
	call.Fit = bound.Limits{Least: 1, Asked: 1000}
	return m, call
}

// A call is compared with each budget of its organisation, but no budget with another.
// The race detector makes a comparison so slow that other processes interrupt each of them.
func TestManyBudgets(t *testing.T) {
	fastest := func(budgets int, filter string) time.Duration {
		m, call := manyBudgets(t, budgets, filter)
		least := time.Duration(math.MaxInt64)
		for range 20 {
			began := time.Now()
			counting, err := m.holdsFor(&call)
			part := &share{quantity: dollars, Reservation: credits.Reservation{Holds: make([]credits.Hold, len(counting))}}
			part.reducedHolds(call, counting)
			least = min(least, time.Since(began))
			if want := map[string]int{ofAllKeys: budgets}[filter]; err != nil || len(counting) != want {
				t.Fatalf("%d of %d budgets count the call: %v", len(counting), budgets, err)
			}
		}
		return least
	}
	few, many := fastest(250, ofAllKeys), fastest(2000, ofAllKeys)
	if many > 24*few {
		t.Errorf("it takes %s to find that 2,000 budgets count a call, and %s for 250", many, few)
	}
	if none := fastest(2000, ofOtherKeys); none > many/4 {
		t.Errorf("it takes %s to find that none of 2,000 budgets counts a call, and %s to find that all do", none, many)
	}
}

// BenchmarkManyBudgets measures a call in an organisation of 2,000 budgets, from Admit to Release.
func BenchmarkManyBudgets(b *testing.B) {
	for name, filter := range map[string]string{"of other keys": ofOtherKeys, "of all keys": ofAllKeys} {
		b.Run(name, func(b *testing.B) {
			m, call := manyBudgets(b, 2000, filter)
			for b.Loop() {
				bill, err := m.Admit(b.Context(), call)
				if err != nil {
					b.Fatal(err)
				}
				if err := errors.Join(bill.Charge(b.Context(), bound.Used{Cost: plugins.KnownCost(10)}), bill.Release(b.Context())); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
