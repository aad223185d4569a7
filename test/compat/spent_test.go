package compat

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"
)

// TestSpentBudget has clients, with the retries that they make by themselves, call a gateway
// whose budget is spent. Each makes one HTTP call for each call of its program.
func TestSpentBudget(t *testing.T) {
	if !*withClients {
		t.Skip("the clients need Node.js and Python: see README.md, then go test ./test/compat -compat")
	}
	w := startWeir(t, strings.NewReader(gatewayOf("provider echo\norg spent {\nkey spent\nbudget none 0.000000001 total\n}")))
	target, err := url.Parse(w.url)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	calls := make(map[string]int) // of models, by client
	through := httputil.NewSingleHostReverseProxy(target)
	counter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		client, path, _ := strings.Cut(r.URL.Path[1:], "/")
		if r.Method == http.MethodPost {
			mu.Lock()
			calls[client]++
			mu.Unlock()
		}
		r.URL.Path = "/" + path
		through.ServeHTTP(w, r)
	}))
	defer counter.Close()

	programs := [][]string{
		{"node", "node/spent.js", counter.URL},
		{"python/.venv/bin/python", "python/spent.py", counter.URL, "responses", "chat", "messages"},
	}
	if *full {
		programs = append(programs, []string{"python/.frameworks/bin/python", "python/spent.py", counter.URL,
			"langchain_openai", "langchain_anthropic", "litellm_openai", "litellm_anthropic"})
	}
	for _, command := range programs {
		cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v (README.md says what to install)", strings.Join(command, " "), err)
		}
		gjson.ForEachLine(string(out), func(seen gjson.Result) bool {
			mu.Lock()
			defer mu.Unlock()
			client := seen.Get("client").Str
			if n, status := calls[client], seen.Get("status").Int(); n != 1 || status != http.StatusPaymentRequired {
				t.Errorf("%s made %d calls and raised %d", client, n, status)
			}
			return true
		})
	}

	codex := exec.CommandContext(t.Context(), "node/node_modules/.bin/codex", "exec", "--skip-git-repo-check", "-C", t.TempDir(), "-m", "echo/echo-1",
		"-c", `model_provider="weir"`, "-c", `model_providers.weir.name="Weir"`, "-c", `model_providers.weir.env_key="WEIR_API_KEY"`,
		"-c", `model_providers.weir.base_url="`+counter.URL+`/codex/v1"`, "-c", `model_providers.weir.wire_api="responses"`, "hi")
	home := t.TempDir()
	codex.Env = append(os.Environ(), "HOME="+home, "CODEX_HOME="+home, "WEIR_API_KEY=spent")
	said, err := codex.CombinedOutput()
	if *withAgents {
		folder := t.TempDir()
		if out, err := exec.CommandContext(t.Context(), "npm", "install", "--no-audit", "--no-fund", "--prefix", folder, codingAgents[0].packages).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		claude := exec.CommandContext(t.Context(), folder+"/node_modules/.bin/claude", "-p", "hi", "--model", "echo/echo-1")
		home := t.TempDir()
		claude.Dir = t.TempDir()
		claude.Env = append(os.Environ(), "HOME="+home, "ANTHROPIC_BASE_URL="+counter.URL+"/claude", "ANTHROPIC_API_KEY=spent", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1")
		said, err := claude.CombinedOutput()
		mu.Lock()
		n := calls["claude"]
		mu.Unlock()
		if err == nil || n != 1 {
			t.Errorf("Claude Code made %d calls: %v\n%s", n, err, said)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if err == nil || calls["codex"] != 1 || !strings.Contains(string(said), "usage limit") {
		t.Errorf("Codex made %d calls: %v\n%s", calls["codex"], err, said)
	}
	t.Logf("%v", calls)
}
