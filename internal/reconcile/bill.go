package reconcile

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/plugins"
)

// Day counts the days since 1970-01-01 in UTC, the time zone of the bills.
type Day int

const secondsPerDay = 24 * 60 * 60

// DayOf is the day of a moment.
func DayOf(t time.Time) Day { return dayOfHour(hourOf(t)) }

// ParseDay reads a day such as 2026-10-31.
func ParseDay(text string) (Day, error) {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a day; write it as 2026-10-31", text)
	}
	return DayOf(t), nil
}

// Time is the first moment of the day.
func (d Day) Time() time.Time { return time.Unix(int64(d)*secondsPerDay, 0).UTC() }

func (d Day) String() string { return d.Time().Format(time.DateOnly) }

// MarshalText writes the day as 2026-10-31.
func (d Day) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Window is the days from From, before To.
type Window struct{ From, To Day }

// Month returns the days of the month of a time, in UTC.
func Month(t time.Time) Window {
	first := time.Date(t.UTC().Year(), t.UTC().Month(), 1, 0, 0, 0, 0, time.UTC)
	return Window{DayOf(first), DayOf(first.AddDate(0, 1, 0))}
}

// ParseWindow reads the first day and the day after the last one.
func ParseWindow(since, until string) (w Window, err error) {
	if w.From, err = ParseDay(since); err != nil {
		return w, fmt.Errorf("since: %w", err)
	}
	if w.To, err = ParseDay(until); err != nil {
		return w, fmt.Errorf("until: %w", err)
	}
	if w.From >= w.To {
		return w, errors.New("until must be after since")
	}
	return w, nil
}

// Padded has a few days more on both sides: a call may be billed on another day than it is
// recorded.
func (w Window) Padded() Window { return Window{w.From - padding, w.To + padding} }

// padding is in days. Batches end within 24 hours, and their results may be fetched later.
const padding = 2

func (w Window) contains(d Day) bool { return w.From <= d && d < w.To }

// Kind is a kind of what is billed.
type Kind int

// The kinds do not overlap: Input is what neither came from a cache nor was written to one.
const (
	Input Kind = iota
	CacheRead
	CacheWrite
	CacheWrite1h
	Output
	kinds
)

// KindNames are the names in reports.
var KindNames = [kinds]string{"input", "cache_read", "cache_write", "cache_write_1h", "output"}

// Tokens are counts of tokens by their kind.
type Tokens [kinds]int64

func (t Tokens) plus(other Tokens) Tokens {
	for k, n := range other {
		t[k] += n
	}
	return t
}

func (t Tokens) negated() Tokens {
	for k := range t {
		t[k] = -t[k]
	}
	return t
}

// Total is the sum of all kinds.
func (t Tokens) Total() (n int64) {
	for _, of := range t {
		n += of
	}
	return n
}

// least is the smallest count.
func (t Tokens) least() int64 {
	least := t[0]
	for _, n := range t {
		least = min(least, n)
	}
	return least
}

// usage is the same in the convention of records. No count is negative.
func (t Tokens) usage() plugins.Usage {
	return plugins.Usage{
		Input:        plugins.Known(t[Input] + t[CacheRead] + t[CacheWrite] + t[CacheWrite1h]),
		Output:       plugins.Known(t[Output]),
		CacheRead:    plugins.Known(t[CacheRead]),
		CacheWrite:   plugins.Known(t[CacheWrite] + t[CacheWrite1h]),
		CacheWrite1h: plugins.Known(t[CacheWrite1h]),
	}
}

// tokensOf are the tokens of a record, without the kinds that a bill does not state: those count
// as the next larger kind.
func tokensOf(u plugins.Usage, states [kinds]bool) (t Tokens) {
	t[CacheRead], t[CacheWrite1h] = u.CacheRead.N, u.CacheWrite1h.N
	t[CacheWrite] = max(u.CacheWrite.N-u.CacheWrite1h.N, 0)
	t[Output] = u.BilledOutput.Or(u.Output).N
	t[Input] = u.BilledInput.Or(u.Input).N - t[CacheRead] - t[CacheWrite] - t[CacheWrite1h]
	for _, fold := range [...]struct{ from, to Kind }{{CacheWrite1h, CacheWrite}, {CacheWrite, Input}, {CacheRead, Input}} {
		if !states[fold.from] {
			t[fold.to] += t[fold.from]
			t[fold.from] = 0
		}
	}
	return t
}

// Bill is what a provider says of a time.
type Bill struct {
	// Providers are the names that records have for the provider.
	Providers []string
	// States has the kinds of tokens that the usage distinguishes.
	States [kinds]bool
	// CountsRequests is true if the usage has numbers of requests.
	CountsRequests bool
	// SearchesApart is true if searches have costs of their own, without a model.
	SearchesApart bool
	// WithoutTiers is true if the bill has no service tiers.
	WithoutTiers bool
	// CostsByDay is true if the costs are of days, and of no models.
	CostsByDay bool
	// OwnNames is true if the bill has names of models that no API takes.
	OwnNames bool
	Usage    []Usage
	Costs    []Cost
	// WithoutTokens are the models whose usage is not in tokens, such as of images, and
	// WithoutCost the service tiers whose cost is not stated.
	WithoutTokens, WithoutCost map[string]bool
	Incomparable               []Item

	// generations are what the provider states of single calls, nil if it states nothing of them.
	generations *generations

	exports *exportLines // of a bill of files
}

// Usage is what one key used of a model on a day.
type Usage struct {
	Day                       Day
	Model, Tier, Key, Project string
	Requests                  int64
	Tokens                    Tokens
}

// Cost is a line of the bill.
type Cost struct {
	Day Day
	// Model is "" for what no model did, such as searches.
	Model  string
	Amount Amount
	// Search is true for the cost of searches.
	Search bool
}

// Item is a part of the bill, or of the records, that cannot be compared with the other.
type Item struct {
	// Day is nil for the whole time.
	Day         *Day         `json:"day"`
	Description string       `json:"description"`
	Amount      plugins.Cost `json:"amount"`
}

// Amount is an amount of a bill.
type Amount struct {
	plugins.Nanodollars
	// Rounding is how far the exact amount may be from this one: half of the last digit that
	// the bill writes.
	Rounding plugins.Nanodollars
}

// ParseAmount reads a decimal number of US dollars, divided by a power of ten: 2 for cents.
func ParseAmount(text string, power int) (Amount, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	if decimals := len(fraction) + power; decimals <= 9 && strings.ContainsAny(text, "0123456789") { // as most are: exports parse millions
		if n, err := strconv.ParseInt(whole+fraction+"000000000"[decimals:], 10, 64); err == nil {
			return Amount{plugins.Nanodollars(n), roundingOf(decimals)}, nil
		}
	}
	number, ok := parseDecimal(text)
	if !ok {
		return Amount{}, fmt.Errorf("%q is not a decimal amount", text)
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	_, fraction, _ = strings.Cut(mantissa, ".")
	decimals := len(fraction) + power
	if exponent != "" {
		decimals = 9 // a number of a computer, which has all its digits
	}
	scaled := number.Mul(number, new(big.Rat).SetInt64(1_000_000_000))
	for range power {
		scaled.Quo(scaled, new(big.Rat).SetInt64(10))
	}
	integer, ok := new(big.Int).SetString(scaled.FloatString(0), 10)
	if !ok || !integer.IsInt64() {
		return Amount{}, fmt.Errorf("the amount %q is out of range", text)
	}
	return Amount{plugins.Nanodollars(integer.Int64()), roundingOf(decimals)}, nil
}

// parseDecimal reads a decimal number, whose exponent may have two digits.
func parseDecimal(text string) (*big.Rat, bool) {
	_, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	if len(text) > 64 || len(strings.TrimLeft(exponent, "+-")) > 2 || strings.Trim(text, "+-.0123456789eE") != "" {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}

// roundingOf returns how far an amount with so many digits after the point may be from the exact one.
// Numbers in JSON lack the zeros at their end: the bill is at least exact to the cent.
func roundingOf(decimals int) plugins.Nanodollars {
	rounding := plugins.Nanodollars(1)
	for range 9 - min(max(decimals, 2), 9) {
		rounding *= 10
	}
	return (rounding + 1) / 2
}
