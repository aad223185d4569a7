//go:build linux

package durability

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var keep = flag.String("keep", "", "keep a store of this release, such as 0.1.0, in testdata/releases")

// releases has a store of each release: a data directory as it left it, killed while records waited for
// the database, in an archive with what that release said of it then.
const releases = "testdata/releases"

// upgradeConfig is the configuration of those stores.
var upgradeConfig = config{site: "llm_gateway", llm: `
	provider echo
	org payer {
		key payer-key
		credits 10
	}`}

// answers are what a process says of its store; the newer one must say the same.
type answers struct {
	Records []map[string]any
	Credits []map[string]any
	Balance balance
}

func (w *weir) answers() (a answers) {
	w.t.Helper()
	w.flush()
	for _, key := range []string{key, "payer-key"} {
		w.t.Setenv("WEIR_API_KEY", key)
		for line := range strings.Lines(w.command("export", "--address", "http://"+w.site)) {
			var record map[string]any
			if err := json.Unmarshal([]byte(line), &record); err != nil {
				w.t.Fatalf("%v in %s", err, line)
			}
			a.Records = append(a.Records, record)
		}
	}
	if err := json.Unmarshal([]byte(w.command("credits", "--format", "json")), &a.Credits); err != nil {
		w.t.Fatal(err)
	}
	a.Balance = w.settled()
	return a
}

// pay makes a call that credits pay for.
func (w *weir) pay() {
	w.t.Helper()
	r, _ := http.NewRequest("POST", "http://"+w.site+"/v1/responses", strings.NewReader(`{"model": "echo/echo-1", "input": "what does this cost?"}`))
	r.Header.Set("Authorization", "Bearer payer-key")
	if _, err := exchange(r); err != nil {
		w.t.Fatal(err)
	}
}

// keepRelease makes a store, and leaves its archive.
func keepRelease(t *testing.T, archive string) {
	p := newProvider(t)
	w := newWeir(t, p)
	w.start(upgradeConfig)
	succeed(t, p, w, 40, 2000)
	w.pay()
	w.terminate()
	w.wait()
	w.start(upgradeConfig)
	unlock := w.lock()
	succeed(t, p, w, 20, 0)
	w.pay()
	w.kill()
	unlock()
	data := filepath.Dir(w.database())
	copied := filepath.Join(t.TempDir(), "store")
	if err := os.CopyFS(filepath.Join(copied, "data"), os.DirFS(data)); err != nil {
		t.Fatal(err)
	}
	w.start(upgradeConfig)
	said, err := json.Marshal(w.answers())
	if err == nil {
		err = os.WriteFile(filepath.Join(copied, "answers.json"), said, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	tar(t, "-czf", archive, "-C", copied, "data", "answers.json")
}

func tar(t *testing.T, args ...string) {
	t.Helper()
	if output, err := exec.Command("tar", args...).CombinedOutput(); err != nil {
		t.Fatalf("tar %v: %v\n%s", args, err, output)
	}
}

// A store of each release opens: what it had is there and says the same, more is taken, and
// `weir check` finds nothing. Before the first release, it is a store of this one.
func TestUpgrade(t *testing.T) {
	archives, err := filepath.Glob(releases + "/*.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case *keep != "":
		if err := os.MkdirAll(releases, 0o755); err != nil {
			t.Fatal(err)
		}
		archives = []string{filepath.Join(releases, *keep+".tar.gz")}
		keepRelease(t, archives[0])
	case len(archives) == 0:
		archives = []string{filepath.Join(t.TempDir(), "unreleased.tar.gz")}
		keepRelease(t, archives[0])
	}
	for _, archive := range archives {
		t.Run(filepath.Base(archive), func(t *testing.T) {
			p := newProvider(t)
			w := newWeir(t, p)
			kept := t.TempDir()
			tar(t, "-xzf", archive, "-C", kept)
			if err := os.CopyFS(filepath.Dir(w.database()), os.DirFS(filepath.Join(kept, "data"))); err != nil {
				t.Fatal(err)
			}
			said, err := os.ReadFile(filepath.Join(kept, "answers.json"))
			if err != nil {
				t.Fatal(err)
			}
			var want answers
			if err := json.Unmarshal(said, &want); err != nil {
				t.Fatal(err)
			}
			w.start(upgradeConfig)
			got := w.answers()
			if len(got.Records) != len(want.Records) || len(want.Records) != 62 {
				t.Fatalf("%d records, want %d", len(got.Records), len(want.Records))
			}
			for i, record := range want.Records {
				for field, value := range record {
					if !reflect.DeepEqual(got.Records[i][field], value) {
						t.Errorf("%v: %s is %v, and was %v", record["request_id"], field, got.Records[i][field], value)
					}
				}
			}
			if !reflect.DeepEqual(got.Credits, want.Credits) || !reflect.DeepEqual(got.Balance, want.Balance) {
				t.Errorf("credits and balance are %+v, and were %+v", got, want)
			}
			succeed(t, p, w, 10, 0)
			w.pay()
			w.kill()
			w.start(upgradeConfig)
			w.wantBalance(int(want.Balance.Recorded)+11, want.Balance.lost())
			w.terminate()
			w.wait()
			if output := w.command("check", filepath.Dir(w.database())); !bytes.HasSuffix([]byte(output), []byte("ok\n")) {
				t.Error(output)
			}
		})
	}
}
