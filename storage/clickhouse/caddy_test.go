package clickhouse_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/weirhq/weir/modules/standard"
	"github.com/weirhq/weir/storage/clickhouse"
)

// The Caddyfile of testdata becomes the JSON behind it.
func TestAdapt(t *testing.T) {
	raw, err := os.ReadFile("testdata/llm_store_clickhouse.caddyfiletest")
	if err != nil {
		t.Fatal(err)
	}
	source, want, _ := strings.Cut(string(raw), "----------\n")
	result, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(source), nil)
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	var pretty any
	if err := json.Unmarshal(result, &pretty); err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(pretty, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	if string(got)+"\n" != want {
		t.Errorf("adapted to\n%s\nwant\n%s", got, want)
	}
}

func TestProvision(t *testing.T) {
	t.Setenv("WEIR_TEST_HOST", "db.internal")
	s := &clickhouse.Storage{Addresses: []string{"{env.WEIR_TEST_HOST}", "other:9001"}, Journal: "/var/lib/weir/journal"}
	if err := s.Provision(caddy.Context{}); err != nil {
		t.Fatal(err)
	}
	if got, want := s.Key(), "clickhouse:/var/lib/weir/journal"; got != want {
		t.Errorf("Key = %q, want %q", got, want)
	}
	for name, s := range map[string]*clickhouse.Storage{
		"needs the address": {},
		"WEIR_TEST_UNSET":   {Addresses: []string{"localhost"}, Password: "{env.WEIR_TEST_UNSET}"},
	} {
		if err := s.Provision(caddy.Context{}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("Provision = %v, want %q in it", err, name)
		}
	}
}

func TestUnmarshalCaddyfile(t *testing.T) {
	for input, want := range map[string]string{
		"clickhouse":                              "takes the address",
		"clickhouse localhost {\n databse x\n}":   "database",
		"clickhouse localhost {\n tls maybe\n}":   "tls",
		"clickhouse localhost {\n cluster\n}":     "cluster",
		"clickhouse localhost {\n journal a b\n}": "journal",
	} {
		err := new(clickhouse.Storage).UnmarshalCaddyfile(caddyfile.NewTestDispenser(input))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q in the error", input, err, want)
		}
	}
}
