package storage_test

import (
	"testing"
	"time"

	"github.com/weirhq/weir/storage"
)

// Days begin at midnight where clocks change, or if clocks leave midnight out when they go on.
func TestDaysOverClockChanges(t *testing.T) {
	for _, test := range []struct {
		zone, from, to string
		// hours are how long the days are.
		hours []int
	}{
		{"Europe/Berlin", "2026-10-23T22:00:00Z", "2026-10-26T22:59:59Z", []int{24, 25, 24}},
		{"Europe/Berlin", "2026-03-27T23:00:00Z", "2026-03-30T21:59:59Z", []int{24, 23, 24}},
		{"America/New_York", "2026-10-31T04:00:00Z", "2026-11-03T04:59:59Z", []int{24, 25, 24}},
		{"Asia/Beirut", "2026-03-27T22:00:00Z", "2026-03-30T20:59:59Z", []int{24, 23, 24}},       // 00:00 is 01:00
		{"America/Havana", "2026-10-31T04:00:00Z", "2026-11-03T04:59:59Z", []int{24, 25, 24}},    // 01:00 is 00:00
		{"America/Sao_Paulo", "2018-02-16T02:00:00Z", "2018-02-19T02:59:59Z", []int{24, 25, 24}}, // 24:00 is 23:00
		{"Asia/Kolkata", "2026-10-23T18:30:00Z", "2026-10-25T18:29:59Z", []int{24, 24}},
	} {
		zone, err := storage.ParseTimezone(test.zone)
		if err != nil {
			t.Fatal(err)
		}
		w := storage.Window{From: at(test.from), To: at(test.to)}
		starts, ok := storage.ByDay.Starts(w, zone)
		if !ok || len(starts) != len(test.hours) {
			t.Errorf("%s: %d days, want %d", test.zone, len(starts), len(test.hours))
			continue
		}
		start := w.From
		for i, hours := range test.hours {
			if got := storage.Timestamp(starts[i]); got != start {
				t.Errorf("%s: day %d begins at %v, want %v", test.zone, i, got, start)
			}
			start += storage.Timestamp(hours) * hour
		}
	}
}

// Each moment is in the bucket whose bounds are around it, over a year of each zone.
func TestBucketsOverClockChanges(t *testing.T) {
	for _, name := range []string{"Europe/Berlin", "America/New_York", "Asia/Beirut", "America/Havana", "America/Sao_Paulo", "Australia/Lord_Howe", "Africa/Casablanca", "UTC"} {
		zone, err := storage.ParseTimezone(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, length := range []storage.Timestamp{9 * day, 40 * day, 200 * day, 400 * day, 3000 * day} {
			for from := at("2017-10-01T00:20:00Z"); from < at("2018-06-01T00:00:00Z"); from += 17 * day {
				w := storage.Window{From: from, To: from + length}
				b := storage.NewBuckets(w, zone)
				if b.Index(w.From) != 0 || b.Index(w.To) != b.Len-1 || b.Len > storage.MaxBuckets {
					t.Fatalf("%s: %d buckets, the window is in %d to %d", name, b.Len, b.Index(w.From), b.Index(w.To))
				}
				last := storage.Timestamp(0)
				for i := range b.Len {
					start, end := b.Bounds(i)
					if i > 0 && start != last || end <= start {
						t.Fatalf("%s: bucket %d is from %v to %v, and the one before until %v", name, i, start, end, last)
					}
					last = end
				}
				for m := w.From; m <= w.To; m += 7 * hour / 2 {
					i := b.Index(m)
					if start, end := b.Bounds(i); m < start || m >= end {
						t.Fatalf("%s: %v is in bucket %d from %v to %v", name, m, i, start, end)
					}
				}
				if start, _ := b.Bounds(b.Len / 2); b.Width == day {
					local := start.Time().In(location(t, name))
					if h := local.Hour()*60 + local.Minute(); h > 60 {
						t.Errorf("%s: a day begins at %v", name, local)
					}
				}
			}
		}
	}
}

func location(t *testing.T, name string) *time.Location {
	t.Helper()
	place, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return place
}

func TestParseTimezone(t *testing.T) {
	for name, ok := range map[string]bool{"Europe/Berlin": true, "UTC": true, "": false, "Local": false, "Europe/Atlantis": false, "../etc/passwd": false, "-330": false} {
		if _, err := storage.ParseTimezone(name); (err == nil) != ok {
			t.Errorf("ParseTimezone(%q): %v", name, err)
		}
	}
}
