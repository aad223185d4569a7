package storage

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestGrid holds that the buckets of windows have the same numbers in a grid, but for a shift, and that
// no two kinds of buckets have the same grid.
func TestGrid(t *testing.T) {
	r := rand.New(rand.NewPCG(51, 4))
	berlin, err := ParseTimezone("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	kinds := BucketWidths[slices.Index(BucketWidths, BucketNone):]
	for _, zone := range []Zone{{}, FixedZone(-330), berlin} {
		kindOf := make(map[string]BucketWidth)
		for _, width := range kinds {
			names := make(map[string]bool)
			for range 20 {
				at := func() Timestamp { return Timestamp(r.Int64N(2_000_000_000_000)) - 100_000_000_000 }
				w := Window{From: at()}
				w.To = w.From + 500*minute
				b, _, err := width.cut(w, zone)
				if err != nil {
					t.Fatal(err)
				}
				grid, shift := b.grid()
				names[grid.name()] = true
				if width == BucketNone {
					continue
				}
				var moments []Timestamp
				for range 50 {
					moments = append(moments, w.From+Timestamp(r.Int64N(int64(w.To-w.From+1))))
				}
				for i, number := range grid.indexes(moments, nil) {
					if got, want := int(number-shift), b.Index(moments[i]); got != want {
						t.Fatalf("%s of %v: %v is in bucket %d, want %d", width, w, moments[i], got, want)
					}
				}
			}
			if len(names) != 1 {
				t.Errorf("%s has the grids %v in one zone", width, names)
			}
			for name := range names {
				if other, ok := kindOf[name]; ok {
					t.Errorf("%s has the grid of %s", width, other)
				}
				kindOf[name] = width
			}
		}
	}
}
