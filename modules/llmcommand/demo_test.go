package llmcommand

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/rewrite"

	"github.com/weirhq/weir/internal/testkit/freeport"
	"github.com/weirhq/weir/modules/internal/stores/storestest"
	_ "github.com/weirhq/weir/modules/llmcontrol"
	_ "github.com/weirhq/weir/modules/llmecho"
	_ "github.com/weirhq/weir/modules/llmlog"
	_ "github.com/weirhq/weir/modules/llmotlp"
)

func TestDemoFillsADashboard(t *testing.T) {
	address := freeport.Address(t)
	config := fmt.Sprintf(`{
		"admin": {"disabled": true, "config": {"persist": false}},
		"logging": {"logs": {"default": {"level": "ERROR"}}},
		"apps": {
			"llm": {"stores": {"default": {"storage": {"backend": "sqlite", "path": %q}}}, "keys": [{"secret": %q}, {"secret": "administrator", "scopes": ["admin", "query"]}]},
			"http": {"servers": {"site": {"listen": [%q], "automatic_https": {"disable": true}, "routes": [
				{"match": [{"path": ["/echo/*"]}], "handle": [{"handler": "rewrite", "strip_path_prefix": "/echo"}, {"handler": "llm_log", "provider": "echo"}, {"handler": "llm_echo"}]},
				{"handle": [{"handler": "llm_otlp"}, {"handler": "llm_query"}, {"handler": "llm_control"}]}]}}}
		}
	}`, filepath.Join(t.TempDir(), "weir.db"), demoKey, address)
	if err := caddy.Load([]byte(config), true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { storestest.Stop(t) })
	t.Setenv(keyEnv, demoKey)
	t.Setenv(addressEnv, "http://"+address)

	var out lockedBuffer
	if _, err := run(t.Context(), demoCommand, &out, "--days", "2", "--once"); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	live := make(chan error, 1)
	go func() { live <- execute(ctx, demoCommand, &out, &out, "--days", "0") }()
	tail := follow(t, "--lines", "0", "provider=echo")
	tail.until(func() bool { return strings.Count(tail.out.String(), "\n") > 1 })
	stop()
	if err := <-live; err != nil {
		t.Fatalf("%v: %s", err, &out)
	}

	for _, terms := range []string{
		"status=529 provider=anthropic", "status=429", "cost=null model=qwen3-coder-internal", "cost>0 prompt_cache_read_tokens>0",
		"property.Service-Session-Path=/research/agents/crm/read", "score.accuracy>0", "score.helpful=1", "stream=true provider=echo out>0",
		"response~transit", "provider=echo job_id=weir-demo", "provider=anthropic job_id=weir-demo", "property.Team=growth property.Environment=staging",
	} {
		var found bytes.Buffer
		args := append(strings.Fields(terms), "--limit", "1", "--format", "jsonl")
		if _, err := run(t.Context(), queryCommand, &found, args...); err != nil || found.Len() == 0 {
			t.Errorf("%s finds nothing: %v", terms, err)
		}
	}

	// All of it goes at once, and nothing else.
	if _, err := run(t.Context(), demoCommand, &out, "--remove"); err == nil || !strings.Contains(err.Error(), `lacks the scope "admin"`) {
		t.Errorf("without the scope admin: %v", err)
	}
	response, err := http.Post("http://"+address+"/echo/v1/chat/completions", "application/json", strings.NewReader(`{"model":"echo-1","messages":[{"role":"user","content":"mine"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	t.Setenv(keyEnv, "administrator")
	if _, err := run(t.Context(), demoCommand, &out, "--remove"); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		var left bytes.Buffer
		if _, err := run(t.Context(), queryCommand, &left, "all", "--limit", "50", "--format", "jsonl"); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(left.String(), "\n"); n == 1 && !strings.Contains(left.String(), demoJob) {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("%d requests remain", n)
		}
	}
}

// The incident of the day before can be seen, at whatever hour the demo is started.
func TestDemoHasAnIncident(t *testing.T) {
	for hour := range 24 {
		now := time.Date(2026, 11, 23, hour, 30, 0, 0, time.UTC)
		failed := 0
		for _, turn := range newDemoTraffic(1).history(now.AddDate(0, 0, -2), now) {
			if turn.status == 529 {
				failed++
			}
		}
		if failed < 3 {
			t.Errorf("%d calls fail when it is %d:30", failed, hour)
		}
	}
}

func TestDemoHistoryIsOfThePast(t *testing.T) {
	now := time.Now()
	then := now.AddDate(0, 0, -3)
	turns := newDemoTraffic(1).history(then, now)
	if len(turns) < 500 {
		t.Errorf("%d requests in three days", len(turns))
	}
	for i, turn := range turns {
		if turn.at.Before(then.Add(-time.Hour)) || turn.at.Add(turn.latency).After(now) || i > 0 && turn.at.Before(turns[i-1].at) {
			t.Fatalf("request %d of %v took %v; history begins at %v and ends at %v", i, turn.at, turn.latency, then, now)
		}
	}
	if again := newDemoTraffic(1).history(then, now); !reflect.DeepEqual(again, turns) {
		t.Error("the same seed makes other traffic")
	}
}
