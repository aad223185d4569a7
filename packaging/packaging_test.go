// Package packaging tests that the files of the packages agree with each other and with
// the binary.
package packaging

import (
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/weirhq/weir/modules/standard"
)

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func first(t *testing.T, file, pattern string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(read(t, file))
	if found == nil {
		t.Fatalf("%s has no %s", file, pattern)
	}
	return found[1]
}

// What supervises Weir waits until calls in flight have ended, and 15 seconds for the
// database.
func TestSupervisorsWaitForTheGracePeriod(t *testing.T) {
	grace, err := time.ParseDuration(first(t, "Caddyfile", `grace_period (\S+)`))
	if err != nil {
		t.Fatal(err)
	}
	want := strconv.Itoa(int((grace + 15*time.Second).Seconds()))
	for file, pattern := range map[string]string{"weir.service": `TimeoutStopSec=(\d+)`, "helm/values.yaml": `terminationGracePeriodSeconds: (\d+)`} {
		if got := first(t, file, pattern); got != want {
			t.Errorf("%s waits %s seconds, want %s", file, got, want)
		}
	}
}

// The package depends on the program that its scripts call, and no image takes what Weir has
// recorded beside the sources.
func TestPackagesTakeWhatTheyNeed(t *testing.T) {
	if strings.Contains(read(t, "debian/postinst"), "adduser") != strings.Contains(read(t, "debian/control"), "Depends: adduser") {
		t.Error("debian/control does not depend on adduser, which debian/postinst calls")
	}
	ignored := strings.Fields(read(t, "../.dockerignore"))
	for _, name := range []string{"weir-data", "weir.db", "weir.db-wal", "weir.db-columns", "weir.db.segments"} {
		if !slices.ContainsFunc(ignored, func(pattern string) bool {
			ok, _ := path.Match(strings.TrimPrefix(pattern, "**/"), name) // of patterns that are known
			return ok
		}) {
			t.Errorf(".dockerignore lets %s into images", name)
		}
	}
}

// The configuration of the packages is whole with a key, and without one it is none.
func TestConfigurationNeedsAKey(t *testing.T) {
	t.Setenv("WEIR_DATA", t.TempDir())
	text, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(read(t, "Caddyfile")), map[string]any{"filename": "Caddyfile"})
	if err != nil || len(warnings) > 0 {
		t.Fatal(warnings, err)
	}
	for key, want := range map[string]string{"": "the environment variable WEIR_API_KEY is not set", "secret": ""} {
		t.Setenv("WEIR_API_KEY", key)
		var config *caddy.Config
		if err := json.Unmarshal(text, &config); err != nil {
			t.Fatal(err)
		}
		config.Admin = &caddy.AdminConfig{Disabled: true}
		switch err := caddy.Validate(config); {
		case want == "" && err != nil:
			t.Errorf("with a key: %v", err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("without a key: %v, want %s", err, want)
		}
	}
}

// The board and the alerts ask for metrics that are documented.
func TestMonitoringAsksForMetricsThereAre(t *testing.T) {
	metrics := regexp.MustCompile(`\bweir_[a-z_]+`)
	documented := metrics.FindAllString(read(t, "../docs/operations.md"), -1)
	for _, file := range []string{"monitoring/rules.yml", "monitoring/grafana.json"} {
		asked := metrics.FindAllString(read(t, file), -1)
		if len(asked) < 5 {
			t.Errorf("%s asks for %q", file, asked)
		}
		for _, name := range asked {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				name = strings.TrimSuffix(name, suffix)
			}
			if !slices.Contains(documented, name) {
				t.Errorf("%s asks for %s, which docs/operations.md does not have", file, name)
			}
		}
	}
	if !json.Valid([]byte(read(t, "monitoring/grafana.json"))) {
		t.Error("monitoring/grafana.json is no JSON")
	}
}

// Alerts fire when they should, and not before.
func TestRules(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("needs promtool, of the Debian package prometheus")
	}
	for _, args := range [][]string{{"check", "rules", "rules.yml"}, {"test", "rules", "rules_test.yml"}} {
		command := exec.Command(promtool, args...)
		command.Dir = "monitoring"
		if output, err := command.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, output)
		}
	}
}
