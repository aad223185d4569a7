package compat

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// TestAdministration administers an organisation with the official clients, those for
// Python and Go with strict validation of what they read: a project, a service account, its keys, members,
// what it may call and use, the audit log, usage and costs.
func TestAdministration(t *testing.T) {
	if !*withClients {
		t.Skip("the clients need Node.js and Python: see README.md, then go test ./test/compat -compat")
	}
	built := filepath.Join(t.TempDir(), "go")
	if out, err := exec.CommandContext(t.Context(), "go", "-C", "go", "build", "-o", built).CombinedOutput(); err != nil { // for a minute, the first time
		t.Fatalf("%v: %s", err, out)
	}
	for _, command := range [][]string{{"node", "node/administration.js"}, {"python/.venv/bin/python", "python/administration.py"}, {built}} {
		t.Run(filepath.Base(command[0]), func(t *testing.T) {
			w := startWeir(t, strings.NewReader(`{
	admin 127.0.0.1:{$WEIR_ADMIN_PORT}
	persist_config off
	grace_period 3s
	llm {
		store sqlite {$WEIR_DATA}/weir.db
		key weir-admin admin
		provider echo
	}
}
http://:{$WEIR_PORT} {
	bind 127.0.0.1
	llm_control
	llm_gateway
}`))
			ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
			defer cancel()
			client := exec.CommandContext(ctx, command[0], append(command[1:], w.url+"/v1")...)
			var failure strings.Builder
			client.Stderr = &failure
			out, err := client.Output()
			if err != nil {
				t.Fatalf("%v: %s%s", err, out, failure.String())
			}
			seen := gjson.ParseBytes(out)
			for name, want := range map[string]string{
				"opens": "true", "renamed": `"find"`, "pages": "3", "accounts": "2", "owner": `"crawler"`,
				"denied": `"model_not_allowed"`, "allowed": "true", "models": `"allow_list"`,
				"limit.0": `"openai/o3"`, "limit.1": "7", "limits": "1", "spend": "1250", "spendOfAll": "99900", "noSpend": "404", "alerts": "[1250,500]",
				"deleted": "401", "accountDeleted": "401", "rotated": "true", "taken": "409", "unknown": "404",
				"events.0": `"project.created"`, "events.1": `"service_account.created"`, "events.2": `"api_key.created"`,
				"used": "true", "grouped": "true", "cost": "true", "buckets": "24", "admins": "1", "status": `"archived"`, "listed": "2",
				"users": "2", "role": `"owner"`, "inProject": `["ada@example.com"]`, "noUser": "404", "memberEvents": `["user.deleted","user.added"]`,
			} {
				if got := strings.ReplaceAll(seen.Get(name).Raw, ", ", ","); got != want {
					t.Errorf("%s is %s, want %s", name, got, want)
				}
			}
			if t.Failed() {
				t.Log(string(out))
			}
		})
	}
}
