package nearest

import "testing"

func TestName(t *testing.T) {
	known := []string{"Property-", "Prompt-Id", "max_journal", "retention", "a"}
	for name, want := range map[string]string{
		"Propery-":    "Property-",
		"prompt-id":   "Prompt-Id",
		"maxjournal":  "max_journal",
		"retentoin":   "retention",
		"webhook":     "",
		"":            "a",
		"b":           "a",
		"max_journal": "max_journal",
		"max-journal": "max_journal",
		"retentino":   "retention",
	} {
		if got := Name(name, known); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "abc", 0}, {"abc", "", 3}, {"", "ab", 2}, {"abc", "axc", 1}, {"abc", "bc", 1}, {"kitten", "sitting", 3}, {"abc", "acb", 1}} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
