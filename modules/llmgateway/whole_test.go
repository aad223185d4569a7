package llmgateway_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/caddyserver/caddy/v2"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/testkit/freeport"
	"github.com/weirhq/weir/modules/llmapp"
	_ "github.com/weirhq/weir/modules/llmgateway"
	_ "github.com/weirhq/weir/plugins/echo"
	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/storage"
	_ "github.com/weirhq/weir/storage/sqlite"
)

// TestGateway holds that Caddy, the gateway, a provider and a store work
// together, also after a reload.
func TestGateway(t *testing.T) {
	address := freeport.Address(t)
	config := fmt.Appendf(nil, `{
		"admin": {"disabled": true, "config": {"persist": false}},
		"apps": {
			"llm": {
				"stores": {"default": {"storage": {"backend": "sqlite", "path": %q}}},
				"keys": [{"secret": "k"}], "providers": [{"label": "echo"}]
			},
			"http": {"servers": {"s": {
				"listen": [%q], "automatic_https": {"disable": true}, "logs": {},
				"routes": [{"handle": [{"handler": "llm_gateway"}]}]
			}}}
		}
	}`, filepath.Join(t.TempDir(), "weir.db"), address)
	defer func() { _ = caddy.Stop() }()

	var ids []string
	for _, mode := range []string{"false", "true"} {
		if err := caddy.Load(config, true); err != nil {
			t.Fatal(err)
		}
		resp, err := call(address, `{"model":"echo/echo-1","input":"hi","stream":`+mode+`}`)
		for try := 0; (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)) && try < 3; try++ { // the server that is stopping had accepted it
			resp, err = call(address, `{"model":"echo/echo-1","input":"hi","stream":`+mode+`}`)
		}
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%d %s %v", resp.StatusCode, answer, err)
		}
		if mode == "true" {
			if _, err := plugintest.Check(answer); err != nil {
				t.Errorf("%v\n%s", err, answer)
			}
		} else if got := gjson.GetBytes(answer, "output.0.content.0.text").Str; got != "You said: hi" {
			t.Errorf("the answer is %s", answer)
		}
		ids = append(ids, resp.Header.Get("Service-Id"))
	}

	app, err := caddy.ActiveContext().App("llm")
	if err != nil {
		t.Fatal(err)
	}
	store, err := app.(*llmapp.App).Store("")
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Opened().Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		r, err := store.Opened().Backend().Request(t.Context(), storage.RecordKey{Org: "default", ID: uuid.MustParse(id)})
		if err != nil {
			t.Fatal(err)
		}
		content, err := store.Opened().Contents().Content(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if r.Model != "echo-1" || r.Provider != "echo" || r.UserID != "u-1" || r.EndState != storage.Complete || !r.Usage.Input.Valid ||
			!json.Valid(content.Response.Data) || !strings.Contains(string(content.Response.Data), "You said") {
			t.Errorf("the record is %+v with %s", r, content.Response.Data)
		}
	}
}

// call posts to the gateway, on a connection of its own: a reload closes idle ones.
func call(address, body string) (*http.Response, error) {
	r, err := http.NewRequest("POST", "http://"+address+"/v1/responses", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer k")
	r.Header.Set("Service-User-Id", "u-1")
	r.Close = true
	return http.DefaultClient.Do(r)
}
