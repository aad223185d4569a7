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
