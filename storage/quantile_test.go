package storage

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// What is brought to a place is what a sort would put there, and it parts the
// others.
func TestBringTo(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for name, value := range map[string]func(i, n int) int64{
		"random":     func(_, n int) int64 { return r.Int64N(int64(2 * n)) },
		"few":        func(_, _ int) int64 { return r.Int64N(3) },
		"equal":      func(_, _ int) int64 { return 7 },
		"ascending":  func(i, _ int) int64 { return int64(i) },
		"descending": func(i, _ int) int64 { return int64(-i) },
		"organ pipe": func(i, n int) int64 { return int64(min(i, n-i)) },
	} {
		for _, n := range []int{1, 2, 16, 17, 18, 100, 5000} {
			values := make([]int64, n)
			for i := range values {
				values[i] = value(i, n)
			}
			sorted := slices.Sorted(slices.Values(values))
			for _, place := range []int{0, n / 3, n / 2, n - 1} {
				selectNth(values, place)
				if values[place] != sorted[place] {
					t.Fatalf("%s: place %d of %d has %d, want %d", name, place, n, values[place], sorted[place])
				}
				for i, v := range values {
					if i < place && v > values[place] || i > place && v < values[place] {
						t.Fatalf("%s: %d is on the wrong side of place %d of %d", name, v, place, n)
					}
				}
				if got := slices.Sorted(slices.Values(values)); !slices.Equal(got, sorted) {
					t.Fatalf("%s: the values of %d have changed", name, n)
				}
			}
		}
	}
}
