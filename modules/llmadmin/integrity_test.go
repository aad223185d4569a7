package llmadmin

import (
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/storage"
)

func TestIntegrity(t *testing.T) {
	config := fmt.Appendf(nil, `{
		"admin": {"disabled": true, "config": {"persist": false}},
		"apps": {"llm": {"stores": {"default": {"storage": {"backend": "sqlite", "path": %q}}}}}
	}`, filepath.Join(t.TempDir(), "weir.db"))
	if err := caddy.Load(config, true); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = caddy.Stop() }()
	j := llmapp.OpenStores()[0].Opened()
	r := &storage.Record{CreatedAt: 1_700_000_000_000}
	j.Begin(r)
	j.Begin(&storage.Record{CreatedAt: r.CreatedAt + 1})
	j.Abandon(r)

	w := httptest.NewRecorder()
	if err := integrity(w, nil); err != nil {
		t.Fatal(err)
	}
	want := `[{"store":"default","seen":2,"recorded":0,"waiting":0,"in_flight":1,"losses":[` +
		`{"reason":"interrupted","entries":1,"exchanges":1,"from":"2023-11-14T22:13:20.000Z","to":"2023-11-14T22:13:20.000Z"}],"lost":1,"unaccounted":0}]`
	if got := strings.TrimSpace(w.Body.String()); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
