package compat

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var withAgents = flag.Bool("agents", false, "let coding agents run, which npm installs")

// codingAgents are those that need more packages than the tests of clients have. Each is
// told what to do, and what it says in the end.
var codingAgents = []struct {
	packages string // as npm takes it
	says     string
	files    map[string]string // by their name in the home of the agent; SITE, MODEL and HOME stand for these
	command  []string
}{
	{
		packages: "@anthropic-ai/claude-code@2.1.332", says: "The tool returned: ",
		command: []string{"claude", "-p", "Bash()", "--model", "MODEL"},
	},
	{
		packages: "opencode-ai@1.18.33", says: "The tool returned: ",
		files: map[string]string{".config/opencode/opencode.json": `{"autoupdate":false,"share":"disabled","provider":{"weir":{"npm":"@ai-sdk/openai-compatible",
			"options":{"baseURL":"SITE/v1","apiKey":"weir-quickstart"},"models":{"MODEL":{"name":"it"}}}}}`},
		command: []string{"opencode", "run", "-m", "weir/MODEL", "bash()"},
	},
	{
		packages: "@continuedev/cli@1.5.47", says: "You said: say hi",
		files: map[string]string{"config.yaml": "name: weir\nversion: 0.0.1\nschema: v1\nmodels:\n" +
			"  - {name: it, provider: openai, model: MODEL, apiBase: SITE/v1, apiKey: weir-quickstart, roles: [chat]}\n"},
		command: []string{"cn", "-p", "say hi", "--config", "HOME/config.yaml"},
	},
}

// TestCodingAgents lets each agent work with providers of four kinds.
func TestCodingAgents(t *testing.T) {
	if !*withAgents {
		t.Skip("the agents take a gigabyte: go test ./test/compat -agents")
	}
	w := startKinds(t)
	for _, agent := range codingAgents {
		folder := t.TempDir()
		install := exec.CommandContext(t.Context(), "npm", "install", "--no-audit", "--no-fund", "--prefix", folder, agent.packages)
		if out, err := install.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, k := range providerKinds {
			if !slices.Contains([]string{"echo", "anthropic", "gemini", "compatible"}, k.name) {
				continue
			}
			t.Run(agent.command[0]+" with "+k.name, func(t *testing.T) {
				model, home := k.id(), t.TempDir()
				fill := strings.NewReplacer("SITE", w.url, "MODEL", model, "HOME", home).Replace
				for name, text := range agent.files {
					path := filepath.Join(home, name)
					if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(path, []byte(fill(text)), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), 6*patience)
				defer cancel()
				var args []string
				for _, arg := range agent.command[1:] {
					args = append(args, fill(arg))
				}
				cmd := exec.CommandContext(ctx, filepath.Join(folder, "node_modules", ".bin", agent.command[0]), args...)
				cmd.Dir = t.TempDir()
				cmd.Env = append(os.Environ(), "HOME="+home, "ANTHROPIC_BASE_URL="+w.url, "ANTHROPIC_API_KEY=weir-quickstart", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1")
				var said, log bytes.Buffer
				cmd.Stdout, cmd.Stderr = &said, &log
				if err := cmd.Run(); err != nil || !strings.Contains(said.String(), agent.says) {
					t.Errorf("%v, it says %s\n%s", err, &said, &log)
				}
			})
		}
	}
}
