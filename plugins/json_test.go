package plugins

import (
	"fmt"
	"strings"
	"testing"
)

func TestValidJSON(t *testing.T) {
	for data, want := range map[string]bool{
		``: false, `{}`: true, `{"a":[1,{"b":null}]}`: true, `[`: false, `{"a":}`: false, `"[[{{"`: true,
		nested(1, `[`, `]`):                                              true,
		nested(10_000, `[`, `]`):                                         true,
		nested(10_001, `[`, `]`):                                         false,
		nested(20_000_000, `[`, `]`):                                     false,
		nested(20_000_000, `[`, ``):                                      false,
		nested(9_000, `{"a":`, `}`):                                      false,
		nested(5_001, `{"a":[`, `]}`):                                    false,
		`"` + nested(20_000, `[{`, `"`):                                  false,
		`["` + nested(20_000, `[{`, ``) + `"]`:                           true,
		`[` + strings.TrimSuffix(nested(20_000, `[{}],`, ``), `,`) + `]`: true,
	} {
		if got := ValidJSON([]byte(data)); got != want {
			t.Errorf("%s is valid: %t, want %t", brief(data), got, want)
		}
	}
}

func nested(n int, before, after string) string {
	return strings.Repeat(before, n) + strings.Repeat(after, n)
}

func brief(s string) string { return fmt.Sprintf("%.30s… of %d bytes", s, len(s)) }
