package observe

import (
	"math"
	"testing"
)

func TestParseDecimal(t *testing.T) {
	for _, c := range []struct {
		s     string
		scale int
		want  int64
		ok    bool
	}{
		{"0", 9, 0, true},
		{"0.1", 9, 100_000_000, true},
		{"1", 9, 1_000_000_000, true},
		{"0.00216775", 9, 2_167_750, true},
		{"7.75e-06", 9, 7_750, true},
		{"1.5E+1", 9, 15_000_000_000, true},
		{"0.0000000015", 9, 2, true},
		{"0.00000000149", 9, 1, true},
		{"0.00000000001", 9, 0, true},
		{"9.99e-99", 9, 0, true},
		{"123456789012.123456789", 9, 0, false},
		{"9223372036.8547758074", 9, math.MaxInt64, true},
		{"9223372036.8547758075", 9, 0, false},
		{"45", -1, 5, true},
		{"-1", 9, 0, false},
		{"", 9, 0, false},
		{".", 9, 0, false},
		{"1e", 9, 0, false},
		{"1e999999999", 9, 0, false},
		{"DONE", 9, 0, false},
	} {
		if n, ok := parseDecimal([]byte(c.s), c.scale); ok != c.ok || ok && n != c.want {
			t.Errorf("%q: %d, %t, want %d, %t", c.s, n, ok, c.want, c.ok)
		}
	}
}

func TestParseCount(t *testing.T) {
	for s, want := range map[string]int64{
		"0": 0, "12": 12, "12.0": 12, "1.2e3": 1200, "999999999999999999": 999999999999999999,
		"-1": -1, "1.5": -1, "1e99": -1, "9999999999999999999": -1, "x": -1, "": -1,
	} {
		n, ok := parseCount([]byte(s))
		if !ok {
			n = -1
		}
		if n != want {
			t.Errorf("%q: %d, want %d", s, n, want)
		}
	}
}
