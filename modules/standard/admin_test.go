package standard

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/modules/llmadmin"
	"github.com/weirhq/weir/storage"
)

// askAdmin asks a route of Caddy's admin endpoint.
func askAdmin(t *testing.T, method, path, body string) (*httptest.ResponseRecorder, error) {
	t.Helper()
	for _, r := range new(llmadmin.API).Routes() {
		if r.Pattern == path {
			w := httptest.NewRecorder()
			return w, r.Handler.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
		}
	}
	t.Fatalf("there is no %s", path)
	return nil, nil
}

func TestCreditsOfTheAdminAPI(t *testing.T) {
	config := fmt.Appendf(nil, `{
		"admin": {"disabled": true, "config": {"persist": false}},
		"apps": {"llm": {
			"stores": {"default": {"storage": {"backend": "sqlite", "path": %q}}},
			"orgs": {"acme": {"credits": "50"}, "free": {}}
		}}
	}`, filepath.Join(t.TempDir(), "weir.db"))
	if err := caddy.Load(config, true); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = caddy.Stop() }()

	for _, c := range []struct {
		method, body, want string
		status             int
	}{
		{"GET", "", `[{"org":"acme","store":"default","balance":50,"granted":50,"spent":0,"reserved":0}]`, 200},
		{"POST", `{"org":"acme","amount":"20.125"}`, `[{"org":"acme","store":"default","balance":70.125,"granted":70.125,"spent":0,"reserved":0}]`, 200},
		{"POST", `{"org":"free","amount":"1"}`, "", 404},
		{"POST", `{"org":"acme","amount":"much"}`, "", 400},
		{"POST", `{"org":"acme","amount":"-1"}`, "", 400},
		{"POST", `nothing`, "", 400},
		{"DELETE", "", "", 405},
	} {
		w, err := askAdmin(t, c.method, "/llm/credits", c.body)
		if e, failed := errors.AsType[caddy.APIError](err); failed != (c.status != http.StatusOK) || failed && e.HTTPStatus != c.status {
			t.Errorf("%s %s: %v, want %d", c.method, c.body, err, c.status)
		}
		if c.want != "" && strings.TrimSpace(w.Body.String()) != c.want {
			t.Errorf("%s %s: %s", c.method, c.body, w.Body)
		}
		if c.want != "" && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s is no JSON", w.Body)
		}
	}
}

func TestIntegrityOfTheAdminAPI(t *testing.T) {
	config := fmt.Appendf(nil, `{
		"admin": {"disabled": true, "config": {"persist": false}},
		"apps": {"llm": {"stores": {"default": {"storage": {"backend": "sqlite", "path": %q}}}}}
	}`, filepath.Join(t.TempDir(), "weir.db"))
	if err := caddy.Load(config, true); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = caddy.Stop() }()
	j := stores.InUse()[0].Opened()
	r := &storage.Record{CreatedAt: 1_700_000_000_000}
	j.Begin(r)
	j.Begin(&storage.Record{CreatedAt: r.CreatedAt + 1})
	j.Abandon(r)

	w, err := askAdmin(t, http.MethodGet, "/weir/integrity", "")
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"store":"default","seen":2,"recorded":0,"waiting":0,"in_flight":1,"losses":[` +
		`{"reason":"interrupted","entries":1,"exchanges":1,"from":"2023-11-14T22:13:20.000Z","to":"2023-11-14T22:13:20.000Z"}],"damage":[],"lost":1,"unaccounted":0}]`
	if got := strings.TrimSpace(w.Body.String()); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
