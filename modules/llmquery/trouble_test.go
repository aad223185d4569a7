package llmquery_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/storage"
)

func init() {
	for name, trouble := range map[string]func(context.Context) error{
		"slow":    func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"broken":  func(context.Context) error { return errors.New("the disk is on fire") },
		"crowded": func(context.Context) error { return fmt.Errorf("querying the disk: %w", storage.ErrTooManyGroups) },
	} {
		caddy.RegisterModule(&troubledStorage{name: name, trouble: trouble})
	}
}

// troubled is a backend that answers nothing but what trouble says.
type troubled struct {
	storagetest.Memory
	trouble func(context.Context) error
}

func (b *troubled) Requests(ctx context.Context, _ *storage.RequestQuery) ([]*storage.Record, error) {
	return nil, b.trouble(ctx)
}

func (b *troubled) Request(ctx context.Context, _ storage.RecordKey) (*storage.Record, error) {
	return nil, b.trouble(ctx)
}

func (b *troubled) Groups(ctx context.Context, _ *storage.GroupQuery, _ func(*storage.GroupTotals) error) error {
	return b.trouble(ctx)
}

func (b *troubled) Views(ctx context.Context, _ string) ([]storage.View, error) {
	return nil, b.trouble(ctx)
}

// troubledStorage makes a troubled backend.
type troubledStorage struct {
	name    string
	trouble func(context.Context) error
	Path    string `json:"dir,omitempty"`
}

func (s *troubledStorage) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: caddy.ModuleID("llm.storage." + s.name), New: func() caddy.Module {
		return &troubledStorage{name: s.name, trouble: s.trouble}
	}}
}

func (s *troubledStorage) Key() string              { return s.name + ":" + s.Path }
func (s *troubledStorage) Dir() string              { return s.Path }
func (s *troubledStorage) Backend() storage.Backend { return &troubled{trouble: s.trouble} }

func TestTrouble(t *testing.T) {
	s := newSite(t)
	response, answer := s.do("POST", "/slow"+bulk, "slow", `{"filter":"all"}`)
	if message := answer.Get("error").String(); response.StatusCode != http.StatusGatewayTimeout || !strings.Contains(message, "10ms") {
		t.Errorf("a slow backend: %d %s", response.StatusCode, message)
	}
	response, answer = s.do("POST", "/broken"+bulk, "broken", `{"filter":"all"}`)
	message := answer.Get("error").String()
	if response.StatusCode != http.StatusInternalServerError || strings.Contains(message, "fire") || !strings.Contains(message, "reference") {
		t.Errorf("a broken backend: %d %s", response.StatusCode, message)
	}
	response, answer = s.do("POST", "/crowded/v1/session/query", "crowded", `{}`)
	if message := answer.Get("error").String(); response.StatusCode != http.StatusBadRequest || !strings.HasPrefix(message, "the query adds up more") {
		t.Errorf("a backend without room: %d %s", response.StatusCode, message)
	}
}

// Queries that all fail for one reason must not fill the disk with it.
func TestFailedQueriesAreLoggedInPart(t *testing.T) {
	s := newSite(t)
	for range 100 {
		s.do("POST", "/broken"+bulk, "broken", `{"filter":"all"}`)
	}
	log, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(log, []byte("query failed")); n == 0 || n > 50 { // ten in ten seconds
		t.Errorf("%d of 100 lines are logged", n)
	}
}

// TestTooManyQueries holds that a key with more queries than may run and wait is
// refused at once, and that neither another key nor what reads one record waits
// for them.
func TestTooManyQueries(t *testing.T) {
	s := newSite(t)
	s.record("default", &storage.Record{Org: "default"}, nil)
	const asked, waiting = 100, 32
	running := (max(3, runtime.GOMAXPROCS(0)/2) + 1) / 2 // of one key
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	answers := make(chan *http.Response, asked)
	for range asked {
		go func() {
			r, err := http.NewRequestWithContext(ctx, "POST", s.url+"/busy/v1/user/metrics/query", strings.NewReader(`{}`))
			if err != nil {
				panic(err)
			}
			r.Header.Set("Authorization", "Bearer slow")
			if response, err := http.DefaultClient.Do(r); err == nil {
				response.Body.Close()
				answers <- response
			}
		}()
	}
	for range asked - waiting - running {
		if response := <-answers; response.StatusCode != http.StatusTooManyRequests || response.Header.Get("Retry-After") == "" {
			t.Fatalf("%d, Retry-After %q", response.StatusCode, response.Header.Get("Retry-After"))
		}
	}
	response, answer := s.do("POST", "/busy"+bulk, "slow", `{"filter":"all"}`)
	if response.StatusCode != http.StatusTooManyRequests || answer.Get("data").Raw != "null" || !strings.Contains(answer.Get("error").String(), "too many queries") {
		t.Errorf("one more: %d %s", response.StatusCode, answer.Raw)
	}
	if response, answer := s.do("POST", bulk, "root", `{"filter":"all"}`); response.StatusCode != http.StatusOK || answer.Get("data.#").Int() != 1 {
		t.Errorf("another key: %d %s", response.StatusCode, answer.Raw)
	}
	response, answer = s.do("GET", "/slow/v1/request/"+uuid.NewString(), "slow", "")
	if message := answer.Get("error").String(); response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(message, "the store is busy") {
		t.Errorf("one record: %d", response.StatusCode)
	}
}
