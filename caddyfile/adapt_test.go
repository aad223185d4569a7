package caddyfile_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/weirhq/weir/modules/standard"
)

var update = flag.Bool("update", false, "write what the adapter says into testdata")

const separator = "----------\n"

// TestAdapt adapts each file of testdata: a Caddyfile, ten hyphens, and the
// JSON or the error that it must become. Caddy's own adapter tests have the
// same form.
func TestAdapt(t *testing.T) {
	files, err := filepath.Glob("testdata/*.caddyfiletest")
	if err != nil || len(files) == 0 {
		t.Fatalf("no testdata: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".caddyfiletest"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			source, want, _ := strings.Cut(string(raw), separator)
			got := adapt(t, source)
			if *update {
				if err := os.WriteFile(file, []byte(source+separator+got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != want {
				t.Errorf("adapted to\n%s\nwant\n%s", got, want)
			}
			if formatted := caddyfile.Format([]byte(source)); string(formatted) != source {
				t.Errorf("not formatted as `caddy fmt` does:\n%s", formatted)
			}
		})
	}
}

func adapt(t *testing.T, source string) string {
	result, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(source), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		return err.Error() + "\n"
	}
	for _, w := range warnings {
		t.Errorf("warning: %s", w)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, result, "", "\t"); err != nil {
		t.Fatal(err)
	}
	return pretty.String() + "\n"
}
