package llmhealth

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/modules/llmapp"

	_ "github.com/weirhq/weir/storage/sqlite"
)

// start runs a handler beside a store whose database is at path.
func start(t *testing.T, path string) *Handler {
	t.Helper()
	ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
	t.Cleanup(cancel)
	app := &llmapp.App{Stores: map[string]*stores.Config{"default": {
		StorageRaw: fmt.Appendf(nil, `{"backend":"sqlite","path":%q}`, path),
	}}}
	if err := app.Provision(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { app.Cleanup() })
	if err := app.Start(); err != nil {
		t.Fatal(err)
	}
	h := new(Handler)
	if err := h.Provision(ctx); err != nil {
		t.Fatal(err)
	}
	return h
}

// probe is the status and the body of an answer that is not an old one.
func probe(t *testing.T, h *Handler, method, path string) (int, string) {
	t.Helper()
	h.checked = time.Time{}
	w := httptest.NewRecorder()
	err := h.ServeHTTP(w, httptest.NewRequest(method, path, nil), caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(http.StatusTeapot)
		return nil
	}))
	if e, ok := err.(caddyhttp.HandlerError); ok { //nolint:errorlint // that is what Caddy looks for
		return e.StatusCode, ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, strings.TrimSpace(w.Body.String())
}

// Readiness tells a journal that cannot be written from a backend that is away, and
// both from the ability to forward.
func TestReadiness(t *testing.T) {
	const format = `{"ready":%t,"forwarding":"ok","stores":[{"store":"default","journal":%q,"backend":%q}]}`
	for name, c := range map[string]struct {
		spoil            func(t *testing.T, db string) // before the start
		remove           bool                          // what the journal stands on, after it
		status           int
		journal, backend string
	}{
		"all is well": {nil, false, 200, "ok", "ok"},
		"the backend does not open": {func(t *testing.T, db string) {
			if err := os.Mkdir(db+"-wal", 0o700); err != nil {
				t.Fatal(err)
			}
		}, false, 503, "ok", "failing"},
		"the journal is gone": {nil, true, 503, "failing", "ok"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			db := filepath.Join(dir, "weir.db")
			if c.spoil != nil {
				c.spoil(t, db)
			}
			h := start(t, db)
			if c.remove {
				segments := db + ".segments"
				// A file in its place keeps the journal from making the directory anew, as it
				// may have done before the file was there.
				for err := os.ErrExist; err != nil; err = os.WriteFile(segments, nil, 0o600) {
					_ = os.RemoveAll(segments) // fails if the journal writes a file meanwhile
				}
			}
			status, body := probe(t, h, http.MethodGet, "/health/ready")
			if want := fmt.Sprintf(format, c.status == 200, c.journal, c.backend); status != c.status || body != want {
				t.Errorf("%d %s, want %d %s", status, body, c.status, want)
			}
			want := http.StatusOK
			if c.journal == "failing" {
				want = http.StatusServiceUnavailable
			}
			if status, recording := probe(t, h, http.MethodGet, "/health/recording"); status != want || recording != body {
				t.Errorf("recording: %d %s, want %d %s", status, recording, want, body)
			}
			if strings.Contains(body, dir) {
				t.Error("the answer names files")
			}
			if status, body := probe(t, h, http.MethodGet, "/health/live"); status != 200 || body != `{"forwarding":"ok"}` {
				t.Errorf("live: %d %s", status, body)
			}
		})
	}
}

// Probes cannot be used to keep the disk busy: the answer of the last second holds.
func TestAnswersAreReused(t *testing.T) {
	db := filepath.Join(t.TempDir(), "weir.db")
	h := start(t, db)
	probe(t, h, http.MethodGet, "/health/ready")
	checked := h.checked
	h.checked = checked.Add(time.Hour) // whatever time the test takes
	before := h.state
	w := httptest.NewRecorder()
	if err := h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/health/ready", nil), nil); err != nil {
		t.Fatal(err)
	}
	var got state
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Ready != before.Ready || h.checked != checked.Add(time.Hour) {
		t.Errorf("%s, %v", w.Body, err)
	}
}

func TestOtherRequests(t *testing.T) {
	h := new(Handler)
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{http.MethodGet, "/health", http.StatusTeapot},
		{http.MethodGet, "/v1/responses", http.StatusTeapot},
		{http.MethodPost, "/health/live", http.StatusMethodNotAllowed},
		{http.MethodHead, "/health/live", http.StatusOK},
	} {
		if got, _ := probe(t, h, c.method, c.path); got != c.want {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, got, c.want)
		}
	}
}
