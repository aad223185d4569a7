package llmcommand

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// A file makes a key for each row, and projects, people and limits are made by commands.
func TestATeamIsSetUp(t *testing.T) {
	address := controlled(t)
	ask := func(command func(*cobra.Command), args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if _, err := run(t.Context(), command, &out, append(args, "--address", address)...); err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		return out.String()
	}
	ask(projectCommand, "create", "search", "mail", "--limit", "500", "--keys", "members")
	if out := ask(budgetCommand, "--format", "csv"); !strings.Contains(out, "mail: spend limit,project=mail,month") {
		t.Errorf("the limit of the second project is no budget: %s", out)
	}
	ask(projectCommand, "limit", "mail", "none")
	if out := ask(budgetCommand, "--format", "csv"); !strings.Contains(out, "search: spend limit,project=search,month") {
		t.Errorf("the limit is no budget: %s", out)
	}
	ask(projectCommand, "limit", "search", "none")
	ask(memberCommand, "invite", "ada@example.com")
	ask(memberCommand, "add", "ada@example.com", "search")
	if out := ask(projectCommand, "members", "search", "--format", "csv"); !strings.Contains(out, "ada@example.com") {
		t.Errorf("the members: %s", out)
	}
	ask(memberCommand, "role", "ada@example.com", "owner")
	if out := ask(memberCommand, "list", "--format", "csv"); !strings.Contains(out, ",ada@example.com,,owner,") {
		t.Errorf("the role: %s", out)
	}
	ask(projectCommand, "models", "mail", "allow", "gpt-5-mini", "anthropic/*")
	ask(projectCommand, "models", "mail", "all")
	ask(projectCommand, "rename", "mail", "post")
	if out := ask(projectCommand, "list", "--format", "csv"); !strings.Contains(out, ",post,active") {
		t.Errorf("the projects: %s", out)
	}
	file := filepath.Join(t.TempDir(), "keys.csv")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("\uFEFFname,owner,project,models,properties,mask,expires\nada,Ada,search,gpt-5-mini claude-*,Team=search,email card,90d\nbob,Bob,search,,,,\n")
	secrets := filepath.Join(t.TempDir(), "secrets.csv")
	ask(keyCommand, "import", file, "--secrets", secrets)
	if info, err := os.Stat(secrets); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("others can read the secrets: %v, %v", info, err)
	}
	text, err := os.ReadFile(secrets)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != 3 || lines[0] != "name,id,secret" || !strings.HasPrefix(lines[1], "ada,key_") || !strings.Contains(lines[2], ",weir_") {
		t.Fatalf("the keys: %q", lines)
	}
	id := strings.Split(lines[1], ",")[1]
	if out := ask(keyCommand, "show", id, "--format", "csv"); !strings.Contains(out, `[""gpt-5-mini"",""claude-*""]`) || !strings.Contains(out, `{""Team"":""search""}`) || !strings.Contains(out, `[[""email"",""card""]]`) || strings.Contains(out, "weir_") {
		t.Errorf("the key: %s", out)
	}
	// Whoever has this key creates keys of their own.
	ask(projectCommand, "keys", "search", "keys", "--max", "1", "--lifetime", "1d")
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(strings.Split(lines[2], ",")[2]), 0o600); err != nil {
		t.Fatal(err)
	}
	mine := func(args ...string) string { return ask(keyCommand, append(args, "--mine", "--key-file", secret)...) }
	if out := mine("create", "laptop"); !strings.HasPrefix(out, "weir_") {
		t.Errorf("the key of one's own: %s", out)
	}
	own := strings.Split(mine("list", "--format", "csv"), "\n")
	if len(own) != 3 || !strings.Contains(own[1], ",laptop,Bob,search,") {
		t.Fatalf("the keys of one's own: %q", own)
	}
	laptop := strings.Split(own[1], ",")[0]
	mine("rotate", laptop)
	mine("delete", laptop)
	ask(projectCommand, "keys", "search", "none")
	write("name,ownr\nada,Ada\n")
	var out bytes.Buffer
	if _, err := run(t.Context(), keyCommand, &out, "import", file, "--address", address); err == nil || !strings.Contains(err.Error(), `row 2: there is no column "ownr"`) {
		t.Errorf("a column that is not known: %v", err)
	}
	ask(memberCommand, "remove", "ada@example.com")
	ask(projectCommand, "archive", "search")
	if _, err := run(t.Context(), projectCommand, &out, "limit", "none-such", "5", "--address", address); err == nil || !strings.Contains(err.Error(), "weir project list") {
		t.Errorf("an unknown project: %v", err)
	}
}
