package packaging

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	_ "github.com/mattn/go-sqlite3"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/testkit/freeport"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/journal"
)

// monitored is a Weir in this process, with a Prometheus that scrapes it.
type monitored struct {
	t                          *testing.T
	site, prometheus, database string
}

// monitor starts both. The alerts fire after 200 ms where they wait for minutes.
func monitor(t *testing.T) *monitored {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		if os.Getenv("REQUIRE_PROMETHEUS") != "" {
			t.Fatal(err)
		}
		t.Skip("needs the Debian package prometheus")
	}
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error": {"message": "slow down", "type": "rate_limit_error"}}`, http.StatusTooManyRequests)
	}))
	t.Cleanup(busy.Close)
	dir := t.TempDir()
	m := &monitored{t: t, site: freeport.Address(t), prometheus: freeport.Address(t), database: filepath.Join(dir, "weir.db")}
	if err := caddy.Load(fmt.Appendf(nil, `{
		"admin": {"disabled": true},
		"logging": {"logs": {"default": {"level": "FATAL"}}},
		"apps": {
			"llm": {
				"stores": {"default": {"storage": {"backend": "sqlite", "path": %q}, "max_journal": 262144}},
				"keys": [{"secret": "secret"}],
				"providers": [{"label": "echo"}, {"label": "dead", "api": {"kind": "openai"}, "api_key": "k", "base_url": "http://%s/v1"},
					{"label": "busy", "api": {"kind": "anthropic"}, "api_key": "k", "base_url": "%s"}]
			},
			"http": {"grace_period": "1s", "servers": {"site": {"listen": [%q], "automatic_https": {"disable": true}, "routes": [
				{"match": [{"path": ["/metrics"]}], "handle": [{"handler": "metrics"}]},
				{"handle": [{"handler": "llm_gateway"}]}
			]}}}
		}
	}`, m.database, freeport.Address(t), busy.URL, m.site), true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = caddy.Stop() })
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file("rules.yml", regexp.MustCompile(`for: \d+m`).ReplaceAllString(read(t, "monitoring/rules.yml"), "for: 200ms"))
	config := file("prometheus.yml", fmt.Sprintf(`
global: {scrape_interval: 200ms, scrape_timeout: 200ms, evaluation_interval: 200ms}
rule_files: [rules.yml]
scrape_configs: [{job_name: weir, static_configs: [{targets: [%q]}]}]
`, m.site))
	ctx, cancel := context.WithCancel(context.Background())
	command := exec.CommandContext(ctx, program, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "tsdb"), "--web.listen-address="+m.prometheus, "--log.level=error")
	var log bytes.Buffer
	command.Stderr = &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = command.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	m.await("Prometheus scrapes Weir", func() bool { return m.query(`up{job="weir"} == 1`).Get("#").Int() == 1 })
	return m
}

func (m *monitored) await(what string, holds func() bool) {
	m.t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			m.t.Fatalf("it never comes to this: %s; %v fire", what, m.firing())
		}
	}
}

// query is what Prometheus answers.
func (m *monitored) query(expression string) gjson.Result {
	m.t.Helper()
	response, err := http.Get("http://" + m.prometheus + "/api/v1/query?query=" + url.QueryEscape(expression))
	if err != nil {
		return gjson.Result{} // it starts
	}
	defer response.Body.Close()
	answer, _ := io.ReadAll(response.Body)
	if response.StatusCode == http.StatusBadRequest {
		m.t.Errorf("%s: %s", expression, answer)
	}
	return gjson.GetBytes(answer, "data.result")
}

// firing are the names of the alerts that fire.
func (m *monitored) firing() (names []string) {
	for _, name := range m.query(`sort_desc(count by (alertname) (ALERTS{alertstate="firing"}))`).Get("#.metric.alertname").Array() {
		names = append(names, name.Str)
	}
	slices.Sort(names)
	return names
}

func (m *monitored) awaitFiring(names ...string) {
	m.t.Helper()
	m.await(fmt.Sprintf("%v fire", names), func() bool { return slices.Equal(m.firing(), names) })
}

// call makes a streamed call, whose request has about so many bytes.
func (m *monitored) call(model string, size int) {
	m.t.Helper()
	body := fmt.Sprintf(`{"model": %q, "stream": true, "input": %q}`, model, strings.Repeat("x", size))
	request, _ := http.NewRequestWithContext(m.t.Context(), http.MethodPost, "http://"+m.site+"/v1/responses", strings.NewReader(body))
	request.Header.Set("Authorization", "Bearer secret")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		m.t.Error(err)
		return
	}
	_, _ = io.Copy(io.Discard, response.Body)
	response.Body.Close()
}

// callUntil makes calls until the state of the journal is that.
func (m *monitored) callUntil(holds func(journal.Status) bool) {
	m.t.Helper()
	for !m.t.Failed() && !holds(m.status()) {
		m.call("echo/echo-1", 1000)
	}
}

// status is the state of the journal of the one store.
func (m *monitored) status() journal.Status {
	m.t.Helper()
	app, err := caddy.ActiveContext().App("llm")
	if err != nil {
		m.t.Fatal(err)
	}
	store, err := app.(*llmapp.App).Store("")
	if err != nil {
		m.t.Fatal(err)
	}
	return store.Opened().Status()
}

// lock keeps Weir from its database until the function that it returns is called.
func (m *monitored) lock() func() {
	m.t.Helper()
	db, err := sql.Open("sqlite3", "file:"+m.database+"?_txlock=exclusive&_busy_timeout=10000")
	if err != nil {
		m.t.Fatal(err)
	}
	lock, err := db.Begin()
	if err != nil {
		m.t.Fatal(err)
	}
	return func() {
		_ = lock.Rollback()
		db.Close()
	}
}

// A real Prometheus fires the alerts when they must, one after the other, and ends them.
// The board asks it for nothing that it does not know.
func TestAlerts(t *testing.T) {
	t.Parallel() // Prometheus takes five seconds to look for its target
	m := monitor(t)
	for range 20 {
		m.call("echo/echo-1", 10)
	}
	m.await("its calls are seen", func() bool { return m.query(`sum(weir_requests_total) > 0`).Get("#").Int() == 1 })
	m.await("the database has its records", func() bool { return m.status().PendingBytes == 0 })
	m.awaitFiring()

	unlock := m.lock()
	m.call("echo/echo-1", 10)
	m.awaitFiring("WeirStoreFailing")
	m.callUntil(func(s journal.Status) bool { return s.PendingBytes > s.MaxBytes/2 })
	m.awaitFiring("WeirJournalBehind", "WeirStoreFailing")
	m.callUntil(func(s journal.Status) bool { return s.Lost[storage.LostJournalFull] > 0 })
	m.awaitFiring("WeirJournalBehind", "WeirRecordsLost", "WeirStoreFailing")
	unlock()
	m.awaitFiring("WeirRecordsLost") // for ten minutes

	for model, provider := range map[string]string{"dead/gpt-5-mini": "openai", "busy/claude-haiku-4-5": "anthropic"} {
		m.call(model, 10)
		m.await("a call to "+provider+" is seen", func() bool { // a rate needs two values of a counter
			return m.query(fmt.Sprintf(`weir_requests_total{provider=%q,status=~"5xx|429"}`, provider)).Get("#").Int() > 0
		})
		var calls sync.WaitGroup
		for range 39 {
			calls.Go(func() { m.call(model, 10) })
		}
		calls.Wait()
		m.await("the calls to "+provider+" fire", func() bool {
			return m.query(fmt.Sprintf(`ALERTS{alertname="WeirProviderFailing",alertstate="firing",provider=%q}`, provider)).Get("#").Int() == 1
		})
	}
	m.board()
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	m.await("WeirDown fires", func() bool { return slices.Contains(m.firing(), "WeirDown") })
}

// board waits until every panel of the board has something to show.
func (m *monitored) board() {
	m.t.Helper()
	var board struct {
		Panels []struct {
			Title   string `json:"title"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal([]byte(read(m.t, "monitoring/grafana.json")), &board); err != nil {
		m.t.Fatal(err)
	}
	variables := strings.NewReplacer("$instance", ".*", "$__rate_interval", "1m")
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			m.await(fmt.Sprintf("%q shows %s", panel.Title, target.Expr), func() bool {
				return m.query(variables.Replace(target.Expr)).Get("#").Int() > 0
			})
		}
	}
}
