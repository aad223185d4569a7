package llmcommand

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

var tokenLife = flag.Duration("tokens", 2*time.Minute, "how long tokens of TestAgentsWithLogin are valid. Its sessions last for 12 of them")

// loginAgents are agents with a configuration of the user's own, which setup changes. opencode adds a
// $schema where there is none.
var loginAgents = []struct {
	agent, model string
	session      string            // of the model server: the first element of the path that the gateway calls
	file, text   string            // the configuration
	relay        bool              // it reads its key once
	others       map[string]string // files that setup leaves alone
}{
	{agent: "claude", model: "claude-sonnet-5-5", session: "claude", file: ".claude/settings.json", text: "{\n    \"theme\": \"dark\"\n}"},
	{agent: "codex", model: "gpt-5-codex", session: "responses", file: ".codex/config.toml", text: "# mine\r\nsandbox_mode = \"danger-full-access\" # all\r\n\r\n[history]\r\npersistence = \"save-all\"\r\n"},
	{agent: "opencode", model: "weir/local-1", session: "chat", file: ".config/opencode/opencode.jsonc", text: "{\n  \"$schema\": \"https://opencode.ai/config.json\",\n\t// mine\n\t\"autoupdate\": false, \"share\": \"disabled\",\n\t\"permission\": {\"*\": \"allow\"},\n}\n", relay: true},
	{agent: "gemini", model: "gemini-2.5-pro", session: "v1beta", file: ".gemini/.env", text: "# mine\nGEMINI_API_KEY='x'", relay: true,
		others: map[string]string{".gemini/settings.json": agentFiles[".gemini/settings.json"]}},
}

// Real agents that setup has made call a gateway with the user's login at a real issuer see no failure in
// sessions that last for many lives of a token. Undoing the setup leaves each file as it was.
func TestAgentsWithLogin(t *testing.T) {
	if *agentPrograms == "" {
		t.Skip("the agents take a gigabyte and half an hour: go test ./modules/llmcommand -run AgentsWithLogin -parallel 4 -timeout 1h -agents <folder>, where npm has installed oidc-provider, too")
	}
	const lives = 12
	pause := min(*tokenLife/2, time.Minute)
	provider := &modelServer{calls: make(map[string][]modelCall), pause: pause}
	vendors := httptest.NewServer(provider)
	defer vendors.Close()
	issuer, renewals := startIssuer(t)
	m := newAgentMachine(t)
	m.serve(`
		identity jwt `+issuer+` {
			audience weir-cli
			client_id weir-cli
			user email
			scopes gateway log
		}`, vendors.URL)
	logIn(t, m.weir("login", m.site))
	m.start("relay", "--address", m.site)

	before := renewals.Load()
	t.Run("sessions", func(t *testing.T) {
		for _, a := range loginAgents {
			m.write(a.file, a.text)
			for name, text := range a.others {
				m.write(name, text)
			}
			if out, err := m.weir("setup", a.agent, "--yes").CombinedOutput(); err != nil || strings.Contains(string(out), "relay") != a.relay {
				t.Fatalf("%v: %s", err, out)
			}
			t.Run(a.agent, func(t *testing.T) {
				t.Parallel()
				turns := int(lives * *tokenLife / pause)
				s := &agentSession{agent: a.agent, model: a.model}
				args := s.command("", "script:"+strings.Repeat(" slow", turns)+" text", true)
				if a.agent == "codex" { // by its configuration alone
					args = []string{"codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-m", a.model, args[len(args)-1]}
				}
				ctx, cancel := context.WithTimeout(t.Context(), 2*lives**tokenLife)
				defer cancel()
				out, err := m.command(ctx, a.agent, filepath.Join(*agentPrograms, "node_modules", ".bin", args[0]), args[1:]...).CombinedOutput()
				if calls := provider.count(a.session); err != nil || !strings.Contains(string(out), "Done.") || calls <= turns {
					t.Errorf("%v, %d calls: %s", err, calls, out)
				}
			})
		}
	})
	t.Logf("%d tokens", renewals.Load()-before)
	if n := renewals.Load() - before; n < lives {
		t.Errorf("the issuer gave %d tokens, want %d", n, lives)
	}
	for _, a := range loginAgents {
		out, err := m.weir("setup", a.agent, "--undo", "--yes").CombinedOutput()
		text, readErr := os.ReadFile(filepath.Join(m.home, a.file))
		if err = errors.Join(err, readErr); err != nil || string(text) != a.text {
			t.Errorf("%v: %s\n%s", err, out, text)
		}
	}
}

// startIssuer starts an issuer of OpenID Connect, which counts the tokens that it gives.
func startIssuer(t *testing.T) (address string, grants *atomic.Int64) {
	t.Helper()
	text, err := os.ReadFile("testdata/issuer.mjs")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "--input-type=module", "-e", string(text), strconv.Itoa(int(tokenLife.Seconds())))
	cmd.Dir, cmd.Stderr = *agentPrograms, os.Stderr
	out, err := cmd.StdoutPipe()
	if err = errors.Join(err, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "http") {
	}
	grants = new(atomic.Int64)
	go func() {
		for lines.Scan() {
			grants.Add(1)
		}
	}()
	return lines.Text(), grants
}

// logIn is the browser, and the person, of a command that logs in.
func logIn(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err = errors.Join(err, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "http") {
			if err := browse(browser, lines.Text()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}

var formAction = regexp.MustCompile(`<form[^>]* action="([^"]+)"[\s\S]*name="prompt" value="(\w+)"`)

// browse opens an address, and submits each form that it leads to.
func browse(browser *http.Client, address string) error {
	page, err := browser.Get(address)
	for {
		if err != nil {
			return err
		}
		text, err := io.ReadAll(page.Body)
		page.Body.Close()
		if err != nil {
			return err
		}
		form := formAction.FindStringSubmatch(string(text))
		switch {
		case page.StatusCode != http.StatusOK:
			return fmt.Errorf("%s: %s", page.Status, text)
		case form == nil:
			return nil
		}
		if page, err = browser.PostForm(form[1], url.Values{"prompt": {form[2]}, "login": {"ada"}, "password": {"x"}}); err != nil {
			return err
		}
	}
}
