package llmcommand

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/testkit/freeport"
	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/modules/internal/stores/storestest"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/journal"
	"github.com/weirhq/weir/storage/sqlite"
)

// A backup of two stores is made, checked and restored by commands, and each says what to
// do where it cannot.
func TestBackupCommands(t *testing.T) {
	admin, data, backups := freeport.Address(t), t.TempDir(), t.TempDir()
	config := fmt.Sprintf(`{
		"admin": {"listen": %q, "config": {"persist": false}},
		"logging": {"logs": {"default": {"level": "ERROR"}}},
		"apps": {"llm": {"stores": {
			"default": {"storage": {"backend": "sqlite", "path": "%[2]s/weir.db"}},
			"eu": {"storage": {"backend": "sqlite", "path": "%[2]s/eu.db"}}
		}}}
	}`, admin, data)
	if err := caddy.Load([]byte(config), true); err != nil {
		t.Fatal(err)
	}
	running := true
	t.Cleanup(func() {
		if running {
			storestest.Stop(t)
		}
	})
	for _, store := range stores.InUse() {
		j := store.Opened()
		r := &storage.Record{ID: [16]byte{1}, Org: "default", CreatedAt: 1_795_219_200_000, Dialect: plugins.Chat, EndState: storage.Complete}
		j.Begin(r)
		if err := j.Append(r, storagetest.Kept(r, &storage.Content{Request: storage.Body{Type: "application/json", Data: []byte(`{"a":1}`)}})); err != nil {
			t.Fatal(err)
		}
	}
	command := func(of func(*cobra.Command), args ...string) string {
		var out bytes.Buffer
		cmd := &cobra.Command{SilenceUsage: true, SilenceErrors: true}
		of(cmd)
		cmd.SetArgs(args)
		cmd.SetOut(&out)
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			return "Error: " + err.Error()
		}
		return out.String()
	}
	expect := func(got, want string) {
		t.Helper()
		if !strings.Contains(got, want) {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
	t.Setenv(adminEnv, admin)
	expect(command(healthCommand), "ready\n")
	made := command(backupCommand, backups)
	expect(made, "store default: ")
	expect(made, "store eu: ")
	expect(command(backupCommand, "--format", "json", backups), `"copied_bytes":`)
	expect(command(checkCommand, backups), "1 exchanges seen = ")
	expect(command(checkCommand, data), "is in use by another process: stop it, or make a backup and check that")
	expect(command(restoreCommand, backups, t.TempDir()), "has several stores: name one of default, eu")
	to := t.TempDir()
	expect(command(restoreCommand, backups, to, "--store", "eu"), "restored "+filepath.Join(to, "eu.db"))
	expect(command(checkCommand, to), "1 records in the database, the bodies of 1 in 1 segments")
	expect(command(restoreCommand, backups, to, "--store", "eu"), "eu.db is there already; stop Weir and move it away")
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	running = false
	whole := command(checkCommand, data)
	expect(whole, "ok\n")
	expect(whole, "1 exchanges seen = 1 recorded + 0 waiting + 0 in flight at the end + 0 lost")
	expect(command(checkCommand, filepath.Join(data, "eu.db")), "ok\n")
	expect(command(checkCommand, t.TempDir()), "is no data directory")
	t.Chdir(filepath.Dir(data))
	expect(command(checkCommand, filepath.Base(data)), "ok\n")
	expect(command(checkCommand, "./"+filepath.Base(data)), "ok\n")
	if err := os.WriteFile(filepath.Join(data, "eu.db"), []byte("SQLite format 3"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(command(checkCommand, data), "Error: "+filepath.Join(data, "eu.db")+": ")
	expect(command(backupCommand, backups), "the admin endpoint")
	expect(command(healthCommand), "the admin endpoint")

	lost := filepath.Join(data, "weir.db.segments")
	for _, name := range []string{"checkpoint", "witness"} {
		if err := os.Remove(filepath.Join(lost, name)); err != nil {
			t.Fatal(err)
		}
	}
	j, err := journal.Open(t.Context(), sqlite.New(filepath.Join(data, "weir.db")), journal.Options{Dir: lost})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect(command(forgetCommand, lost, "checkpoint"), "files that are not in "+lost+" now are not missed when Weir starts")
	expect(command(forgetCommand, lost, "checkpoint"), "Error: "+lost+" has nothing to forget: its checkpoint was not lost, or its loss is accepted already")
}

// The admin endpoint's own words are shown, also if it does not find what a command names.
func TestRefusalsOfTheAdminEndpoint(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"error":"no organisation \"acme\" is configured"}`)
	}))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	_, err := run(t.Context(), healthCommand, io.Discard, "--admin", address)
	if want := "the admin endpoint " + address + `: no organisation "acme" is configured`; fmt.Sprint(err) != want {
		t.Errorf("%v, expected %s", err, want)
	}
}
