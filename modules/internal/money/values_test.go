package money

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
)

// full is a ledger that counts no more values.
type full struct{ credits.Ledger }

func (full) Reserve(_ context.Context, r credits.Reservation) error {
	return &credits.FullError{Account: r.Holds[0].Account}
}

// A call of one value too many is refused, and the refusal names the budget and what to do.
func TestOneValueTooManyIsRefused(t *testing.T) {
	m := newBudgets(t, &Budget{Name: "each-run", Limit: "5", Window: "total", Per: "tree"})
	m.Ledger = func(string) (credits.Ledger, error) { return full{}, nil }
	_, err := m.Admit(t.Context(), Spending{
		Org: stores.DefaultName, Provider: "openai", Model: "m", Record: new(storage.Record),
		MaxUsage: func(int64) bound.Used { return bound.Used{Cost: plugins.KnownCost(1)} },
	})
	refusal, ok := errors.AsType[*plugins.Error](err)
	if !ok || refusal.Status != http.StatusTooManyRequests || !refusal.Final || !strings.Contains(refusal.Message, "each-run") || !strings.Contains(refusal.Message, "give the budget a window") {
		t.Errorf("the refusal is %+v", err)
	}
}

func TestAmountsForPeople(t *testing.T) {
	for want, n := range map[string]plugins.Nanodollars{
		"$0": 0, "$0.0195": 19_500_000, "$0.000021": 21_000, "$0.000000001": 1, "$0.50": 500_000_000, "$1.00": 999_999_999,
		"$499.99": 499_988_100_000, "$1,312.05": 1_312_047_000_000, "-$0.0042": -4_200_000,
	} {
		if got := dollars.text(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
	if got := findQuantity("tokens").text(1_200); got != "1200 tokens" {
		t.Errorf("got %s", got)
	}
}
