package plugins_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/weirhq/weir/plugins"
)

func TestUnitsAsText(t *testing.T) {
	for _, tc := range []struct{ got, want string }{
		{plugins.Nanodollars(0).String(), "$0.000000"},
		{plugins.Nanodollars(27_000).String(), "$0.000027"},
		{plugins.Nanodollars(1).String(), "$0.000000001"},
		{plugins.Nanodollars(1_234_500_000_010).String(), "$1234.50000001"},
		{plugins.Nanodollars(-500_000).String(), "-$0.000500"},
		{plugins.Milliseconds(0).String(), "0ms"},
		{plugins.Milliseconds(999).String(), "999ms"},
		{plugins.Milliseconds(59_990).String(), "59.99s"},
		{plugins.Milliseconds(125_000).String(), "2m5s"},
	} {
		if tc.got != tc.want {
			t.Errorf("got %s, want %s", tc.got, tc.want)
		}
	}
}

func TestUnitsAsJSON(t *testing.T) {
	for want, value := range map[string]any{
		"[null,null,null]":         [3]any{plugins.Count{}, plugins.Cost{}, plugins.Duration{}},
		"[0,0,0]":                  [3]any{plugins.Known(0), plugins.KnownCost(0), plugins.KnownDuration(0)},
		"[200,0.0000002,1]":        [3]any{plugins.Known(200), plugins.KnownCost(200), plugins.KnownDuration(1_999_999)},
		"[-7,-1.5,-1]":             [3]any{plugins.Known(-7), plugins.KnownCost(-1_500_000_000), plugins.KnownDuration(-1_000_000)},
		"[10,10,100]":              [3]any{plugins.Known(10), plugins.KnownCost(10_000_000_000), plugins.KnownDuration(100_000_000)},
		"[12.3456789,0.000000001]": [2]any{plugins.KnownCost(12_345_678_900), plugins.KnownCost(1)},
		"[-9223372036.854775808]":  [1]any{plugins.KnownCost(math.MinInt64)},
	} {
		if got, err := json.Marshal(value); err != nil || string(got) != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
}
