package access

import (
	"crypto/sha256"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/storage/control"
	"github.com/weirhq/weir/storage/control/embedded"

	_ "github.com/weirhq/weir/storage/sqlite"
)

// longKey is a key as long as those that are made.
const longKey = "configured-0123456789-0123456789-0123456789-0123456789-01"

// start opens a store in a directory, and admits longKey and what is created in the store.
func start(t testing.TB, dir string) (*Authenticator, *stores.Store) {
	t.Helper()
	ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
	t.Cleanup(cancel)
	config := &stores.Config{StorageRaw: fmt.Appendf(nil, `{"backend":"sqlite","path":%q}`, dir+"/weir.db")}
	if err := config.Provision(ctx, stores.DefaultName, zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(config.Release)
	if err := config.Start(); err != nil {
		t.Fatal(err)
	}
	keys := NewAuthenticator(nil, map[string]*stores.Config{stores.DefaultName: config}, zap.NewNop())
	if err := keys.AddKey(new(Key), longKey, stores.DefaultName); err != nil {
		t.Fatal(err)
	}
	return &keys, config.Store()
}

// A key that is known costs no allocation more than one of the configuration, and a change is in force
// with the next call.
func TestCreatedKeys(t *testing.T) {
	keys, store := start(t, t.TempDir())
	if _, err := keys.Authenticate(t.Context(), "weir_unknown"); err == nil || embedded.Exists(store.Dir()) {
		t.Error("an unknown key made a file")
	}
	log, err := store.Control()
	if err != nil {
		t.Fatal(err)
	}
	org := &control.Organisation{Log: log, Name: stores.DefaultName}
	kept, secret, err := org.CreateKey(t.Context(), control.Settings{Name: "x", Scopes: []string{ScopeQuery}, Project: "search"})
	if err != nil {
		t.Fatal(err)
	}
	key, err := keys.Authenticate(t.Context(), secret)
	if err != nil || key.Org() != stores.DefaultName || !key.Allows(ScopeQuery) || key.Allows(ScopeGateway) || key.Allows(ScopeAdmin) || key.Created().ID != kept.ID {
		t.Fatal(key, err)
	}
	allocations := func(secret string) float64 {
		return testing.AllocsPerRun(100, func() {
			if _, err := keys.Authenticate(t.Context(), secret); err != nil {
				t.Error(err)
			}
		})
	}
	if n, want := allocations(secret), allocations(longKey); n > want {
		t.Errorf("a key that is known costs %v allocations, one of the configuration %v", n, want)
	}
	project, err := control.Named[control.Project](t.Context(), org, "search")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		models *control.ModelPermissions
		model  string
		want   bool
	}{
		{nil, "gpt-5", true},
		{&control.ModelPermissions{Mode: control.AllowList, IDs: []string{"gpt-*"}}, "gpt-5", true},
		{&control.ModelPermissions{Mode: control.AllowList, IDs: []string{"gpt-*"}}, "claude", false},
		{&control.ModelPermissions{Mode: control.DenyList, IDs: []string{"openai/gpt-*"}}, "gpt-5", false},
		{&control.ModelPermissions{Mode: control.DenyList, IDs: []string{"openai/gpt-*"}}, "claude", true},
		{&control.ModelPermissions{Mode: control.DenyList, IDs: []string{"openai/gpt-*"}}, "", false}, // a proxy passes all models
	} {
		if _, err := org.UpdateProject(t.Context(), project.ID, func(p *control.Project) error {
			p.Models = c.models
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if key, err := keys.Authenticate(t.Context(), secret); err != nil || key.MayCall("openai", c.model) != c.want {
			t.Errorf("with %+v the model %q: not %v, %v", c.models, c.model, c.want, err)
		}
	}
	if _, err := org.ArchiveProject(t.Context(), project.ID); err != nil {
		t.Fatal(err)
	}
	if key, err := keys.Authenticate(t.Context(), secret); err == nil {
		t.Errorf("a key of an archived project opens %+v", key)
	}
	kept, secret, err = org.CreateKey(t.Context(), control.Settings{Name: "x", Scopes: []string{ScopeQuery}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Authenticate(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if err := control.Delete[control.Key](t.Context(), org, kept.ID); err != nil {
		t.Fatal(err)
	}
	if key, err := keys.Authenticate(t.Context(), secret); err == nil {
		t.Errorf("a deleted key opens %+v", key)
	}
}

// BenchmarkAuthenticate has so many keys, of which the same one calls, or another each time.
func BenchmarkAuthenticate(b *testing.B) {
	dir, err := os.MkdirTemp("/dev/shm", "keys")
	if err != nil {
		dir = b.TempDir()
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.MkdirAll(dir+"/weir.db.segments", 0o700); err != nil {
		b.Fatal(err)
	}
	const many = 500_000
	secrets := make([]string, 0, many)
	log, err := embedded.Open(dir+"/weir.db.segments", nil, zap.NewNop())
	if err != nil {
		b.Fatal(err)
	}
	org := &control.Organisation{Log: log, Name: stores.DefaultName}
	began := time.Now()
	for n := range many {
		_, secret, err := org.CreateKey(b.Context(), control.Settings{Name: fmt.Sprint("key ", n), Scopes: []string{ScopeGateway}})
		if err != nil {
			b.Fatal(err)
		}
		secrets = append(secrets, secret)
	}
	b.Logf("%d keys were created in %v", many, time.Since(began))
	if err := log.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
	began = time.Now()
	keys, store := start(b, dir)
	b.Logf("the start took %v", time.Since(began))
	if org.Log, err = store.Control(); err != nil {
		b.Fatal(err)
	}
	check := func(secret func(n int) string) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if _, err := keys.Authenticate(b.Context(), secret(n)); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	b.Run("configured", check(func(int) string { return longKey }))
	b.Run("known", check(func(n int) string { return secrets[n%1000] }))
	b.Run("read", check(func(n int) string { return secrets[n*7919%many] }))
	b.Run("page", func(b *testing.B) {
		middle, err := org.Log.Find(b.Context(), sha256.Sum256([]byte(secrets[many/2])))
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if page, err := control.All[control.Key](b.Context(), org, control.Page{After: middle.ID, Limit: 200}); err != nil || len(page) != 200 {
				b.Fatal(len(page), err)
			}
		}
	})
}
