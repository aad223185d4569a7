package reconcile

import (
	"errors"
	"math"
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
)

// Sums that may have overflowed are an error, and in no report.
func TestSumsThatOverflowAreNotCompared(t *testing.T) {
	day := month.From
	amount, err := ParseAmount("6000000000", 0)
	if err != nil {
		t.Fatal(err)
	}
	twice := func(c Cost) []Cost { return []Cost{c, c} }
	large := plugins.Usage{Input: plugins.Known(math.MaxInt64 - 1), Output: plugins.Known(1)}
	for name, test := range map[string]struct {
		bill  Bill
		calls []Call
		fails bool
	}{
		"amounts of a bill":   {Bill{Costs: twice(Cost{Day: day, Model: "gpt-5", Amount: amount})}, nil, true},
		"credits of a bill":   {Bill{Costs: twice(Cost{Day: day, Amount: Amount{Nanodollars: -amount.Nanodollars}})}, nil, true},
		"tokens of a bill":    {Bill{Usage: []Usage{{Day: day, Model: "gpt-5", Tokens: Tokens{Input: math.MaxInt64, Output: 1}}}}, nil, true},
		"requests of a bill":  {Bill{CountsRequests: true, Usage: []Usage{{Day: day, Requests: math.MinInt64}}}, nil, true},
		"tokens of records":   {Bill{}, []Call{cloudCall("openai", "gpt-5", "", large), cloudCall("openai", "gpt-5", "", large)}, true},
		"the price of tokens": {Bill{Usage: []Usage{{Day: day, Model: "gpt-5", Tokens: Tokens{Output: 400_000_000_000_000}}}}, nil, true},
		"a large bill":        {Bill{Costs: []Cost{{Day: day, Model: "gpt-5", Amount: Amount{Nanodollars: amount.Nanodollars / 60}}}}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			bill := test.bill
			bill.Providers = []string{"openai"}
			records := NewRecords(catalog.Default(), &bill, false)
			for _, c := range test.calls {
				records.Add(&c)
			}
			report, err := Compare(t.Context(), &bill, records, Options{Window: month})
			if errors.Is(err, ErrOverflow) != test.fails {
				t.Errorf("the error is %v, and the report %+v", err, report)
			}
		})
	}
}
