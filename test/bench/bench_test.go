//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
	"github.com/tidwall/gjson"

	_ "github.com/weirhq/weir/modules/standard"
)

// TestMain lets the program of the test play Weir, which need not be built then.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "run" {
		caddycmd.Main()
		return
	}
	os.Exit(m.Run())
}

func newBench(t *testing.T, targets []target, names string) *bench {
	t.Helper()
	b := &bench{targetsFile: "targets.json", targets: targets, rounds: 1, duration: 50 * time.Millisecond, warmUp: 50 * time.Millisecond, settle: 50 * time.Millisecond, dir: t.TempDir()}
	var err error
	if b.weir, err = os.Executable(); err != nil {
		t.Fatal(err)
	}
	if b.cases, err = choose(names); err != nil {
		t.Fatal(err)
	}
	if err := b.compose(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.provider.close)
	return b
}

// TestMeasure measures the targets of the file: each passes every byte on in
// both directions, and there is a figure for all that can be measured of it.
func TestMeasure(t *testing.T) {
	targets, err := readTargets("targets.json")
	if err != nil {
		t.Fatal(err)
	}
	masked, err := readTargets("masked.json")
	if err != nil {
		t.Fatal(err)
	}
	targets = slices.DeleteFunc(targets, func(t target) bool { return t.Name == "weir-metrics" || t.Name == "gateway" })
	targets = append(targets, masked[len(masked)-1])
	b := newBench(t, targets, "responses-16")
	cells, err := b.run(t.Context(), func(*cell) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if len(cells) != len(targets) {
		t.Fatalf("%d cells of %d targets", len(cells), len(targets))
	}
	for _, c := range cells {
		if c.Calls == 0 || c.Failed > 0 {
			t.Errorf("%s: %d of %d calls failed: %s", c.Target, c.Failed, c.Calls, c.Failure)
		}
		if c.P50 <= 0 || c.FirstP50 <= 0 || c.FirstP50 > c.P99 || c.CallsPerSecond <= 0 || c.Gaps == nil || c.Gaps.Max <= 0 {
			t.Errorf("%s: there are figures missing: %+v", c.Target, c)
		}
		switch s := c.Server; {
		case c.Target == direct:
			if s != nil {
				t.Error("a direct call has no process in between")
			}
		case s == nil || s.CPU <= 0 || s.ColdStart <= 0 || s.IdleMB <= 0 || s.PeakMB < s.IdleMB:
			t.Errorf("%s: there are figures missing: %+v", c.Target, s)
		}
	}
	var report bytes.Buffer
	b.report(&report, cells)
	if !strings.Contains(report.String(), "| CPU, × caddy | responses-16 | gateway-anthropic |") {
		t.Errorf("the report does not compare:\n%s", report.String())
	}
}

// TestFailures makes calls that must not count as answered.
func TestFailures(t *testing.T) {
	b := newBench(t, nil, "small-1")
	answer := string(b.cases[0].ping.answer)
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		failed bool
	}{
		{"as it is", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) }, false},
		{"altered", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Replace(answer, "0", "1", 1)) }, true},
		{"cut", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer[:len(answer)-1]) }, true},
		{"longer", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer+" ") }, true},
		{"refused", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, answer, http.StatusTooManyRequests) }, true},
		{"aborted", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, answer[:10])
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := httptest.NewServer(c.answer)
			defer s.Close()
			calls := newCaller(&target{}, s.URL, nil)
			defer calls.close()
			var seen tally
			calls.call(t.Context(), b.cases[0].ping, time.Now(), &seen)
			if failed := seen.failed == 1; failed != c.failed || failed != (seen.failure != nil) || seen.calls != 1 {
				t.Errorf("failed: %v (%v), want %v", failed, seen.failure, c.failed)
			}
		})
	}
}

// TestAltered changes what the client says: the provider must notice.
func TestAltered(t *testing.T) {
	b := newBench(t, nil, "small-1")
	calls := newCaller(&target{}, "http://"+b.provider.address, nil)
	defer calls.close()
	x := *b.cases[0].ping
	x.request = bytes.Replace(x.request, []byte("0.7"), []byte("0.8"), 1)
	var seen tally
	calls.call(t.Context(), &x, time.Now(), &seen)
	if altered := b.provider.altered.Load(); altered != 1 || seen.failed > 0 {
		t.Errorf("%d altered requests, %v", altered, seen.failure)
	}
}

// TestOpenLoop calls a provider that never ends: an open loop goes on calling.
func TestOpenLoop(t *testing.T) {
	arrived := make(chan struct{}, 5)
	ctx, cancel := context.WithCancel(t.Context())
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // only then the server sees that a client leaves
		arrived <- struct{}{}
		<-r.Context().Done()
	}))
	defer s.Close()
	calls := newCaller(&target{}, s.URL, nil)
	done := make(chan *tally)
	go func() {
		done <- calls.run(ctx, load{rate: 1000, duration: 5 * time.Millisecond}, []exchange{{request: []byte("x")}})
	}()
	for range 5 {
		<-arrived
	}
	cancel()
	if seen := <-done; seen.calls != 5 || seen.failed != 5 {
		t.Errorf("%d calls, %d failed", seen.calls, seen.failed)
	}
}

// TestTraffic composes what providers and clients really say, in the size that
// was asked for.
func TestTraffic(t *testing.T) {
	for _, k := range []traffic{small, large, stream, same, tooled, embedded} {
		pool := compose(k, 7)
		for i, x := range pool {
			if n, err := exchangeOf(x.request); n != i+7 || err != nil {
				t.Fatalf("exchange %d says that it is %d, %v", i+7, n, err)
			}
			if size := float64(len(x.request)) / float64(k.requestBytes); size < 0.9 || size > 1.1 {
				t.Fatalf("a request of %d bytes, want %d", len(x.request), k.requestBytes)
			}
			if k.events == 0 {
				if size := float64(len(x.answer)) / float64(k.answerBytes); !json.Valid(x.answer) || size < 0.9 || size > 1.1 {
					t.Fatalf("an answer of %d bytes, want %d: %s", len(x.answer), k.answerBytes, x.answer)
				}
				continue
			}
			if len(x.ends) != k.events || x.ends[len(x.ends)-1] != len(x.answer) {
				t.Fatalf("%d events, want %d", len(x.ends), k.events)
			}
			for from := 0; len(x.ends) > 1; x.ends = x.ends[1:] {
				data, framed := strings.CutPrefix(string(x.answer[from:x.ends[0]]), "data: ")
				if !framed || !gjson.Valid(data) || !strings.HasSuffix(data, "}\n\n") {
					t.Fatalf("the event %q", data)
				}
				from = x.ends[0]
			}
		}
	}
}

// TestMixture numbers exchanges of all kinds, so that the provider finds their answers.
func TestMixture(t *testing.T) {
	kinds := map[string]int{}
	for i, x := range compose(mixed, 7) {
		if n, err := exchangeOf(x.request); n != i+7 || err != nil {
			t.Fatalf("exchange %d says that it is %d, %v", i+7, n, err)
		}
		kinds[fmt.Sprint(x.path, x.status, len(x.ends) > 0)]++
	}
	if len(kinds) != 4 {
		t.Errorf("%v, want questions, streams, embeddings and refusals", kinds)
	}
	if pool := compose(same, 7); len(pool) != 1 {
		t.Errorf("%d prompts that repeat, want 1", len(pool))
	}
}

// TestAgainst compares a call with that of an older binary, and names what is dearer.
func TestAgainst(t *testing.T) {
	b := newBench(t, []target{{Name: plain, Command: []string{"$WEIR"}}, {Name: "weir", Command: []string{"$WEIR"}}}, "small-1")
	if err := b.addOlder(t.Context(), b.weir); err != nil {
		t.Fatal(err)
	}
	old := b.targets[len(b.targets)-1]
	if p, err := b.newVariables(&old); err != nil || p["WEIR"] != b.weir || len(b.targets) != 3 || old.newer != "weir" {
		t.Fatalf("%+v, %v", b.targets, err)
	}
	if err := b.addOlder(t.Context(), "no-such-version"); err == nil || !strings.Contains(err.Error(), "neither a file nor a commit") {
		t.Errorf("an unknown version: %v", err)
	}
	failing, err := exec.LookPath("false")
	if err != nil {
		t.Fatal(err)
	}
	without := *b
	without.targets = []target{{Name: old.Name, Command: old.Command, URL: "http://127.0.0.1:$PORT", newer: old.newer, older: "false", binary: failing}}
	if cells, err := without.run(t.Context(), nil); err != nil || len(cells) > 0 {
		t.Errorf("with an older version that cannot answer: %v, %v", cells, err)
	}
	for _, c := range []struct {
		now    float64
		dearer int
	}{{104, 0}, {106, 1}, {90, 0}} {
		of := func(target string, cpu float64) *cell {
			return &cell{Case: "small-1", Target: target, Round: 1, Calls: 10, Server: &server{CPU: cpu, PeakMB: 1}}
		}
		var table strings.Builder
		if dearer := b.reportOlder(&table, []*cell{of("weir", c.now), of(old.Name, 100)}); len(dearer) != c.dearer {
			t.Errorf("%v µs for 100: %v dearer\n%s", c.now, dearer, table.String())
		}
	}
}

// TestReport leaves out the rounds in which a call failed, and tells of them.
func TestReport(t *testing.T) {
	of := func(target string, round int, cpu float64, failure string) *cell {
		c := &cell{Case: "small-1", Target: target, Round: round, Calls: 10, Failure: failure}
		if failure != "" {
			c.Failed = 1
		}
		if target != direct {
			c.Server = &server{CPU: cpu}
		}
		return c
	}
	cells := []*cell{
		of(direct, 1, 0, ""), of(plain, 1, 100, ""), of("weir", 1, 120, ""),
		of(direct, 2, 0, ""), of(plain, 2, 100, ""), of("weir", 2, 900, "status 502"),
		of(direct, 3, 0, ""), of(plain, 3, 100, ""), of("weir", 3, 140, ""),
	}
	f, known := figureOf(rounds(cells, "small-1", "weir", plain, direct), func(r round) float64 { return ratio(cpu, plain)(r, "weir") })
	if want := (figure{1.3, 1.2, 1.4}); !known || math.Abs(f.median-want.median) > 1e-9 || f.least != want.least || f.greatest != want.greatest {
		t.Errorf("%+v, want %+v", f, want)
	}
	if _, known := figureOf(rounds(cells, "small-1", direct), func(r round) float64 { return cpu(r[direct]) }); known {
		t.Error("a direct call has no processor time")
	}
	if got, want := failures(cells, "small-1", "weir"), "1 of 30: status 502"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestQuantile(t *testing.T) {
	ms := func(values ...int) (d []time.Duration) {
		for _, v := range values {
			d = append(d, time.Duration(v)*time.Millisecond)
		}
		return d
	}
	for _, c := range []struct {
		of   []time.Duration
		q    float64
		want float64
	}{
		{nil, 0.5, 0},
		{ms(3), 0.99, 3},
		{ms(1, 2, 3, 4), 0.5, 2},
		{ms(1, 2, 3, 4), 0.51, 3},
		{ms(1, 2, 3, 4), 1, 4},
	} {
		if got := quantile(c.of, c.q); got != c.want {
			t.Errorf("quantile %g of %v is %g, want %g", c.q, c.of, got, c.want)
		}
	}
	if got := latePercent(ms(10, 14, 15, 16), 10*time.Millisecond); got != 50 {
		t.Errorf("%g %% are late, want 50", got)
	}
}

func TestTargets(t *testing.T) {
	for _, c := range []struct{ file, problem string }{
		{`[{"name":"direct","url":"u"},{"name":"caddy","url":"u"}]`, ""},
		{`[{"name":"direct","url":"u"}]`, "want the targets direct and caddy"},
		{`[{"name":"direct","url":"u"},{"name":"direct","url":"u"}]`, "target 2: want a name of its own"},
		{`[{"name":"direct"}]`, "target 1: want a name of its own and a url"},
		{`{`, "unexpected end of JSON input"},
	} {
		file := t.TempDir() + "/targets.json"
		if err := os.WriteFile(file, []byte(c.file), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := readTargets(file)
		if c.problem == "" && err != nil || c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem)) {
			t.Errorf("%s: %v, want %q", c.file, err, c.problem)
		}
	}
}

// TestTLS measures the targets that call the provider over TLS.
func TestTLS(t *testing.T) {
	targets, err := readTargets("tls.json")
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, targets, "small-1")
	cells, err := b.run(t.Context(), func(*cell) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cells {
		if c.Calls == 0 || c.Failed > 0 {
			t.Errorf("%s: %d of %d calls failed: %s", c.Target, c.Failed, c.Calls, c.Failure)
		}
	}
	if n := b.provider.handshakes.Load(); n < int64(len(targets)-1) {
		t.Errorf("%d connections over TLS", n)
	}
}
