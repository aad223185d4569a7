package catalog

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"
)

// A published catalogue is taken if the trusted key signed it and nothing newer is installed, and
// nothing else is.
func TestPublished(t *testing.T) {
	public, private, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, stranger, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := public.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(encoded)), "\n")
	dir, key := filepath.Join(t.TempDir(), "store"), lines[len(lines)-1]
	of := func(days int) string { return Default().Date().AddDate(0, 0, days).Format(time.DateOnly) }
	text := func(version, price string) []byte {
		return fmt.Appendf(nil, `{"version":%q,"providers":[{"id":"acme","models":[{"id":"large","prices":[{"input":%q}]}]}]}`, version, price)
	}
	newer := text(of(2), "1")
	for _, c := range []struct {
		name            string
		text, signature []byte
		version, err    string
	}{
		{"the first", newer, minisign.Sign(private, newer), of(2), ""},
		{"the same again", newer, minisign.Sign(private, newer), of(2), ""},
		{"an older one", text(of(1), "9"), minisign.Sign(private, text(of(1), "9")), "", "is of " + of(1) + ", and older than the one of " + of(2) + " that is installed"},
		{"a changed one", text(of(3), "9"), minisign.Sign(private, text(of(3), "1")), "", "is not signed by the key " + key},
		{"another's", text(of(3), "1"), minisign.Sign(stranger, text(of(3), "1")), "", "is not signed by the key"},
		{"one without a signature", text(of(3), "1"), nil, "", "is not signed by the key"},
		{"one of the future", text("9999-01-01", "1"), minisign.Sign(private, text("9999-01-01", "1")), "", "in the future"},
		{"one without a day", text("new", "1"), minisign.Sign(private, text("new", "1")), "", `has the version "new"`},
		{"an empty one", []byte(`{"version":"2026-11-20"}`), minisign.Sign(private, []byte(`{"version":"2026-11-20"}`)), "", "no providers"},
		{"a later one", text(of(3), "2"), minisign.Sign(private, text(of(3), "2")), of(3), ""},
	} {
		installed, err := Install(dir, key, c.text, c.signature)
		if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) || c.err == "" && err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if c.err == "" && installed.Version() != c.version {
			t.Errorf("%s: version %s", c.name, installed.Version())
		}
	}
	c, err := Newest(dir, key)
	if err != nil || c.Version() != of(3) {
		t.Fatalf("%v, %v", c, err)
	}
	if m, ok := c.Lookup("acme", "large"); !ok || len(m.Prices) != 1 {
		t.Error("the installed catalogue lacks its model")
	}

	path := filepath.Join(dir, installedName)
	stored, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, damaged := range map[string][]byte{
		"cut":     stored[:len(stored)-1],
		"changed": bytes.Replace(stored, []byte(`"input":"2"`), []byte(`"input":"0"`), 1),
		"empty":   nil,
	} {
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if c, err := Newest(dir, key); c != Default() || err == nil || !strings.Contains(err.Error(), "is not signed by the key") {
			t.Errorf("%s: %v", name, err)
		}
		if c, err := Install(dir, key, newer, minisign.Sign(private, newer)); err != nil || c.Version() != of(2) {
			t.Errorf("%s is not replaced: %v", name, err)
		}
		if c, err := Newest(dir, key); err != nil || c.Version() != of(2) {
			t.Errorf("%s was replaced: %v", name, err)
		}
	}
	if c, err := Newest(t.TempDir(), key); err != nil || c != Default() {
		t.Errorf("without an installed one: %v", err)
	}
	if CheckKey(key) != nil || CheckKey("RWQ") == nil {
		t.Error("keys are taken for others")
	}
}
