package storage_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/storage"
)

func at(s string) storage.Timestamp {
	t, err := storage.ParseTimestamp(s)
	if err != nil {
		panic(err)
	}
	return t
}

const (
	minute = storage.Timestamp(60_000)
	hour   = 60 * minute
	day    = 24 * hour
)

func TestBuckets(t *testing.T) {
	for _, test := range []struct {
		name     string
		from, to string
		zone     int
		start    string
		width    storage.Timestamp
		len      int
	}{
		{"one moment", "2026-11-20T12:00:59.999Z", "2026-11-20T12:00:59.999Z", 0, "2026-11-20T12:00:00Z", minute, 1},
		{"sixty minutes", "2026-11-20T12:00:00Z", "2026-11-20T12:59:59.999Z", 0, "2026-11-20T12:00:00Z", minute, 60},
		{"bounds are inclusive", "2026-11-20T12:00:00Z", "2026-11-20T13:00:00Z", 0, "2026-11-20T12:00:00Z", 5 * minute, 13},
		{"partial buckets at both ends", "2026-11-20T12:00:30Z", "2026-11-20T13:00:29Z", 0, "2026-11-20T12:00:00Z", 5 * minute, 13},
		{"quarters", "2026-11-20T12:01:00Z", "2026-11-20T20:01:00Z", 0, "2026-11-20T12:00:00Z", 15 * minute, 33},
		{"hours in Newfoundland", "2026-11-20T00:00:00Z", "2026-11-21T23:59:00Z", 210, "2026-11-19T23:30:00Z", hour, 49},
		{"quarters of days in Nepal", "2026-11-10T00:00:00Z", "2026-11-20T00:00:00Z", -345, "2026-11-09T18:15:00Z", 6 * hour, 41},
		{"days in India", "2026-11-01T00:00:00Z", "2026-11-20T18:29:59.999Z", -330, "2026-10-31T18:30:00Z", day, 20},
		{"days", "2026-10-01T00:00:00Z", "2026-11-20T00:00:00Z", 0, "2026-10-01T00:00:00Z", day, 51},
		{"days in the Marquesas", "2026-10-01T00:00:00Z", "2026-11-20T00:00:00Z", 570, "2026-09-30T09:30:00Z", day, 51},
		{"weeks begin on Monday", "2026-09-01T00:00:00Z", "2026-11-20T00:00:00Z", 0, "2026-08-31T00:00:00Z", 7 * day, 12},
		{"it is still Sunday in New York", "2026-08-31T03:59:59Z", "2026-11-20T00:00:00Z", 240, "2026-08-24T04:00:00Z", 7 * day, 13},
		{"over a leap day", "2028-02-01T00:00:00Z", "2028-03-31T00:00:00Z", 0, "2028-02-01T00:00:00Z", day, 60},
		{"two years", "2025-01-01T00:00:00Z", "2026-12-31T00:00:00Z", 0, "2024-12-13T00:00:00Z", 30 * day, 25},
		{"ten years", "2016-11-20T00:00:00Z", "2026-11-20T00:00:00Z", 0, "2016-10-26T00:00:00Z", 90 * day, 41},
		{"before 1970", "1969-12-31T23:59:30Z", "1970-01-01T00:00:30Z", 0, "1969-12-31T23:59:00Z", minute, 2},
	} {
		got := storage.NewBuckets(storage.Window{From: at(test.from), To: at(test.to)}, storage.FixedZone(test.zone))
		want := storage.Buckets{Start: at(test.start), Width: test.width, Len: test.len}
		if got != want {
			t.Errorf("%s: buckets from %v, %d minutes wide, %d of them; want from %v, %d minutes, %d",
				test.name, got.Start, got.Width/minute, got.Len, want.Start, want.Width/minute, want.Len)
		}
	}
	if got := storage.NewBuckets(storage.Window{From: 2, To: 1}, storage.Zone{}); got.Len != 0 {
		t.Errorf("an empty window has %d buckets", got.Len)
	}
}

// A month is one of the calendar, wherever clocks change.
func TestMonths(t *testing.T) {
	berlin, err := storage.ParseTimezone("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	q := &storage.MetricsQuery{Filter: storage.All{}, Window: between("2026-01-31T23:30:00Z", "2026-05-01T00:00:00Z"), Zone: berlin, Bucket: storage.BucketMonth, Limit: 1}
	got, err := q.Answer(t.Context(), groups(nil))
	var starts []string
	for _, p := range got.Points {
		starts = append(starts, p.RangeStart.String())
	}
	if want := "2026-01-31T23:00:00.000Z 2026-02-28T23:00:00.000Z 2026-03-31T22:00:00.000Z 2026-04-30T22:00:00.000Z"; err != nil || strings.Join(starts, " ") != want {
		t.Errorf("%s, want %s; %v", starts, want, err)
	}
	q.Zone = storage.FixedZone(0)
	if got, err := q.Answer(t.Context(), groups(nil)); err != nil || len(got.Points) != 5 || got.Points[1].RangeStart.String() != "2026-02-01T00:00:00.000Z" {
		t.Errorf("%+v, %v", got.Points, err)
	}
}

// Buckets cover their window, no more, and begin where the local calendar does.
func FuzzBuckets(f *testing.F) {
	f.Add(int64(0), int64(0), 0)
	f.Add(int64(at("2026-11-20T12:00:00Z")), int64(day), -330)
	f.Add(int64(at("1066-10-14T12:00:00Z")), int64(960*365*day), 570)
	f.Fuzz(func(t *testing.T, from, length int64, minutes int) {
		zone, err := storage.ParseZone(float64(minutes))
		w := storage.Window{From: storage.Timestamp(from), To: storage.Timestamp(from + length)}
		if err != nil || w.From < at("0000-01-01T00:00:00Z") || length < 0 || w.To > at("9999-12-31T00:00:00Z") || w.To < w.From {
			t.Skip()
		}
		b := storage.NewBuckets(w, zone)
		if b.Len < 1 || b.Len > storage.MaxBuckets {
			t.Fatalf("%d buckets", b.Len)
		}
		if b.Index(w.From) != 0 || b.Index(w.To) != b.Len-1 {
			t.Errorf("the window begins in bucket %d and ends in bucket %d of %d", b.Index(w.From), b.Index(w.To), b.Len)
		}
		if start, _ := b.Bounds(0); start > w.From {
			t.Errorf("the first bucket begins at %v, after %v", start, w.From)
		}
		if _, end := b.Bounds(b.Len - 1); end <= w.To {
			t.Errorf("the last bucket ends at %v, before %v", end, w.To)
		}
		local := (b.Start - storage.Timestamp(minutes)*minute).Time()
		if b.Width%day == 0 && (local.Hour() != 0 || local.Minute() != 0) {
			t.Errorf("buckets of days begin at %v", local)
		}
		if b.Width == 7*day && local.Weekday() != 1 {
			t.Errorf("a week begins on %v", local.Weekday())
		}
		if b.Width < day && local.Sub(local.Truncate(24*60*60*1e9)).Milliseconds()%int64(b.Width) != 0 {
			t.Errorf("buckets of %d ms begin at %v", b.Width, local)
		}
	})
}

func TestParseZone(t *testing.T) {
	for minutes, ok := range map[float64]bool{0: true, -330: true, 570: true, 1440: true, -1440: true, 1441: false, 0.5: false, 1e300: false} {
		if z, err := storage.ParseZone(minutes); (err == nil) != ok || ok && z != storage.FixedZone(int(minutes)) {
			t.Errorf("ParseZone(%v) = %v, %v", minutes, z, err)
		}
	}
}

func TestParseUnixTime(t *testing.T) {
	for _, test := range []struct {
		n    float64
		unit int64 // in milliseconds
		want string
	}{
		{1795176000, 1000, "2026-11-20T12:00:00.000Z"},
		{1795176000.0015, 1000, "2026-11-20T12:00:00.001Z"},
		{1795176000123, 1, "2026-11-20T12:00:00.123Z"},
		{-0.5, 1, "1969-12-31T23:59:59.999Z"},
		{1e18, 1, ""},
		{-1e300, 1000, ""},
	} {
		got, err := storage.ParseUnixTime(test.n, time.Duration(test.unit)*time.Millisecond)
		if (err == nil) != (test.want != "") || err == nil && got.String() != test.want {
			t.Errorf("ParseUnixTime(%v, %d ms) = %v, %v, want %s", test.n, test.unit, got, err, test.want)
		}
	}
}
