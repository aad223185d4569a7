package llmlog

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/storage"
)

// forgetful is a recorder that costs nothing.
type forgetful struct{}

func (forgetful) Begin(*storage.Record)                         {}
func (forgetful) Abandon(*storage.Record)                       {}
func (forgetful) Append(*storage.Record, *storage.Kept) error   { return nil }
func (forgetful) Claim(context.Context, storage.RecordKey) bool { return true }
func (forgetful) Release(storage.RecordKey)                     {}
func (forgetful) Known(context.Context, storage.RecordKey) (bool, error) {
	return false, nil
}
func (forgetful) Response(context.Context, string, string) (*storage.Record, error) {
	return nil, storage.ErrNotFound
}

// discard is a client that reads everything at once.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}

func BenchmarkHandler(b *testing.B) {
	app := &llmapp.App{Stores: map[string]*stores.Config{"default": {StorageRaw: []byte(`{"backend":"test_null","dir":"` + b.TempDir() + `"}`)}}}
	ctx, cancel := caddy.NewContext(caddy.Context{Context: b.Context()})
	defer cancel()
	if err := app.Provision(ctx); err != nil {
		b.Fatal(err)
	}
	h := &Handler{MaxBody: defaultMaxBody, site: &recording.Site{
		App: app, Store: stores.DefaultName, Logger: zap.NewNop(),
		Open: func(context.CancelFunc) (recording.Recorder, func(), error) { return forgetful{}, func() {}, nil },
	}}
	ask := `{"model":"gpt-4o","messages":[{"role":"user","content":"` + strings.Repeat("word ", 400) + `"}]}`
	plain := strings.Replace(answerCanary, "canary-answer", strings.Repeat("word ", 250), 1)
	delta, finish := []byte(deltaEvent), []byte(finishEvent+usageEvent+doneEvent)

	for _, c := range []struct {
		name string
		next caddyhttp.HandlerFunc
	}{
		{"plain", func(w http.ResponseWriter, r *http.Request) error {
			io.Copy(io.Discard, r.Body)
			w.Header()["Content-Type"] = []string{"application/json"}
			io.WriteString(w, plain)
			return nil
		}},
		{"stream of 200", func(w http.ResponseWriter, r *http.Request) error {
			io.Copy(io.Discard, r.Body)
			w.Header()["Content-Type"] = []string{"text/event-stream"}
			for range 200 {
				w.Write(delta)
			}
			w.Write(finish)
			return nil
		}},
	} {
		serve := func(b *testing.B, f func(w http.ResponseWriter, r *http.Request) error) {
			b.ReportAllocs()
			for b.Loop() {
				r, _ := http.NewRequest("POST", "http://x"+chatPath, strings.NewReader(ask))
				r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), nil, nil)
				r.Header["Service-User-Id"] = []string{"u"}
				w := &discard{make(http.Header)}
				if err := f(w, r); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.Run(c.name+"/bare", func(b *testing.B) { serve(b, c.next) })
		b.Run(c.name+"/logged", func(b *testing.B) {
			serve(b, func(w http.ResponseWriter, r *http.Request) error { return h.ServeHTTP(w, r, c.next) })
		})
	}
}
