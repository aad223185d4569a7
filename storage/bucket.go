package storage

// Buckets are even parts of a window, aligned to the caller's time zone.
type Buckets struct {
	// Start is the start of the first bucket, at or before that of the window.
	Start Timestamp
	// Width is in milliseconds.
	Width Timestamp
	// Len is the number of buckets, at most MaxBuckets.
	Len int
}

// MaxBuckets bounds the points of a series.
const MaxBuckets = 60

const (
	week = 7 * day
	// firstMonday is 1970-01-05, from which weeks count.
	firstMonday = 4 * day
)

// widths are those that a series chooses from. A window of more than five years
// takes a multiple of the last.
var widths = []Timestamp{minute, 5 * minute, 15 * minute, hour, 6 * hour, day, week, 30 * day}

// NewBuckets cuts a window into buckets of the smallest width that gives at most
// MaxBuckets; none if it is empty. The window must have both bounds.
func NewBuckets(w Window, z Zone) Buckets {
	if w.To < w.From {
		return Buckets{}
	}
	from, to := z.local(w.From), z.local(w.To)
	for i := 0; ; i++ {
		width := widths[min(i, len(widths)-1)]
		width *= Timestamp(max(1, i-len(widths)+2))
		first := floor(from, width)
		if n := (floor(to, width)-first)/width + 1; n <= MaxBuckets {
			return Buckets{Start: z.utc(first), Width: width, Len: int(n)}
		}
	}
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
func (b Buckets) Index(t Timestamp) int { return int((t - b.Start) / b.Width) }

// Bounds are the start of a bucket and that of the next.
func (b Buckets) Bounds(i int) (start, end Timestamp) {
	start = b.Start + Timestamp(i)*b.Width
	return start, start + b.Width
}
