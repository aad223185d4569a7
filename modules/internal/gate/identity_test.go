package gate

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"

	_ "github.com/weirhq/weir/storage/sqlite"
)

// Tokens give what the configuration says of their claims, and nothing that a claim alone
// says: neither scopes, nor an organisation that is not there or not theirs.
func TestTokens(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	issuer := &oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: "one", Algorithm: oidc.ES256}}}
	server := httptest.NewServer(issuer)
	defer server.Close()
	issuer.SetIssuer(server.URL)
	away := httptest.NewServer(http.NotFoundHandler())
	away.Close()

	ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
	defer cancel()
	app := &llmapp.App{
		Stores: map[string]*llmapp.StoreConfig{"default": {StorageRaw: fmt.Appendf(nil, `{"backend":"sqlite","path":%q}`, t.TempDir()+"/a.db")}},
		Identities: []*llmapp.Identity{
			{
				Issuer: server.URL, Audiences: []string{"weir"}, OrgClaim: "tenant", UserClaim: "email",
				Scopes: []string{llmapp.ScopeGateway}, Roles: []llmapp.Role{{Claim: "realm.roles", Value: "analyst", Scopes: []string{llmapp.ScopeQuery}}},
			},
			{Issuer: away.URL, Audiences: []string{"weir"}, Scopes: []string{llmapp.ScopeGateway}},
		},
		Organisations: map[string]*llmapp.Organisation{
			"acme": {},
			"globex": {Identities: []*llmapp.Identity{{
				Issuer: server.URL, Audiences: []string{"globex"}, Scopes: []string{llmapp.ScopeLog}, Require: map[string][]string{"repository": {"globex/app", "globex/lib-*"}},
			}}},
		},
	}
	if err := app.Provision(ctx); err != nil {
		t.Fatal(err)
	}
	gate := Gate{App: app, Store: "default"}
	token := func(claims map[string]any) string {
		all := map[string]any{"iss": server.URL, "sub": "ada", "aud": "weir", "exp": time.Now().Add(time.Hour).Unix(), "tenant": "acme", "email": "ada@acme.com"}
		maps.Copy(all, claims)
		text, _ := json.Marshal(all) // of texts and lists
		return oidctest.SignIDToken(key, "one", oidc.ES256, string(text))
	}
	repository := func(name string) string {
		return token(map[string]any{"aud": "globex", "repository": name, "tenant": "acme", "email": nil})
	}
	for name, c := range map[string]struct {
		token     string
		org, user string
		scopes    []string
		status    int
	}{
		"a person":                       {token(nil), "acme", "ada@acme.com", []string{"gateway"}, 0},
		"with a role":                    {token(map[string]any{"realm": map[string]any{"roles": []string{"x", "analyst"}}}), "acme", "ada@acme.com", []string{"gateway", "query"}, 0},
		"a role in another claim":        {token(map[string]any{"roles": []string{"analyst"}}), "acme", "ada@acme.com", []string{"gateway"}, 0},
		"claims scopes":                  {token(map[string]any{"scope": "admin query", "scopes": []string{"admin"}}), "acme", "ada@acme.com", []string{"gateway"}, 0},
		"of an unknown organisation":     {token(map[string]any{"tenant": "initech"}), "", "", nil, 401},
		"of two organisations":           {token(map[string]any{"tenant": []string{"acme", "globex"}}), "", "", nil, 401},
		"of no organisation":             {token(map[string]any{"tenant": nil}), "", "", nil, 401},
		"without a user":                 {token(map[string]any{"email": nil}), "", "", nil, 401},
		"with an unverified user":        {token(map[string]any{"email_verified": false}), "", "", nil, 401},
		"a workload":                     {repository("globex/app"), "globex", "", []string{"log"}, 0},
		"a workload of a family":         {repository("globex/lib-a"), "globex", "", []string{"log"}, 0},
		"a workload of others":           {repository("evil/app"), "", "", nil, 401},
		"a workload with a prefix":       {repository("globex/app2"), "", "", nil, 401},
		"a workload without a name":      {token(map[string]any{"aud": "globex"}), "", "", nil, 401},
		"for another service":            {token(map[string]any{"aud": "other"}), "", "", nil, 401},
		"of an issuer that is not known": {token(map[string]any{"iss": "https://evil.example.com"}), "", "", nil, 401},
		"of an issuer that is away":      {token(map[string]any{"iss": away.URL}), "", "", nil, 503},
	} {
		t.Run(name, func(t *testing.T) {
			all := []string{"gateway", "query", "write", "log"}
			for _, scope := range all {
				got, refused := gate.Admit(&http.Request{Header: http.Header{"Authorization": {"Bearer " + c.token}}}, scope, "Authorization")
				switch {
				case c.status != 0:
					if refused == nil || refused.Status != c.status {
						t.Fatalf("%+v, %+v", got, refused)
					}
				case !slices.Contains(c.scopes, scope):
					if refused == nil || refused.Code != "insufficient_scope" {
						t.Errorf("%s: %+v, %+v", scope, got, refused)
					}
				default:
					if refused != nil {
						t.Fatalf("%s: %+v", scope, refused)
					}
					r := storage.Record{UserID: "claimed"}
					got.Stamp(&r)
					if want := cmp.Or(c.user, "claimed"); r.Org != c.org || r.UserID != want || r.AuthHash == "" {
						t.Errorf("the record has %s, %s, %s", r.Org, r.UserID, r.AuthHash)
					}
				}
			}
		})
	}
	if key, err := app.Authenticate(context.Background(), token(nil)); err != nil || key.Hash() == (&llmapp.Key{}).Hash() {
		t.Errorf("%+v, %v", key, err)
	}
}

// A token is bound by the project that it names, as the keys of the project are.
func TestTokensOfProjects(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	issuer := &oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: "one", Algorithm: oidc.ES256}}}
	server := httptest.NewServer(issuer)
	defer server.Close()
	issuer.SetIssuer(server.URL)
	ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
	defer cancel()
	app := &llmapp.App{
		Stores:     map[string]*llmapp.StoreConfig{"default": {StorageRaw: fmt.Appendf(nil, `{"backend":"sqlite","path":%q}`, t.TempDir()+"/a.db")}},
		Identities: []*llmapp.Identity{{Issuer: server.URL, Audiences: []string{"weir"}, ProjectClaim: "team", Scopes: []string{llmapp.ScopeGateway}}},
	}
	if err := app.Provision(ctx); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = app.Cleanup() }()
	token := oidctest.SignIDToken(key, "one", oidc.ES256, fmt.Sprintf(`{"iss":%q,"sub":"ada","aud":"weir","exp":%d,"team":"search"}`, server.URL, time.Now().Add(time.Hour).Unix()))
	check := func(when string, refused bool, mayCall bool) {
		t.Helper()
		switch got, err := app.Authenticate(t.Context(), token); {
		case refused != (err != nil):
			t.Errorf("%s: %v", when, err)
		case err == nil && got.MayCall("openai", "gpt-5") != mayCall:
			t.Errorf("%s: the token may call the model: %v", when, !mayCall)
		}
	}
	check("without projects", false, true)
	store, err := app.Store("")
	if err != nil {
		t.Fatal(err)
	}
	org := &control.Organisation{Name: llmapp.DefaultName}
	if org.Log, err = store.Control(); err != nil {
		t.Fatal(err)
	}
	check("before the project", false, true)
	p, err := org.CreateProject(t.Context(), "search")
	if err != nil {
		t.Fatal(err)
	}
	check("without model permissions", false, true)
	if _, err := org.UpdateProject(t.Context(), p.ID, func(p *control.Project) error {
		p.Models = &control.ModelPermissions{Mode: control.DenyList, IDs: []string{"gpt-*"}}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	check("of a model that is denied", false, false)
	if _, err := org.ArchiveProject(t.Context(), p.ID); err != nil {
		t.Fatal(err)
	}
	check("of an archived project", true, false)
}
