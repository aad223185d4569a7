package llmcommand

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/zalando/go-keyring"
)

// newHome is an empty home directory, on a machine without a keychain.
func newHome(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	for _, name := range []string{"HOME", "USERPROFILE"} {
		t.Setenv(name, home)
	}
	t.Setenv("AppData", filepath.Join(home, "AppData"))
	for _, name := range []string{"XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "ANTHROPIC_API_KEY", addressEnv, keyEnv, caEnv} {
		t.Setenv(name, "")
	}
	keyring.MockInitWithError(io.EOF)
	return home
}

// runCommand runs a command, and returns what it prints, and its error.
func runCommand(t *testing.T, build func(*cobra.Command), in string, args ...string) string {
	t.Helper()
	var out strings.Builder
	cmd := &cobra.Command{SilenceUsage: true, SilenceErrors: true}
	build(cmd)
	cmd.SetIn(strings.NewReader(in))
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		fmt.Fprintln(&out, "Error:", err)
	}
	return out.String()
}

// Whoever has logged in needs no key: commands call with a token, agents that can ask for one do,
// and the others call the relay.
func TestLogin(t *testing.T) {
	home := newHome(t)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"object":"list","data":[{"id":"gpt-5-mini"}]}`)
	})
	mux.HandleFunc("GET /v1/key", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sk-kept" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"data":null,"error":"the API key is not known"}`)
			return
		}
		fmt.Fprint(w, `{"data":{"organization":"acme","name":"ada","scopes":["gateway"],"budgets":[]},"error":null}`)
	})
	mux.HandleFunc("GET /.well-known/oauth-protected-resource", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"resource":"http://%s","weir_logins":[]}`, r.Host)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	file := func(key string) string {
		path := filepath.Join(home, "key")
		if err := os.WriteFile(path, []byte(key+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		build func(*cobra.Command)
		args  []string
		want  string
	}{
		{tokenCommand, nil, "you are not logged in: run `weir login https://…`"},
		{tokenCommand, []string{"--address", server.URL}, "you are not logged in at " + server.URL + ": run `weir login " + server.URL + "`"},
		{loginCommand, []string{"http://llm.example.com"}, "expected https://"},
		{loginCommand, []string{server.URL}, "has no identity with a client_id: use `weir login " + server.URL + " --key`"},
		{loginCommand, []string{server.URL, "--key-file", file("sk-wrong")}, "the API key is not known"},
		{tokenCommand, nil, "you are not logged in"},
		{setupCommand, []string{"claude", "--login", "--address", server.URL}, "you are not logged in at"},
	} {
		if got := runCommand(t, c.build, "", c.args...); !strings.Contains(got, c.want) {
			t.Errorf("%v: %s, want %s", c.args, got, c.want)
		}
	}
	if got := runCommand(t, loginCommand, "", server.URL+"/", "--key-file", file("sk-kept")); !strings.Contains(got, "The key is ada of acme.") || !strings.Contains(got, "You are logged in at "+server.URL) {
		t.Error(got)
	}
	if got := runCommand(t, tokenCommand, ""); got != "sk-kept\n" {
		t.Error(got)
	}
	agent := new(cobra.Command)
	mcpCommand(agent)
	if c, err := clientOfUser(agent); err != nil || c.address != server.URL {
		t.Error(c, err)
	}
	for _, c := range []struct{ agent, file, want, shown string }{
		{"claude", ".claude/settings.json", "token --address " + server.URL, `+ apiKeyHelper: "`},
		{"codex", ".codex/config.toml", "args = [\"token\",\"--address\",\"" + server.URL + "\"]", "+ args = [\"token\""},
		{"opencode", ".config/opencode/opencode.json", "http://127.0.0.1:9347/v1", `+     "apiKey": …`},
	} {
		got := runCommand(t, setupCommand, "y\n", c.agent)
		text, err := os.ReadFile(filepath.Join(home, c.file))
		if err != nil || !strings.Contains(string(text), c.want) || strings.Contains(string(text), "sk-kept") || strings.Contains(got, "weir relay --address "+server.URL) != (c.agent == "opencode") ||
			!strings.Contains(got, c.shown) {
			t.Errorf("%s: %v\n%s\n%s", c.agent, err, got, text)
		}
		if got := runCommand(t, setupCommand, "y\n", c.agent, "--undo"); !strings.Contains(got, "is gone") {
			t.Error(got)
		}
	}
	if got := runCommand(t, setupCommand, "y\n", "cursor"); !strings.Contains(got, "no login of yours") {
		t.Error(got)
	}
	if err := os.MkdirAll(filepath.Join(home, ".claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".claude/settings.json"), []byte(`{"env":{"ANTHROPIC_AUTH_TOKEN":"mine"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := runCommand(t, setupCommand, "y\n", "claude"); !strings.Contains(got, "env.ANTHROPIC_AUTH_TOKEN wins over your login: remove it") {
		t.Error(got)
	}
	if got := runCommand(t, logoutCommand, ""); !strings.Contains(got, "is kept no more") {
		t.Error(got)
	}
	if got := runCommand(t, tokenCommand, ""); !strings.Contains(got, "you are not logged in") {
		t.Error(got)
	}
}

// A relay replaces the key alone, passes each event on as it comes, serves no pages of the web, and
// says in the client's dialect why a gateway does not answer.
func TestRelay(t *testing.T) {
	newHome(t)
	next := make(chan struct{})
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %q %q %q %q %q\n", r.Method, r.URL, r.Header.Get("Authorization"), r.Header.Get("X-Api-Key"), r.Header.Get("Service-Auth"), r.Header.Get("X-Forwarded-For"), body)
		w.(http.Flusher).Flush()
		<-next
		fmt.Fprint(w, "end\n")
	}))
	defer gateway.Close()
	cmd := &cobra.Command{}
	relayCommand(cmd)
	cmd.SetErr(io.Discard)
	t.Setenv(keyEnv, "sk-fresh")
	c, err := clientOfLogin(cmd, gateway.URL)
	if err != nil {
		t.Fatal(err)
	}
	handler, err := newRelay(c)
	if err != nil {
		t.Fatal(err)
	}
	relay := httptest.NewServer(handler)
	defer relay.Close()
	send := func(path string, header ...string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, relay.URL+path, strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			if r.Header.Set(header[i], header[i+1]); header[i] == "Host" {
				r.Host = header[i+1]
			}
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { response.Body.Close() })
		return response
	}
	for _, c := range []struct {
		header []string
		want   string
	}{
		{[]string{"Authorization", "Bearer weir-relay"}, `POST /v1/messages?beta=true "Bearer sk-fresh" "" "" "" "hello"`},
		{[]string{"X-Api-Key", "weir-relay"}, `POST /v1/messages?beta=true "Bearer sk-fresh" "" "" "" "hello"`},
		{[]string{"X-Api-Key", "mine", "Service-Auth", "Bearer weir-relay"}, `POST /v1/messages?beta=true "" "mine" "Bearer sk-fresh" "" "hello"`},
	} {
		lines := bufio.NewReader(send("/v1/messages?beta=true", c.header...).Body)
		if line, err := lines.ReadString('\n'); err != nil || strings.TrimSpace(line) != c.want {
			t.Errorf("%s, %v, want %s", line, err, c.want)
		}
		next <- struct{}{}
		if line, err := lines.ReadString('\n'); line != "end\n" {
			t.Error(line, err)
		}
	}
	for _, header := range [][]string{{"Host", "evil.example.com"}, {"Host", "evil.example.com:9347"}, {"Origin", "https://evil.example.com"}, {"Sec-Fetch-Site", "cross-site"}} {
		response := send("/v1/chat/completions", header...)
		if text, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusForbidden || !strings.Contains(string(text), "no pages of the web") {
			t.Errorf("%v: %s %s", header, response.Status, text)
		}
	}
	gateway.Close()
	for path, shape := range map[string]string{"/v1/messages": `{"type":"error","error":{`, "/v1/responses": `{"error":{"message":`, "/v1beta/models/m:generateContent": `"code":502`} {
		response := send(path)
		text, _ := io.ReadAll(response.Body)
		if response.StatusCode != http.StatusBadGateway || !strings.Contains(string(text), shape) || !strings.Contains(string(text), "weir relay: the gateway "+gateway.URL+" cannot be reached") {
			t.Errorf("%s: %s %s", path, response.Status, text)
		}
	}
	t.Setenv(keyEnv, "")
	c.key = ""
	response := send("/v1/messages")
	if text, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusUnauthorized || !strings.Contains(string(text), "run `weir login "+gateway.URL+"`") {
		t.Errorf("%s %s", response.Status, text)
	}
	for _, listen := range []string{":9347", "0.0.0.0:0", "192.0.2.1:80", "9347"} {
		t.Setenv(keyEnv, "sk-fresh")
		if got := runCommand(t, relayCommand, "", "--address", gateway.URL, "--listen", listen); !strings.Contains(got, "expected an address of this machine alone") {
			t.Error(got)
		}
	}
}
