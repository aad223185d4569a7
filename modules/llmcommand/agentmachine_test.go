package llmcommand

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit/freeport"
)

// agentMachine is a machine with Weir, on which agents run.
type agentMachine struct {
	t           *testing.T
	home        string
	program     string // Weir's
	environment []string
	site        string // the address of the gateway
}

func newAgentMachine(t *testing.T) *agentMachine {
	t.Helper()
	m := &agentMachine{t: t, home: t.TempDir(), site: "http://127.0.0.1:" + freeport.Port(t)}
	bin := t.TempDir()
	m.program = filepath.Join(bin, "weir")
	m.environment = []string{
		"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + m.home, "IS_SANDBOX=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"DISPLAY=none", // a browser, which the test is
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", m.program, "../../xcaddy/weir")
	if made := os.Getenv("WEIR_BINARY"); made != "" {
		build = exec.CommandContext(t.Context(), "ln", "-s", made, m.program)
	}
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return m
}

// command is a program on the machine, in a folder of its own.
func (m *agentMachine) command(ctx context.Context, folder, program string, args ...string) *exec.Cmd {
	m.t.Helper()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = filepath.Join(m.home, folder), m.environment
	if err := os.MkdirAll(cmd.Dir, 0o700); err != nil {
		m.t.Fatal(err)
	}
	return cmd
}

func (m *agentMachine) weir(args ...string) *exec.Cmd {
	m.t.Helper()
	return m.command(m.t.Context(), "", m.program, args...)
}

// start starts what serves until the end of the test.
func (m *agentMachine) start(args ...string) {
	m.t.Helper()
	cmd := m.weir(args...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = cmd.Wait() }) // the end of the test kills it
}

func (m *agentMachine) write(name, text string) {
	m.t.Helper()
	path := filepath.Join(m.home, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		m.t.Fatal(err)
	}
}

// serve starts the gateway to the vendors, with a way to call it.
func (m *agentMachine) serve(callers, vendors string) {
	m.t.Helper()
	m.write("Caddyfile", `{
	admin off
	persist_config off
	llm {
		store sqlite `+filepath.Join(m.home, "weir.db")+`
		provider anthropic {
			base_url `+vendors+`/claude
			api_key x
		}
		provider openai {
			base_url `+vendors+`/responses/v1
			api_key x
		}
		provider chat compatible {
			base_url `+vendors+`/chat/v1
			models local-1
		}`+callers+`
	}
}
`+m.site+` {
	handle_path /gemini/* {
		llm_proxy gemini `+vendors+`
	}
	llm_gateway
	llm_query
	llm_control
	llm_health
}
`)
	m.start("run", "--config", "Caddyfile")
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if response, err := http.Get(m.site + "/health/ready"); err == nil {
			response.Body.Close()
			return
		} else if time.Now().After(end) {
			m.t.Fatal(err)
		}
	}
}
