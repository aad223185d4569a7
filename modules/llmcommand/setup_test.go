package llmcommand

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// A set-up asks about the key, shows the change without the key, and writes it when it is
// confirmed. A key that is refused, or that cannot call models, changes no file.
func TestSetup(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("AppData", filepath.Join(home, "AppData"))
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	t.Setenv("ANTHROPIC_API_KEY", "mine")
	file := filepath.Join(home, ".claude", "settings.json")
	scopes, control := `["gateway"]`, true
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"object":"list","data":[{"id":"echo-1"},{"id":"gpt-5-mini"}]}`)
	})
	mux.HandleFunc("GET /v1/key", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !control:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"data":null,"error":"there is no such path"}`)
		case r.Header.Get("Authorization") != "Bearer sk-weir-secret":
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"data":null,"error":"the API key is not known"}`)
		default:
			fmt.Fprintf(w, `{"data":{"organization":"acme","id":"key_1","name":"ada","project":"search","scopes":%s,"credits":null,"budgets":[
				{"name":"monthly","quantity":"usd","limit":50,"accounts":[{"spent":8.5,"reserved":0.25,"remaining":41.25}]},
				{"name":"pace","quantity":"requests","limit":100,"accounts":[]}]},"error":null}`, scopes)
		}
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	setup := func(key, answer string, args ...string) string {
		t.Helper()
		t.Setenv(keyEnv, key)
		var out strings.Builder
		cmd := &cobra.Command{SilenceUsage: true, SilenceErrors: true}
		setupCommand(cmd)
		cmd.SetIn(strings.NewReader(answer))
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetArgs(append(args, "--address", server.URL))
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			fmt.Fprintln(&out, "Error:", err)
		}
		return out.String()
	}
	written := func(want bool, output string) {
		t.Helper()
		text, err := os.ReadFile(file)
		if got := err == nil && strings.Contains(string(text), "sk-weir-secret"); got != want {
			t.Errorf("written: %v, want %v: %s\n%s", got, want, text, output)
		}
	}
	expect := func(output string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(output, part) {
				t.Errorf("no %q in\n%s", part, output)
			}
		}
		if strings.Contains(output, "secret") {
			t.Errorf("the key is shown:\n%s", output)
		}
	}

	const key = "sk-weir-secret"
	expect(setup(key, "y\n", "gemini"), "Gemini CLI needs the path /gemini, which "+server.URL+" does not have")
	for _, c := range []struct {
		key, answer string
		args        []string
		want        string
	}{
		{"", "", []string{"claude"}, "no API key: give it by --key-file"},
		{"sk-other", "y\n", []string{"claude"}, "the API key is not known; give it by --key-file"},
		{key, "n\n", []string{"claude"}, "nothing is written"},
		{key, "", []string{"claude"}, "--yes writes without asking"},
		{key, "", []string{"claude", "--print"}, "ANTHROPIC_BASE_URL"},
		{key, "", []string{"claud"}, `"claud": expected one of claude, codex`},
		{key, "", []string{"cursor"}, server.URL + "/v1"},
		{key, "", []string{"cursor", "--undo"}, "Cursor keeps its settings in no file"},
		{key, "", []string{"codex", "--project"}, "leave --project out"},
		{key, "", []string{"claude", "--undo"}, "weir setup has not changed this file"},
	} {
		output := setup(c.key, c.answer, c.args...)
		expect(output, c.want)
		written(false, output)
	}
	scopes = `["query"]`
	output := setup(key, "", "claude", "--yes")
	expect(output, "the scopes query, and not gateway", "weir key update key_1 --scopes gateway")
	written(false, output)

	scopes = `["gateway"]`
	output = setup(key, "y\n", "claude")
	expect(output, "The key is ada of acme. Project: search. Budget monthly: $41.25 left of $50.00. Budget pace: 100 left of 100 requests.",
		file, `+ env.ANTHROPIC_AUTH_TOKEN: …`, "Claude Code calls "+server.URL, "Warning: $ANTHROPIC_API_KEY is set")
	written(true, output)
	output = setup(key, "y\n", "claude", "--undo")
	expect(output, file+" is gone, with the settings of Weir.")
	written(false, output)

	// Other settings may have secrets on the line that changes, and next to it.
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(`{"env": {"PAT": "ghp-secret", "ANTHROPIC_BASE_URL": "https://ada:secret@old"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(setup(key, "y\n", "claude"), "- env.ANTHROPIC_BASE_URL: …\n+ env.ANTHROPIC_BASE_URL: \""+server.URL)
	expect(setup(key, "y\n", "claude", "--undo"), "- env.ANTHROPIC_BASE_URL: \""+server.URL+"\"\n+ env.ANTHROPIC_BASE_URL: …\n")

	control = false
	expect(setup(key, "", "opencode", "--yes"), "has 2 models", `"gpt-5-mini": {}`, "has no llm_control")
}

// If no Weir runs on this machine, an error tells how to start one.
func TestErrorTellsHowToStart(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	c := &client{http: http.DefaultClient, address: defaultAddress, key: "k"}
	answer, err := c.send(over, http.MethodGet, "/v1/models", nil)
	if err == nil {
		answer.Body.Close()
	}
	if !errors.Is(err, errUnreachable) || !strings.Contains(err.Error(), "start it with `weir run`") {
		t.Error(err)
	}
}
