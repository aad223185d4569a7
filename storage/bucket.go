package storage

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// Buckets are even parts of a window, or months, aligned to the caller's time zone.
type Buckets struct {
	// Start is the start of the first bucket, at or before the start of the window.
	Start Timestamp
	// Width is in milliseconds, 0 for months of the calendar.
	Width Timestamp
	// Len is the number of buckets.
	Len int
	// zone is set if buckets have the width in the calendar of zone, from first on: a day in
	// which clocks change has another width in UTC.
	zone  Zone
	first Timestamp
}

// monthBuckets cuts a window into months of the calendar.
func monthBuckets(w Window, z Zone) Buckets {
	start, _ := ByMonth.Around(w.From, z)
	b := Buckets{Start: start, zone: z, first: monthOf(z.local(w.From))}
	b.Len = b.Index(w.To) + 1
	return b
}

// monthOf numbers the month of a local time, and monthStart is when a month of a number begins.
func monthOf(local Timestamp) Timestamp {
	at := local.Time()
	return Timestamp(at.Year()*12 + int(at.Month()) - 1)
}

func monthStart(number Timestamp) Timestamp {
	return Millis(time.Date(0, time.Month(number+1), 1, 0, 0, 0, 0, time.UTC))
}

// MaxBuckets bounds the points of a series.
const MaxBuckets = 60

const (
	week = 7 * day
	// firstMonday is 1970-01-05, from which weeks count.
	firstMonday = 4 * day
)

// widths are the widths that a series chooses from. A window of more than five years
// takes a multiple of the last width.
var widths = []Timestamp{minute, 5 * minute, 15 * minute, hour, 6 * hour, day, week, 30 * day}

// NewBuckets cuts a window into buckets of the smallest width that gives at most
// MaxBuckets; no buckets if the window is empty. The window must have both bounds.
func NewBuckets(w Window, z Zone) Buckets { return newBuckets(w, z, MaxBuckets) }

func newBuckets(w Window, z Zone, limit int) Buckets {
	if w.To < w.From {
		return Buckets{}
	}
	for i := 0; ; i++ {
		width := widths[min(i, len(widths)-1)]
		width *= Timestamp(max(1, i-len(widths)+2))
		if b := evenBuckets(w, z, width); b.Len <= limit {
			return b
		}
	}
}

// evenBuckets cuts a window into buckets of one width.
func evenBuckets(w Window, z Zone, width Timestamp) Buckets {
	local := z.local(w.From)
	first := floor(local, width)
	if z.Named() && width >= 6*hour {
		return Buckets{Start: z.utc(first), Width: width, Len: int((z.local(w.To)-first)/width) + 1, zone: z, first: first}
	}
	start := w.From - (local - first)
	return Buckets{Start: start, Width: width, Len: int((w.To-start)/width) + 1}
}

// BucketWidth is the width of the points of a MetricsQuery: such as 5m, 1h or 7d.
type BucketWidth string

const (
	// BucketAuto is the smallest of the widths that gives at most 300 points.
	BucketAuto BucketWidth = "auto"
	// BucketNone asks for no points.
	BucketNone BucketWidth = "none"
	// BucketMonth is a month of the calendar.
	BucketMonth BucketWidth = "month"

	maxAutoPoints  = 300
	maxNamedPoints = 1000
)

// BucketWidths are the widths that a caller may name.
var BucketWidths = func() []BucketWidth {
	all := []BucketWidth{BucketAuto, BucketNone}
	for _, width := range widths {
		all = append(all, widthName(width))
	}
	return append(all, BucketMonth)
}()

func widthName(width Timestamp) BucketWidth {
	n, unit := width/minute, "m"
	switch {
	case width%day == 0:
		n, unit = width/day, "d"
	case width%hour == 0:
		n, unit = width/hour, "h"
	}
	return BucketWidth(strconv.FormatInt(int64(n), 10) + unit)
}

// ParseBucketWidth reads one of BucketWidths.
func ParseBucketWidth(s string) (BucketWidth, error) { return oneOf(s, BucketWidths) }

// oneOf reads one of some names.
func oneOf[T ~string](s string, names []T) (T, error) {
	if slices.Contains(names, T(s)) {
		return T(s), nil
	}
	return "", fmt.Errorf("one of %s is expected, not %s", join(names), quote(s))
}

// cut cuts a window with both bounds, and returns the width that it chose. Errors are
// *FilterError.
func (b BucketWidth) cut(w Window, z Zone) (Buckets, BucketWidth, error) {
	if b == BucketNone || w.To < w.From {
		return Buckets{}, BucketNone, nil
	}
	if b == BucketAuto {
		buckets := newBuckets(w, z, maxAutoPoints)
		return buckets, widthName(buckets.Width), nil
	}
	var buckets Buckets
	if b == BucketMonth {
		buckets = monthBuckets(w, z)
	} else {
		buckets = evenBuckets(w, z, widths[slices.Index(BucketWidths, b)-2])
	}
	if buckets.Len > maxNamedPoints {
		return Buckets{}, "", &FilterError{Path: "bucket", Problem: fmt.Sprintf("%s would make %d points of the time, of at most %d; name a wider one", b, buckets.Len, maxNamedPoints)}
	}
	return buckets, b, nil
}

// floor is the start of the bucket of that width around a local time.
func floor(local, width Timestamp) Timestamp {
	origin := Timestamp(0)
	if width == week {
		origin = firstMonday
	}
	return floorDiv(local-origin, width)*width + origin
}

// Index is the number of the bucket of a moment in the window.
func (b Buckets) Index(t Timestamp) int {
	if b.Width == 0 {
		return int(monthOf(b.zone.local(t)) - b.first)
	}
	if b.zone.Named() {
		return int((b.zone.local(t) - b.first) / b.Width)
	}
	return int((t - b.Start) / b.Width)
}

// indexes appends the Index of each moment. Moments mostly come in order, many of a bucket.
func (b Buckets) indexes(moments []Timestamp, to []int32) []int32 {
	var index int
	var start, end Timestamp
	for _, t := range moments {
		if t < start || t >= end {
			if index = b.Index(t); !b.zone.Named() { // whose buckets may overlap where clocks change
				start, end = b.Bounds(index)
			}
		}
		to = append(to, int32(index))
	}
	return to
}

// grid are buckets with the same bounds whose numbers do not depend on the window, and are larger
// than those of b by shift. A Timestamp of a request is in none before the first of them.
func (b Buckets) grid() (grid Buckets, shift int32) {
	const earliest = -1 << 43 // milliseconds, before any request
	grid = Buckets{Width: b.Width, Len: math.MaxInt, zone: b.zone}
	switch {
	case b.Len == 0:
		return Buckets{}, 0
	case b.Width == 0: // the number of a month is that of the calendar
		return grid, int32(b.first)
	}
	n := max(0, floorDiv(b.Start-earliest, b.Width))
	if b.zone.Named() { // whose buckets do not begin at even distances
		n = max(0, floorDiv(b.first-earliest, b.Width))
		grid.first = b.first - n*b.Width
	} else {
		grid.Start = b.Start - n*b.Width
	}
	return grid, int32(n)
}

// name tells buckets of a grid, or that there are none, from others.
func (b Buckets) name() string {
	if b.Len == 0 {
		return "none"
	}
	return fmt.Sprint(b.Start, " ", b.Width, " ", b.first, " ", b.zone.name())
}

// Bounds are the start of a bucket and the start of the next.
func (b Buckets) Bounds(i int) (start, end Timestamp) {
	if b.Width == 0 {
		month := b.first + Timestamp(i)
		return b.zone.utc(monthStart(month)), b.zone.utc(monthStart(month + 1))
	}
	if b.zone.Named() {
		local := b.first + Timestamp(i)*b.Width
		return b.zone.utc(local), b.zone.utc(local + b.Width)
	}
	start = b.Start + Timestamp(i)*b.Width
	return start, start + b.Width
}

// Starts are the starts of all buckets if these are of different widths, else nil.
func (b Buckets) Starts() (starts []int64) {
	for i := 0; (b.zone.Named() || b.Width == 0) && i < b.Len; i++ {
		start, _ := b.Bounds(i)
		starts = append(starts, int64(start))
	}
	return starts
}

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

// Increments are all of them.
var Increments = []Increment{ByMinute, ByHour, ByDay, ByWeek, ByMonth, ByYear}

// ParseIncrement reads one of Increments.
func ParseIncrement(s string) (Increment, error) { return oneOf(s, Increments) }

// Starts are the starts of the calendar's buckets in a window, false if there are more than
// some.
func (i Increment) Starts(w Window, z Zone) (starts []int64, ok bool) {
	const maxBuckets = 5000
	if w.From < minTimestamp || w.To > maxTimestamp {
		return nil, false
	}
	for next := w.From; next <= w.To; {
		if len(starts) == maxBuckets {
			return nil, false
		}
		var start Timestamp
		start, next = i.Around(next, z)
		starts = append(starts, int64(start))
	}
	return starts, true
}

// Around is the bucket of t in the zone's calendar: from its start until before
// the next.
func (i Increment) Around(t Timestamp, z Zone) (start, next Timestamp) {
	local := z.local(t)
	if width, ok := i.width(); ok {
		start = floor(local, width)
		if width <= hour { // hours of a day on which clocks change
			return t - (local - start), t - (local - start) + width
		}
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

// width returns the width of an increment, false for months and years.
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
