package money

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
)

// quantity is what a budget counts.
type quantity struct {
	name string
	// unit follows an amount in messages.
	unit string
	// of is how much of the quantity a call uses, unknown if Used does not tell. nil for a
	// quantity that counts each call as 1.
	of func(bound.Used) plugins.Count
}

// quantities are what Budget.Quantity may name, in the order in which they are set aside.
var quantities = []*quantity{
	dollars,
	{"tokens", " tokens", func(u bound.Used) plugins.Count { return u.Usage.Input.Plus(u.Usage.Output) }},
	{"input_tokens", " input tokens", func(u bound.Used) plugins.Count { return u.Usage.Input }},
	{"output_tokens", " output tokens", func(u bound.Used) plugins.Count { return u.Usage.Output }},
	{"uncached_tokens", " uncached tokens", func(u bound.Used) plugins.Count {
		n := u.Usage.Input.Plus(u.Usage.Output)
		n.N -= u.Usage.CacheRead.N
		return n
	}},
	concurrent,
	requestCount, // the last, because a call that something else refuses is no request
}

var (
	dollars = &quantity{"usd", "", func(u bound.Used) plugins.Count {
		return plugins.Count{N: int64(u.Cost.N), Valid: u.Cost.Valid}
	}}
	// requestCount counts calls of providers: an attempt at another target is another call.
	requestCount = &quantity{name: "requests", unit: " requests"}
	// concurrent are calls that run. Nothing is spent of them.
	concurrent = &quantity{name: "concurrent", unit: " calls at once"}
)

// Quantities are what Budget.Quantity may be, and LimitQuantities those that are not money.
var (
	Quantities = func() (names []string) {
		for _, q := range quantities {
			names = append(names, q.name)
		}
		return names
	}()
	LimitQuantities = Quantities[1:]
)

// findQuantity returns the quantity of a name, nil if there is none.
func findQuantity(name string) *quantity {
	for _, q := range quantities {
		if q.name == name {
			return q
		}
	}
	return nil
}

// metered reports whether a call uses what the provider states.
func (q *quantity) metered() bool { return q.of != nil }

// max is an upper bound on how much of the quantity a call uses whose answers have at most limit
// tokens, unknown if the call's use is.
func (q *quantity) max(s *Spending, limit int64) plugins.Count {
	if !q.metered() {
		return plugins.Known(1)
	}
	return q.of(s.MaxUsage(limit))
}

// parse reads a limit: US dollars as a plain decimal, or a number of something else.
func (q *quantity) parse(limit string) (plugins.Nanodollars, error) {
	if q == dollars {
		rate, err := catalog.ParseRate(limit)
		return rate.Nano(), err
	}
	n, err := strconv.ParseInt(limit, 10, 64)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("want a whole number from 1, not %q", limit)
	}
	return plugins.Nanodollars(n), nil
}

// text writes an amount for people. Dollars have cents, and less than a dollar has three digits.
func (q *quantity) text(n plugins.Nanodollars) string {
	size, sign := math.Abs(n.Dollars()), "$"
	if n < 0 {
		sign = "-$"
	}
	switch {
	case q != dollars:
		return strconv.FormatInt(int64(n), 10) + q.unit
	case n == 0:
		return "$0"
	case size >= 1:
		return sign + humanize.FormatFloat("#,###.##", size)
	}
	digits := min(9, 2-int(math.Floor(math.Log10(size))))
	whole, fraction, _ := strings.Cut(strconv.FormatFloat(size, 'f', digits, 64), ".")
	return sign + whole + "." + fraction[:2] + strings.TrimRight(fraction[2:], "0")
}

// Amount is an amount of what the budget counts as APIs write it: US dollars, or a number.
func (b *Budget) Amount(n plugins.Nanodollars) json.RawMessage {
	if b.quantity == dollars {
		return plugins.KnownCost(n).AppendJSON(nil)
	}
	return plugins.Known(int64(n)).AppendJSON(nil)
}
