package llmadmin

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

	_ "github.com/weirhq/weir/storage/sqlite"
)

func TestCredits(t *testing.T) {
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
		w := httptest.NewRecorder()
		err := serveCredits(w, httptest.NewRequest(c.method, "/llm/credits", strings.NewReader(c.body)))
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
