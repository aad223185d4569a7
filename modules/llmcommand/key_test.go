package llmcommand

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp"

	_ "github.com/weirhq/weir/modules/llmcontrol"
	_ "github.com/weirhq/weir/storage/sqlite"
)

// The commands administer keys at a Weir that runs.
func TestKeys(t *testing.T) {
	address := controlled(t)
	ask := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if _, err := run(t.Context(), keyCommand, &out, append(args, "--address", address)...); err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		return out.String()
	}
	secret := strings.TrimSpace(ask("create", "search agents", "--project", "search", "--models", "gpt-5-mini,anthropic/*", "--expires", "90d"))
	if !strings.HasPrefix(secret, "weir_") || strings.ContainsAny(secret, " \n") {
		t.Fatalf("the secret is %q", secret)
	}
	list := strings.Split(strings.TrimSpace(ask("list", "--utc", "--format", "csv")), "\n")
	if len(list) != 2 || !strings.Contains(list[1], `,search agents,,search,"[""gateway"",""log""]",`) {
		t.Fatalf("the list is %q", list)
	}
	if table := ask("list"); !strings.Contains(table, "gateway, log") {
		t.Errorf("the table is %q", table)
	}
	id, _, _ := strings.Cut(list[1], ",")
	if other := strings.TrimSpace(ask("rotate", id, "--overlap", "0s")); other == secret || !strings.HasPrefix(other, "weir_") {
		t.Errorf("the other secret is %q", other)
	}
	for _, args := range [][]string{{"update", id, "--owner", "team blue"}, {"disable", id}, {"enable", id}, {"delete", id}} {
		if out := ask(args...); !strings.HasPrefix(out, id+" is ") {
			t.Errorf("%q: %q", args, out)
		}
	}
	if list := ask("list"); strings.Contains(list, id) {
		t.Errorf("a deleted key is in the list %q", list)
	}
	var out bytes.Buffer
	rows := filepath.Join(t.TempDir(), "keys.csv")
	if err := os.WriteFile(rows, []byte("name,scopes\na,gateway\nb,gateway\nc,gatway\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t.Context(), keyCommand, &out, "import", rows, "--address", address); err == nil || !strings.Contains(err.Error(), "row 4") || !strings.Contains(err.Error(), "the 2 keys of the rows before are deleted again") {
		t.Errorf("of a file with a mistake: %v", err)
	}
	if list := ask("list", "--format", "csv"); strings.Count(list, "\n") != 1 {
		t.Errorf("keys are left of a file with a mistake: %q", list)
	}
	out.Reset()
	if _, err := run(t.Context(), memberCommand, &out, "invite", "ada@example.com", "--role", "boss", "--address", address); err == nil || strings.Contains(err.Error(), "llm_query") {
		t.Errorf("an error of OpenAI's endpoints is %v", err)
	}
	if _, err := run(t.Context(), auditCommand, &out, "--of", id, "--format", "csv", "--address", address); err != nil || strings.Count(out.String(), "\n") != 7 || strings.Contains(out.String(), secret) {
		t.Errorf("%q, %v", out.String(), err)
	}
	for problem, args := range map[string][]string{
		"no such key":          {"disable", "key_none"},
		"what shall":           {"update", "key_none"},
		"expires: expected":    {"create", "x", "--expires", "soon"},
		"no scope root":        {"create", "x", "--scopes", "root"},
		"did you mean create?": {"creat", "x"},
		"show <id>":            {"show"},
	} {
		if _, err := run(t.Context(), keyCommand, &out, append(args, "--address", address)...); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%q: %v", args, err)
		}
	}
}

func TestExpiry(t *testing.T) {
	now := time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{"2027-01-31T12:00:00Z": "2027-01-31T12:00:00Z", "90d": "2027-02-22T00:00:00Z", "-1h": "", "soon": "", "": ""} {
		got, err := expiry(text, now)
		if (err == nil) != (want != "") || err == nil && got.Format(time.RFC3339) != want {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
}
