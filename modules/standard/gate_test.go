package standard

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/modules/llmapp"
)

func TestAdmit(t *testing.T) {
	ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
	defer cancel()
	store := func(name string) *stores.Config {
		return &stores.Config{StorageRaw: fmt.Appendf(nil, `{"backend":"sqlite","path":%q}`, t.TempDir()+"/"+name)}
	}
	app := &llmapp.App{
		Stores: map[string]*stores.Config{"default": store("a.db"), "eu": store("b.db")},
		Organisations: map[string]*llmapp.Organisation{
			"acme":   {Tenant: llmapp.Tenant{Keys: []*access.Key{{Secret: "all"}, {Secret: "log", Scopes: []string{access.ScopeLog}}}}},
			"europe": {Store: "eu", Tenant: llmapp.Tenant{Keys: []*access.Key{{Secret: "euro"}}}},
		},
	}
	if err := app.Provision(ctx); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = app.Cleanup() }()
	keys := access.Checker{Keys: app.Authenticator(), Store: "default"}

	for name, c := range map[string]struct {
		header http.Header
		org    string
		status int
		code   string
	}{
		"a bearer":          {http.Header{"Authorization": {"Bearer all"}}, "acme", 0, ""},
		"lower case":        {http.Header{"Authorization": {"bearer  all"}}, "acme", 0, ""},
		"the key alone":     {http.Header{"Authorization": {"all"}}, "acme", 0, ""},
		"the other field":   {http.Header{"X-Api-Key": {"all"}}, "acme", 0, ""},
		"the first counts":  {http.Header{"Authorization": {"Bearer nope"}, "X-Api-Key": {"all"}}, "", 401, "invalid_api_key"},
		"none":              {nil, "", 401, "missing_api_key"},
		"a field not taken": {http.Header{"Api-Key": {"all"}}, "", 401, "missing_api_key"},
		"another scheme":    {http.Header{"Authorization": {"Basic all"}}, "", 401, "invalid_api_key"},
		"no secret":         {http.Header{"Authorization": {"Bearer "}}, "", 401, "invalid_api_key"},
		"unknown":           {http.Header{"Authorization": {"Bearer nope"}}, "", 401, "invalid_api_key"},
		"of another store":  {http.Header{"Authorization": {"Bearer euro"}}, "", 403, "wrong_region"},
		"without the scope": {http.Header{"Authorization": {"Bearer log"}}, "", 403, "insufficient_scope"},
	} {
		t.Run(name, func(t *testing.T) {
			key, err := keys.Admit(&http.Request{Header: c.header}, access.ScopeQuery, "Authorization", "X-Api-Key")
			if c.code == "" {
				if err != nil || key.Org() != c.org {
					t.Errorf("%v, %v", key, err)
				}
				return
			}
			if err == nil || err.Status != c.status || err.Code != c.code {
				t.Errorf("%v, %+v", key, err)
			}
		})
	}
}
