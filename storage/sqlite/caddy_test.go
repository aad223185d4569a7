package sqlite

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

func TestProvision(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("WEIR_TEST_DATA", dir)
	s := &Storage{Path: "{env.WEIR_TEST_DATA}/x/../weir.db"}
	if err := s.Provision(caddy.Context{}); err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(dir, "weir.db")
	if got := s.Key(); got != "sqlite:"+want {
		t.Errorf("Key = %q, want sqlite:%s", got, want)
	}
	if got := s.Dir(); got != want+".segments" {
		t.Errorf("Dir = %q, want %s.segments", got, want)
	}
	if entries, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || entries != nil {
		t.Errorf("Provision made %v, %v", entries, err)
	}
}

func TestProvisionRefuses(t *testing.T) {
	for path, want := range map[string]string{
		"":                           "needs a path",
		"{env.WEIR_TEST_UNSET}":      "WEIR_TEST_UNSET",
		"{env.WEIR_TEST_UNSET}/x.db": "WEIR_TEST_UNSET",
	} {
		err := (&Storage{Path: path}).Provision(caddy.Context{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Provision of path %q = %v, want %q in it", path, err, want)
		}
	}
}

func TestUnmarshalCaddyfile(t *testing.T) {
	for _, test := range []struct{ input, path, err string }{
		{"sqlite ./weir.db", "./weir.db", ""},
		{"sqlite", "", "argument"},
		{"sqlite a b", "", "argument"},
		{"sqlite a {\n wal off\n}", "a", `"wal"`},
	} {
		var s Storage
		err := s.UnmarshalCaddyfile(caddyfile.NewTestDispenser(test.input))
		if test.err == "" && (err != nil || s.Path != test.path) {
			t.Errorf("%q: path %q, %v", test.input, s.Path, err)
		}
		if test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
			t.Errorf("%q: %v, want %q in the error", test.input, err, test.err)
		}
	}
}
