package storage

import (
	"fmt"
	"slices"
	"time"
)

// Increment is the width of calendar buckets.
type Increment string

// The increments. A week begins on Monday.
const (
	ByMinute Increment = "min"
	ByHour   Increment = "hour"
	ByDay    Increment = "day"
	ByWeek   Increment = "week"
	ByMonth  Increment = "month"
	ByYear   Increment = "year"
)

var increments = []Increment{ByMinute, ByHour, ByDay, ByWeek, ByMonth, ByYear}

// ParseIncrement reads a dbIncrement.
func ParseIncrement(s string) (Increment, error) {
	if i := Increment(s); slices.Contains(increments, i) {
		return i, nil
	}
	return "", fmt.Errorf("one of %s is expected, not %s", join(increments), quote(s))
}

// around is the bucket of t in the zone's calendar: from its start until before
// the next.
func (i Increment) around(t Timestamp, z Zone) (start, next Timestamp) {
	local := z.local(t)
	if width, ok := i.width(); ok {
		start = floor(local, width)
		return z.utc(start), z.utc(start + width)
	}
	at := local.Time()
	first := time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)
	after := first.AddDate(0, 1, 0)
	if i == ByYear {
		first = time.Date(at.Year(), time.January, 1, 0, 0, 0, 0, time.UTC)
		after = first.AddDate(1, 0, 0)
	}
	return z.utc(Millis(first)), z.utc(Millis(after))
}

// width is that of the increments which are all alike.
func (i Increment) width() (Timestamp, bool) {
	switch i {
	case ByMinute:
		return minute, true
	case ByHour:
		return hour, true
	case ByDay:
		return day, true
	case ByWeek:
		return week, true
	}
	return 0, false
}
