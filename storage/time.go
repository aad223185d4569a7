package storage

import (
	"encoding/json"
	"fmt"
	"time"
)

// Timestamp is a moment in milliseconds since the Unix epoch, the precision at
// which records are kept and compared. The zero Timestamp stands for none.
type Timestamp int64

// Millis is t at the precision of a Timestamp.
func Millis(t time.Time) Timestamp { return Timestamp(t.UnixMilli()) }

// Time is t in UTC.
func (t Timestamp) Time() time.Time { return time.UnixMilli(int64(t)).UTC() }

// String formats t as answers do: UTC with milliseconds.
func (t Timestamp) String() string { return t.Time().Format("2006-01-02T15:04:05.000Z") }

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
