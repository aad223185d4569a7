package llmcommand

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Claude Code installs the plugin from the repository, and its command /weir:cost shows the model what was
// used today, and lets it ask the gateway what the session has cost so far.
func TestClaudePlugin(t *testing.T) {
	if *agentPrograms == "" {
		t.Skip("it needs Claude Code: go test ./modules/llmcommand -run ClaudePlugin -agents <folder>")
	}
	provider := &modelServer{calls: make(map[string][]modelCall)}
	var mu sync.Mutex
	var asked []string
	vendors := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		mu.Lock()
		asked = append(asked, string(body))
		mu.Unlock()
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		provider.ServeHTTP(w, r)
	}))
	defer vendors.Close()
	m := newAgentMachine(t)
	m.serve("\n\t\tkey weir-quickstart", vendors.URL)
	m.environment = append(m.environment, "WEIR_URL="+m.site, "WEIR_API_KEY=weir-quickstart", "ENABLE_TOOL_SEARCH=false")
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	run := func(program string, args ...string) {
		t.Helper()
		if out, err := m.command(t.Context(), "project", program, args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	claude := filepath.Join(*agentPrograms, "node_modules", ".bin", "claude")
	for _, args := range [][]string{
		{"plugin", "validate", "--strict", filepath.Join(repository, "packaging", "claude-code")},
		{"plugin", "marketplace", "add", repository},
		{"plugin", "install", "weir@weir"},
	} {
		run(claude, args...)
	}
	run(m.program, "setup", "claude", "--yes")
	run(claude, "-p", "/weir:cost script: spend text", "--model", "claude-sonnet-5-5")

	mu.Lock()
	defer mu.Unlock()
	if len(asked) == 0 {
		t.Fatal("no call")
	}
	last := asked[len(asked)-1]
	for _, want := range []string{
		"No calls of Claude Code, Codex, opencode or Gemini CLI are found.", // by `weir look --today`
		`session=`, `\"requests\":1`, // by the tool
	} {
		if !strings.Contains(last, want) {
			t.Errorf("no %s in %s", want, last)
		}
	}
}
