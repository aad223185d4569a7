package compat

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// Codex runs a command in its shell loop with a provider of each kind (without -full, of
// three), without configuration beside the address and the key, and its calls are of one
// session.
func TestCodex(t *testing.T) {
	if !*withClients {
		t.Skip("Codex needs Node.js: see README.md, then go test ./test/compat -compat")
	}
	w := startKinds(t)
	for _, k := range providerKinds {
		if !*full && !slices.Contains([]string{"echo", "anthropic", "compatible"}, k.name) {
			continue
		}
		model := k.id()
		t.Run(model, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, "node/node_modules/.bin/codex", "exec", "--json", "--skip-git-repo-check",
				"--dangerously-bypass-approvals-and-sandbox", "-C", t.TempDir(), "-m", model,
				"-c", `model_provider="weir"`, "-c", `model_providers.weir.name="Weir"`, "-c", `model_providers.weir.env_key="WEIR_API_KEY"`,
				"-c", `model_providers.weir.base_url="`+w.url+`/v1"`, "-c", `model_providers.weir.wire_api="responses"`,
				"Call exec_command()")
			home := t.TempDir()
			cmd.Env = append(os.Environ(), "HOME="+home, "CODEX_HOME="+home, "WEIR_API_KEY=weir-quickstart")
			var events, log bytes.Buffer
			cmd.Stdout, cmd.Stderr = &events, &log
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v\n%s%s", err, &events, &log)
			}
			var ran bool
			var thread, said string
			gjson.ForEachLine(events.String(), func(e gjson.Result) bool {
				switch item := e.Get("item"); {
				case e.Get("type").Str == "thread.started":
					thread = e.Get("thread_id").Str
				case e.Get("type").Str != "item.completed":
				case item.Get("type").Str == "command_execution":
					ran = true
				case item.Get("type").Str == "agent_message":
					said = item.Get("text").Str
				}
				return true
			})
			if !ran || !strings.HasPrefix(said, "The tool returned: ") {
				t.Errorf("a command was run: %t, the agent said %q\n%s", ran, said, &events)
			}
			var records []gjson.Result
			await(t, "two records of the session "+thread, func() bool {
				records = w.query(t, "session_id", thread)
				return len(records) == 2
			})
			for _, r := range records {
				if r.Get("response_status").Int() != 200 || r.Get("total_tokens").Int() == 0 || r.Get("request_model").Str != model {
					t.Errorf("the record is %s", r.Raw)
				}
			}
		})
	}
}
