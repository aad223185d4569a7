package standard

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
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
)

// newIssuer returns the address of an issuer, and what signs its tokens.
func newIssuer(t *testing.T) (address string, sign func(claims string) string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	issuer := &oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: "one", Algorithm: oidc.ES256}}}
	server := httptest.NewServer(issuer)
	t.Cleanup(server.Close)
	issuer.SetIssuer(server.URL)
	return server.URL, func(claims string) string { return oidctest.SignIDToken(key, "one", oidc.ES256, claims) }
}

// Tokens give what the configuration says of their claims, and nothing that a claim alone
// says: neither scopes, nor an organisation that is not there or not theirs.
func TestTokens(t *testing.T) {
	issuer, sign := newIssuer(t)
	away := httptest.NewServer(http.NotFoundHandler())
	away.Close()

	ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
	defer cancel()
	app := &llmapp.App{
		Stores: map[string]*stores.Config{"default": {StorageRaw: fmt.Appendf(nil, `{"backend":"sqlite","path":%q}`, t.TempDir()+"/a.db")}},
		Tenant: llmapp.Tenant{Identities: []*access.Identity{
			{
				Issuer: issuer, Audiences: []string{"weir"}, OrgClaim: "tenant", UserClaim: "email",
				Scopes: []string{access.ScopeGateway}, Roles: []access.Role{{Claim: "realm.roles", Value: "analyst", Scopes: []string{access.ScopeQuery}}},
			},
			{Issuer: away.URL, Audiences: []string{"weir"}, Scopes: []string{access.ScopeGateway}},
		}},
		Organisations: map[string]*llmapp.Organisation{
			"acme": {},
			"globex": {Tenant: llmapp.Tenant{Identities: []*access.Identity{{
				Issuer: issuer, Audiences: []string{"globex"}, Scopes: []string{access.ScopeLog}, Require: map[string][]string{"repository": {"globex/app", "globex/lib-*"}},
			}}}},
		},
	}
	if err := app.Provision(ctx); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = app.Cleanup() }()
	keys := access.Checker{Keys: app.Authenticator(), Store: "default"}
	token := func(claims map[string]any) string {
		all := map[string]any{"iss": issuer, "sub": "ada", "aud": "weir", "exp": time.Now().Add(time.Hour).Unix(), "tenant": "acme", "email": "ada@acme.com", "email_verified": true}
		maps.Copy(all, claims)
		text, _ := json.Marshal(all) // of texts and lists
		return sign(string(text))
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
		"of whom nobody says more":       {token(map[string]any{"email_verified": nil}), "", "", nil, 401},
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
				got, refused := keys.Admit(&http.Request{Header: http.Header{"Authorization": {"Bearer " + c.token}}}, scope, "Authorization")
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
	if key, err := app.Authenticator().Authenticate(context.Background(), token(nil)); err != nil || key.Hash() == (&access.Key{}).Hash() {
		t.Errorf("%+v, %v", key, err)
	}
}

// A token is bound by the project that it names, as the keys of the project are.
func TestTokensOfProjects(t *testing.T) {
	issuer, sign := newIssuer(t)
	ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
	defer cancel()
	app := &llmapp.App{
		Stores: map[string]*stores.Config{"default": {StorageRaw: fmt.Appendf(nil, `{"backend":"sqlite","path":%q}`, t.TempDir()+"/a.db")}},
		Tenant: llmapp.Tenant{Identities: []*access.Identity{{Issuer: issuer, Audiences: []string{"weir"}, ProjectClaim: "team", Scopes: []string{access.ScopeGateway}}}},
	}
	if err := app.Provision(ctx); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = app.Cleanup() }()
	token := sign(fmt.Sprintf(`{"iss":%q,"sub":"ada","aud":"weir","exp":%d,"team":"search"}`, issuer, time.Now().Add(time.Hour).Unix()))
	check := func(when string, refused bool, mayCall bool) {
		t.Helper()
		switch got, err := app.Authenticator().Authenticate(t.Context(), token); {
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
	org := &control.Organisation{Name: stores.DefaultName}
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

// A token whose claims name no role has that of the member with its verified email, and no
// other: not for an email that nobody has verified, nor for one that is only like it, nor in
// another organisation.
func TestTokensOfMembers(t *testing.T) {
	issuer, sign := newIssuer(t)
	ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
	defer cancel()
	members := func(audience string, scopes ...string) *access.Identity {
		return &access.Identity{
			Issuer: issuer, Audiences: []string{audience}, Scopes: scopes, Members: audience != "strict",
			Roles: []access.Role{{Claim: "groups", Value: "viewers", Scopes: []string{access.ScopeMetrics}}},
		}
	}
	app := &llmapp.App{
		Stores: map[string]*stores.Config{"default": {StorageRaw: fmt.Appendf(nil, `{"backend":"sqlite","path":%q}`, t.TempDir()+"/a.db")}},
		Organisations: map[string]*llmapp.Organisation{
			"acme":   {Tenant: llmapp.Tenant{Identities: []*access.Identity{members("acme"), members("strict", access.ScopeLog)}}},
			"globex": {Tenant: llmapp.Tenant{Identities: []*access.Identity{members("globex")}}},
		},
	}
	if err := app.Provision(ctx); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = app.Cleanup() }()
	token := func(claims string) string {
		return sign(fmt.Sprintf(`{"iss":%q,"sub":"ada","exp":%d,%s}`, issuer, time.Now().Add(time.Hour).Unix(), claims))
	}
	allowed := func(claims string) string {
		t.Helper()
		got, err := app.Authenticator().Authenticate(t.Context(), token(claims))
		if err != nil {
			return ""
		}
		return strings.Join(got.Allowed(), " ")
	}
	const verified = `"aud":"acme","email":"ada@acme.com","email_verified":true`
	if got := allowed(verified); got != "" {
		t.Errorf("without members, the token has %q", got)
	}
	store, err := app.Store("")
	if err != nil {
		t.Fatal(err)
	}
	org := &control.Organisation{Name: "acme"}
	if org.Log, err = store.Control(); err != nil {
		t.Fatal(err)
	}
	m, err := org.AddMember(t.Context(), control.Member{Email: "ada@acme.com", Role: control.Reader})
	if err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() { allowed(verified) })
	}
	calls.Wait()
	if events, err := org.Log.Events(t.Context(), "acme", m.ID, "", 10); err != nil || len(events) != 2 || events[0].Action != "member.joined" || events[0].Actor.Key != m.ID {
		t.Errorf("the first calls are told as %+v, %v", events, err)
	}
	const reader, contributor, owner = "gateway log metrics", "gateway log metrics query write", "gateway log metrics query write admin"
	for name, c := range map[string][2]string{
		"a member":                       {verified, reader},
		"in other letters":               {`"aud":"acme","email":"Ada@ACME.com","email_verified":"true"`, reader},
		"with a role in the claims":      {verified + `,"groups":["viewers"]`, "metrics"},
		"who is not verified":            {`"aud":"acme","email":"ada@acme.com","email_verified":false`, ""},
		"of whom nobody says":            {`"aud":"acme","email":"ada@acme.com"`, ""},
		"verified and not":               {`"aud":"acme","email":"ada@acme.com","email_verified":[true,false]`, ""},
		"with two emails":                {`"aud":"acme","email":["ada@acme.com","eve@acme.com"],"email_verified":true`, ""},
		"without an email":               {`"aud":"acme","email_verified":true,"upn":"ada@acme.com","preferred_username":"ada@acme.com"`, ""},
		"with a name before the email":   {`"aud":"acme","email":"Ada <ada@acme.com>","email_verified":true`, ""},
		"of another organisation":        {`"aud":"globex","email":"ada@acme.com","email_verified":true`, ""},
		"at an identity without members": {`"aud":"strict","email":"ada@acme.com","email_verified":true`, "log"},
		"somebody else":                  {`"aud":"acme","email":"eve@acme.com","email_verified":true`, ""},
		"claims a member's id":           {`"aud":"acme","email":"eve@acme.com","email_verified":true,"role":"owner","member":"` + m.ID + `"`, ""},
	} {
		if got := allowed(c[0]); got != c[1] {
			t.Errorf("%s has %q, not %q", name, got, c[1])
		}
	}
	for role, want := range map[string]string{control.Owner: owner, control.Contributor: contributor, "root": "", control.Reader: reader} {
		if _, err := control.Update(t.Context(), org, m.ID, func(m *control.Member) error {
			m.Role = role
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if got := allowed(verified); got != want {
			t.Errorf("a %s has %q", role, got)
		}
	}
	if joined, err := control.Get[control.Member](t.Context(), org, m.ID); err != nil || joined.Object.JoinedAt == nil {
		t.Error("it is not noted that the member has joined:", joined, err)
	}
	// The calls of a member of one project are in this project.
	for _, labels := range [][]string{{"search"}, {"search", "mail"}, {}} {
		if _, err := control.Update(t.Context(), org, m.ID, func(m *control.Member) error {
			m.Role, m.Projects = control.Reader, nil
			for _, label := range labels {
				m.Join(label, control.Contributor)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		got, err := app.Authenticator().Authenticate(t.Context(), token(verified))
		if err != nil {
			t.Fatal(err)
		}
		r := storage.Record{}
		if got.Stamp(&r); r.Project != "search" == (len(labels) == 1) {
			t.Errorf("a call of a member of %q is in the project %q", labels, r.Project)
		}
	}
	if err := control.DeleteOwner[control.Member](t.Context(), org, m.ID); err != nil {
		t.Fatal(err)
	}
	if got := allowed(verified); got != "" {
		t.Errorf("a member who was removed has %q", got)
	}
}
