package llmapp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/uuid"

	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/storage"

	_ "github.com/weirhq/weir/storage/sqlite"
)

// load makes an app of its JSON as a configuration does; unload cleans it up.
func load(t *testing.T, config string) (app *App, unload context.CancelFunc, err error) {
	t.Helper()
	base, err := caddy.ProvisionContext(nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, unload := caddy.NewContext(base)
	loaded, err := ctx.LoadModuleByID("llm", json.RawMessage(config))
	if err != nil {
		unload()
		return nil, nil, err
	}
	return loaded.(*App), unload, nil
}

func sqliteAt(path string) string {
	return fmt.Sprintf(`{"storage": {"backend": "sqlite", "path": %q}}`, path)
}

func TestKeys(t *testing.T) {
	dir := t.TempDir()
	secretFile := filepath.Join(dir, "secret")
	if err := os.WriteFile(secretFile, []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("WEIR_TEST_KEY", "from-env")
	app, unload, err := load(t, `{
		"stores": {"default": `+sqliteAt(filepath.Join(dir, "a.db"))+`, "eu": `+sqliteAt(filepath.Join(dir, "b.db"))+`},
		"keys": [{"secret": "root"}, {"secret": "{env.WEIR_TEST_KEY}", "scopes": ["query"]}],
		"orgs": {
			"default": {"keys": [{"secret": "more"}]},
			"acme": {"store": "eu", "keys": [
				{"secret": "{file.`+secretFile+`}"},
				{"secret": "sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"}
			]}
		}
	}`)
	if err != nil {
		t.Fatal(err)
	}
	defer unload()
	for secret, want := range map[string]struct{ org, store string }{
		"root":      {"default", "default"},
		"more":      {"default", "default"},
		"from-env":  {"default", "default"},
		"from-file": {"acme", "eu"},
		"secret":    {"acme", "eu"},
	} {
		key, err := app.Authenticator().Authenticate(t.Context(), secret)
		if err != nil || key.Org() != want.org || key.Store() != want.store {
			t.Errorf("%s opens %+v, want %+v", secret, key, want)
		}
	}
	for _, secret := range []string{"", "nope", "{env.WEIR_TEST_KEY}", "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"} {
		if _, err := app.Authenticator().Authenticate(t.Context(), secret); !errors.Is(err, access.ErrUnknownKey) {
			t.Errorf("%q opens something", secret)
		}
	}
	limited, _ := app.Authenticator().Authenticate(t.Context(), "from-env")
	full, _ := app.Authenticator().Authenticate(t.Context(), "root")
	if !limited.Allows(access.ScopeQuery) || limited.Allows(access.ScopeWrite) || !full.Allows(access.ScopeWrite) {
		t.Error("scopes are not what was configured")
	}
	if full.Hash() != "4813494d137e1631bba301d5acab6e7bb7aa74ce1185d456565ef51d737677b2" {
		t.Errorf("hash of root: %s", full.Hash())
	}
}

func TestRefusedConfigurations(t *testing.T) {
	db := filepath.Join(t.TempDir(), "weir.db")
	for name, tc := range map[string]struct{ config, message string }{
		"same place twice": {`{"stores": {"default": ` + sqliteAt(db) + `, "eu": ` + sqliteAt(filepath.Join(filepath.Dir(db), ".", "weir.db")) + `}}`, "same place"},
		"same key twice":   {`{"keys": [{"secret": "a"}], "orgs": {"acme": {"keys": [{"secret": "a"}]}}}`, "org default has a key that org acme has already"},
		"unknown scope":    {`{"keys": [{"secret": "a", "scopes": ["read"]}]}`, `what follows the secret are scopes, out of gateway, log, metrics, query`},
		"short hash":       {`{"keys": [{"secret": "sha256:ab"}]}`, "64 hexadecimal digits"},
		"unset variable":   {`{"keys": [{"secret": "{env.WEIR_TEST_UNSET}"}]}`, "WEIR_TEST_UNSET"},
		"unknown store":    {`{"orgs": {"acme": {"store": "us"}}}`, "no store is named us"},
		"unknown backend":  {`{"stores": {"default": {"storage": {"backend": "tape"}}}}`, "tape"},
		"header prefix":    {`{"header_prefixes": ["a b"]}`, "header_prefix"},
		"property name":    {`{"property_names": ["a b"]}`, "Service-Properties"},
		"empty alias":      {`{"aliases": {"fast": []}}`, "alias fast"},
		"alias of a list":  {`{"aliases": {"a,b": ["fake/x"]}}`, "comma"},
		"null key":         {`{"keys": [{"secret": "a"}, null]}`, "keys: 1 is null"},
		"null budget":      {`{"budgets": [null]}`, "budgets: 0 is null"},
		"null stage":       {`{"budgets": [{"name": "b", "limit": "1", "stages": [null]}]}`, "budget b: a stage is null"},
		"null channel":     {`{"channels": [null]}`, "channels: 0 is null"},
		"null alert":       {`{"orgs": {"acme": {"alerts": [null]}}}`, "org acme: alerts: 0 is null"},
		"null bill":        {`{"bills": [null]}`, "bills: 0 is null"},
		"null rule":        {`{"mask": [null]}`, "mask: 0 is null"},
		"null store":       {`{"stores": {"eu": null}}`, "stores: eu is null"},
		"null org":         {`{"orgs": {"acme": null}}`, "orgs: acme is null"},
		"null model":       {`{"aliases": {"fast": {"models": [null]}}}`, "a model has no name"},
		"catalog":          {`{"catalog": "/does/not/exist.json"}`, "/does/not/exist.json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("XDG_DATA_HOME", t.TempDir())
			if _, _, err := load(t, tc.config); err == nil || !strings.Contains(err.Error(), tc.message) {
				t.Errorf("error %v, want one that says %q", err, tc.message)
			}
		})
	}
	if n := len(stores.InUse()); n != 0 {
		t.Errorf("%d stores are still referred to by configurations that failed", n)
	}
}

// TestStoreOutlivesConfigurations holds that an exchange in flight keeps its
// store open, that a store which comes back is the same, and that nothing
// touches the disk before Start.
func TestStoreOutlivesConfigurations(t *testing.T) {
	db := filepath.Join(t.TempDir(), "weir.db")
	config := `{"stores": {"default": ` + sqliteAt(db) + `}}`
	next := func() (*App, context.CancelFunc) {
		app, unload, err := load(t, config)
		if err != nil {
			t.Fatal(err)
		}
		return app, unload
	}

	first, unloadFirst := next()
	if _, err := os.Stat(db); !os.IsNotExist(err) {
		t.Errorf("provisioning touched the disk: %v", err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	store, err := first.Store("")
	if err != nil {
		t.Fatal(err)
	}
	release := store.Hold()
	opened := store.Opened()

	second, unloadSecond := next()
	if err := second.Start(); err != nil {
		t.Fatal(err)
	}
	unloadFirst()
	unloadSecond()
	if store.Opened() != opened {
		t.Fatal("the store was reopened or closed under an exchange")
	}
	if err := opened.Append(&storage.Record{ID: uuid.Must(uuid.NewV7()), Org: "default"}, nil); err != nil {
		t.Fatalf("the exchange could not record: %v", err)
	}
	release()
	if store.Opened() != nil {
		t.Error("the store is open though nobody refers to it")
	}

	third, unloadThird := next()
	defer unloadThird()
	if err := third.Start(); err != nil {
		t.Fatal(err)
	}
	if again, _ := third.Store(""); again != store {
		t.Error("the same place became another store")
	}
	records, err := store.Opened().Backend().Requests(t.Context(), &storage.RequestQuery{Org: "default", Filter: storage.All{}, Limit: 10})
	if err != nil || len(records) != 1 {
		t.Errorf("%d records, %v; want the one of before", len(records), err)
	}
}
