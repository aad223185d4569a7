package embedded

import (
	"bufio"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/libsqlite"
	"github.com/weirhq/weir/internal/testkit/controltest"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
)

// TestMain changes objects until it is killed where a test asks for that.
func TestMain(m *testing.M) {
	if dir := os.Getenv("CONTROL_TEST_DIR"); dir != "" {
		changeForEver(dir)
	}
	os.Exit(m.Run())
}

func open(t testing.TB, dir string) *Log {
	t.Helper()
	l, err := Open(dir, nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	return l
}

func acme(l *Log) *control.Organisation {
	return &control.Organisation{Log: l, Name: "acme", By: control.Actor{Key: "key_admin", Address: "192.0.2.1"}}
}

func hashOf(secret string) control.Hash { return sha256.Sum256([]byte(secret)) }

func TestLog(t *testing.T) {
	controltest.Run(t, func(t testing.TB) controltest.Place {
		dir, err := os.MkdirTemp("/dev/shm", "control") // which syncs at once
		if err != nil {
			dir = t.TempDir()
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		return controltest.Place{Open: func() (control.Log, error) { return Open(dir, nil, zap.NewNop()) }}
	})
}

// No secret is in any file, and a copy has what the original has.
func TestSecretsAreNotKept(t *testing.T) {
	ctx, dir, copied := t.Context(), t.TempDir(), t.TempDir()
	l := open(t, dir)
	var secrets []string
	for range 50 {
		_, k, first, err := acme(l).CreateServiceAccount(ctx, "search", "crawler", &control.Settings{Name: "x"})
		if err != nil {
			t.Fatal(err)
		}
		_, second, err := acme(l).RotateKey(ctx, k.ID, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		secrets = append(secrets, first, second)
	}
	if err := l.CopyTo(ctx, copied); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{dir, copied} {
		files, err := filepath.Glob(dir + "/*")
		if err != nil || len(files) == 0 {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s has the mode %v", file, info.Mode())
			}
			for _, secret := range secrets {
				if strings.Contains(string(text), secret) || strings.Contains(string(text), secret[5:40]) {
					t.Fatalf("%s has a secret", file)
				}
			}
		}
	}
	other := open(t, copied)
	if k, _, err := control.FindKey(ctx, other, hashOf(secrets[99])); err != nil || !k.Opens(hashOf(secrets[99]), storage.Millis(time.Now())) {
		t.Error(err)
	}
}

func TestLastUse(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	l := open(t, dir)
	k, _, err := acme(l).CreateKey(ctx, control.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	l.Used(k.ID, 1000)
	l.Used(k.ID, 2000)
	if err := l.Close(ctx); err != nil {
		t.Fatal(err)
	}
	listed, err := control.Get[control.Key](ctx, acme(open(t, dir)), k.ID)
	if err != nil || listed.UsedAt == nil || *listed.UsedAt != 2000 {
		t.Error(listed, err)
	}
}

// versionOne is what the file had when it knew keys alone.
const versionOne = `
CREATE TABLE keys (
	n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, org TEXT NOT NULL, project TEXT NOT NULL, key TEXT NOT NULL, used_at INTEGER
);
CREATE INDEX keys_of ON keys (org, n);
CREATE TABLE secrets (hash BLOB PRIMARY KEY, id TEXT NOT NULL, place INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX secrets_of ON secrets (id);
CREATE TABLE events (
	n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, org TEXT NOT NULL, object TEXT NOT NULL, event TEXT NOT NULL
);
CREATE INDEX events_of ON events (org, n);
PRAGMA user_version = 1;`

// Keys of version 1 open what they opened, in a project that is made of their text.
func TestVersionOne(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	db, err := sql.Open(libsqlite.Name, filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(versionOne); err != nil {
		t.Fatal(err)
	}
	for n, project := range []string{"search", "", "search", "mail"} {
		id := fmt.Sprint("key_", n)
		text := fmt.Appendf(nil, `{"id":%q,"organization":"acme","name":"n","project":%q,"scopes":["query","admin"],"expires_at":null,"disabled":false,"created_at":"2026-11-20T15:04:05.678Z","secrets":[{"last4":"abcd","created_at":"2026-11-20T15:04:05.678Z","ends_at":null},{"last4":"efgh","created_at":"2026-11-20T15:04:05.678Z","ends_at":null}]}`, id, project)
		if project == "" {
			text = []byte(strings.Replace(string(text), `"project":"",`, "", 1))
		}
		for place := range 2 {
			hash := hashOf(fmt.Sprint("secret", n, place))
			if _, err := db.Exec("INSERT INTO secrets VALUES (?, ?, ?)", hash[:], id, place); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := db.Exec("INSERT INTO keys (id, org, project, key, used_at) VALUES (?, 'acme', ?, ?, 5000)", id, project, text); err != nil {
			t.Fatal(err)
		}
		event := fmt.Sprintf(`{"id":"evt_%d","at":"2026-11-20T15:04:05.678Z","actor":{"key":"a","address":"b"},"action":"key.created","object":%q,"before":null,"after":%s}`, n, id, text)
		if _, err := db.Exec("INSERT INTO events (id, org, object, event) VALUES (?, 'acme', ?, ?)", fmt.Sprint("evt_", n), id, []byte(event)); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time it is of the present version
		l := open(t, dir)
		o := acme(l)
		for n, project := range []string{"search", "", "search", "mail"} {
			hash := hashOf(fmt.Sprint("secret", n, 1))
			k, p, err := control.FindKey(ctx, l, hash)
			if err != nil || k.Project != project || !k.Opens(hash, 1) || k.Opens(hashOf("other"), 1) || (p == nil) != (project == "") || p != nil && p.Name != project {
				t.Fatal(k, p, err)
			}
		}
		for list, want := range map[control.List]int{"": 4, control.InProject("search"): 2, control.InProject("mail"): 1, control.OfScope("admin"): 4} {
			keys, err := control.All[control.Key](ctx, o, control.Page{List: list})
			if err != nil || len(keys) != want || *keys[0].UsedAt != 5000 {
				t.Fatal(list, keys, err)
			}
		}
		if projects, err := control.All[control.Project](ctx, o, control.Page{List: control.InUse}); err != nil || len(projects) != 2 {
			t.Fatal(projects, err)
		}
		if projects, err := control.All[control.Project](ctx, o, control.Page{}); err != nil || len(projects) != 2 {
			t.Fatal(projects, err)
		}
		events, err := l.Events(ctx, "acme", "", "", 10)
		if err != nil || len(events) != 6 || events[0].Action != "project.created" || events[0].Actor.Key != "weir" || events[5].ID != "evt_0" {
			t.Fatal(events, err)
		}
		if err := l.Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// changeForEver says each change once it was made, with the ids of the objects that it made.
func changeForEver(dir string) {
	l, err := Open(dir, nil, zap.NewNop())
	ctx := context.Background()
	for n := 0; err == nil; n++ {
		o := acme(l)
		var a *control.ServiceAccount
		var k *control.Key
		var m *control.Member
		var r *control.Rule
		var secret string
		name := fmt.Sprint(time.Now().UnixNano())
		if a, k, secret, err = o.CreateServiceAccount(ctx, name, "x", &control.Settings{Name: name}); err == nil {
			fmt.Println(k.ID, secret)
		}
		if err == nil {
			m, err = o.AddMember(ctx, control.Member{Email: name, Role: control.Owner})
			fmt.Println(m.ID)
		}
		if err == nil {
			err = o.SetRules(ctx, control.RuleSettings{Name: name, Budget: json.RawMessage(`{}`)})
		}
		if err == nil {
			r, err = control.Named[control.Rule](ctx, o, name)
			fmt.Println(r.ID)
		}
		if err == nil && n%3 == 0 {
			err = control.DeleteOwner[control.ServiceAccount](ctx, o, a.ID)
			fmt.Println("deleted", k.ID)
		}
	}
	fmt.Println(err)
	os.Exit(1)
}

// A process that is killed leaves each change whole, and all that it has said.
func TestKill(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	said := make(map[string]string)
	for round := range 8 {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "CONTROL_TEST_DIR="+dir)
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			if n == 5+7*round {
				_ = child.Process.Kill()
			}
			switch first, second, _ := strings.Cut(lines.Text(), " "); {
			case first == "deleted":
				delete(said, second)
			case strings.Contains(first, "_"):
				said[first] = second
			default:
				t.Fatal(lines.Text())
			}
		}
		_ = child.Wait()
	}
	l := open(t, dir)
	o := acme(l)
	for id, secret := range said {
		events, err := l.Events(ctx, "acme", id, "", 10)
		if err != nil || len(events) == 0 {
			t.Fatal(id, events, err)
		}
		if secret == "" {
			kind := control.Kind(strings.TrimSuffix(events[0].Action, ".created"))
			if _, err := l.Get(ctx, "acme", kind, id); err != nil {
				t.Error(id, err)
			}
			continue
		}
		k, _, err := control.FindKey(ctx, l, hashOf(secret))
		deleted := events[0].After == nil // which the process had no time to say
		if !deleted && (err != nil || k.ID != id) || deleted && !errors.Is(err, control.ErrNotFound) {
			t.Errorf("%s: %v, %v, %d events", id, k, err, len(events))
		}
	}
	whole(t, o)
}

// whole checks that what one change made, or ended, is there together or not at all.
func whole(t *testing.T, o *control.Organisation) {
	t.Helper()
	ctx := t.Context()
	accounts, err := control.All[control.ServiceAccount](ctx, o, control.Page{})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := control.All[control.Key](ctx, o, control.Page{})
	if err != nil || len(keys) != len(accounts) {
		t.Errorf("%d accounts have %d keys: %v", len(accounts), len(keys), err)
	}
	for _, a := range accounts {
		if _, err := control.Named[control.Project](ctx, o, a.Object.Project); err != nil {
			t.Errorf("an account is without its project: %v", err)
		}
		if owned, err := control.All[control.Key](ctx, o, control.Page{List: control.OwnedBy(a.Object.ID)}); err != nil || len(owned) != 1 {
			t.Errorf("an account is without its key: %v", err)
		}
	}
	made := 0 // objects that the events made and did not end
	for before := ""; ; {
		events, err := o.Log.Events(ctx, o.Name, "", before, 200)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			before = e.ID
			switch {
			case e.Before == nil:
				made++
			case e.After == nil:
				made--
			}
		}
		if len(events) == 0 {
			break
		}
	}
	all := len(accounts) + len(keys)
	for _, kind := range []control.Kind{control.KindProject, control.KindMember, control.KindRule} {
		objects, err := o.Log.List(ctx, o.Name, kind, control.Page{})
		if err != nil {
			t.Fatal(err)
		}
		all += len(objects)
	}
	if made != all {
		t.Errorf("the events made %d objects, and there are %d", made, all)
	}
}
