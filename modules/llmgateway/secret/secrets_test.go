package secret

import (
	"strings"
	"testing"
)

// What was sealed tells nothing, and opens for its provider and secret alone.
func TestSealer(t *testing.T) {
	s, err := New([]byte("one"), nil)
	if err != nil {
		t.Fatal(err)
	}
	other, err := New([]byte("other"), nil)
	if err != nil {
		t.Fatal(err)
	}
	text := s.Seal("alpha", "thoughts")
	if strings.Contains(text, "thoughts") || text == s.Seal("alpha", "thoughts") {
		t.Errorf("%s tells something", text)
	}
	if content, ok := s.Open("alpha", text); !ok || content != "thoughts" {
		t.Errorf("opened to %q", content)
	}
	for name, open := range map[string]func() (string, bool){
		"another provider": func() (string, bool) { return s.Open("beta", text) },
		"another secret":   func() (string, bool) { return other.Open("alpha", text) },
		"changed":          func() (string, bool) { return s.Open("alpha", text[:len(text)-1]) },
		"foreign":          func() (string, bool) { return s.Open("alpha", "gAAAAAB") },
		"empty":            func() (string, bool) { return s.Open("alpha", Sealed) },
	} {
		if content, ok := open(); ok {
			t.Errorf("%s: opened to %q", name, content)
		}
	}
}
