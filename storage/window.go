package storage

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Window is the time from From to To, both included. A window that ends before
// it begins is empty.
type Window struct{ From, To Timestamp }

// Always is the window of a query without bounds; either of its bounds stands
// for no bound.
var Always = Window{From: math.MinInt64, To: math.MaxInt64}

// Contains reports whether a moment is in the window.
func (w Window) Contains(t Timestamp) bool { return w.From <= t && t <= w.To }

// or returns w, with the bounds of other in place of missing ones.
func (w Window) or(other Window) Window {
	if w.From == Always.From {
		w.From = other.From
	}
	if w.To == Always.To {
		w.To = other.To
	}
	return w
}

// ParseUnixTime checks a bound that a body tells as a number of units since the
// Unix epoch. What is less than a millisecond is cut.
func ParseUnixTime(n float64, unit time.Duration) (Timestamp, error) {
	ms := math.Floor(n * float64(unit/time.Millisecond))
	if !(minTimestamp <= ms && ms <= maxTimestamp) {
		return 0, fmt.Errorf("a time in the years 0 to 9999 is expected, not %v", n)
	}
	return Timestamp(ms), nil
}

// The times that a Timestamp's text can tell: the years 0 to 9999.
const (
	minTimestamp = -62_167_219_200_000
	maxTimestamp = 253_402_300_799_999
)

const (
	minute = 60 * 1000 // in milliseconds, as all below
	hour   = 60 * minute
	day    = 24 * hour
)

// floorDiv is a/b rounded down, also where a is negative.
func floorDiv(a, b Timestamp) Timestamp {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// Timestamp is a moment in milliseconds since the Unix epoch, the precision at
// which records are kept and compared. The zero Timestamp stands for no moment.
type Timestamp int64

// Millis is t at the precision of a Timestamp.
func Millis(t time.Time) Timestamp { return Timestamp(t.UnixMilli()) }

// Time is t in UTC.
func (t Timestamp) Time() time.Time { return time.UnixMilli(int64(t)).UTC() }

// timestampLayout is how answers show a moment: UTC with milliseconds.
const timestampLayout = "2006-01-02T15:04:05.000Z"

// String formats t as answers do.
func (t Timestamp) String() string { return t.Time().Format(timestampLayout) }

// Append appends t as String formats it.
func (t Timestamp) Append(b []byte) []byte { return t.Time().AppendFormat(b, timestampLayout) }

// MarshalJSON writes the moment as answers do.
func (t Timestamp) MarshalJSON() ([]byte, error) { return []byte(`"` + t.String() + `"`), nil }

// UnmarshalJSON reads what ParseTimestamp does.
func (t *Timestamp) UnmarshalJSON(raw []byte) error {
	var text string
	err := json.Unmarshal(raw, &text)
	if err == nil {
		*t, err = ParseTimestamp(text)
	}
	return err
}

// ParseTimestamp reads RFC 3339 with any offset, or a bare date, which is its
// midnight in UTC. Fractions of a millisecond are cut. The year, in UTC, has four
// digits.
func ParseTimestamp(s string) (Timestamp, error) {
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		t, err := time.Parse(layout, s)
		if year := t.UTC().Year(); err == nil && 0 <= year && year <= 9999 {
			return Millis(t), nil
		}
	}
	return 0, fmt.Errorf("%s is no timestamp (RFC 3339 as in 2026-11-20T15:04:05Z, or a date as in 2026-11-20)", quote(s))
}
