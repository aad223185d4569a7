package llmquery_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/modules/llmquery"
	"github.com/weirhq/weir/storage"
)

// handler is one on the site's default store, to be called without a network.
func (s *site) handler() *llmquery.Handler {
	s.t.Helper()
	// Queries run in threads of low priority, which wait long where other tests run.
	h := &llmquery.Handler{Timeout: caddy.Duration(time.Minute)}
	if err := h.Provision(caddy.ActiveContext()); err != nil {
		s.t.Fatal(err)
	}
	return h
}

// newCall is a call with the key root.
func newCall(method, path, body string) *http.Request {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer root")
	return r
}

// recordPage records a page of the largest number of requests.
func (s *site) recordPage(body []byte) {
	s.t.Helper()
	j := s.journal("default")
	for range page {
		r := &storage.Record{ID: uuid.Must(uuid.NewV7()), Org: "default", CreatedAt: 1_790_000_000_000}
		if err := j.Append(r, storagetest.Kept(r, &storage.Content{Request: storage.Body{Type: "text/plain", Data: body}})); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := j.Flush(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

const (
	page     = 1000
	bodySize = 32 << 10
	askPage  = `{"filter":"all","limit":1000}`
)

// heapMeter is a client that takes the answer in, and looks at the first piece, and then
// once a MiB, how much memory stands.
type heapMeter struct {
	*httptest.ResponseRecorder
	taken, peak, next uint64
}

func (m *heapMeter) Write(b []byte) (int, error) {
	if m.taken >= m.next {
		m.next = m.taken + 1<<20
		m.peak = max(m.peak, heap())
	}
	m.taken += uint64(len(b))
	return len(b), nil
}

// heap is how many bytes are in use, without garbage: when that is collected depends on GOGC.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// TestPageStreams holds that a page does not stand in memory as a whole.
func TestPageStreams(t *testing.T) {
	s := newSite(t)
	s.recordPage(bytes.Repeat([]byte("b"), bodySize))
	h := s.handler()
	m := &heapMeter{ResponseRecorder: httptest.NewRecorder()}
	before := heap()
	if err := h.ServeHTTP(m, newCall("POST", bulk, askPage), nil); err != nil {
		t.Fatal(err)
	}
	if m.taken < page*bodySize {
		t.Fatalf("the page has %d bytes", m.taken)
	}
	if grown := int64(m.peak) - int64(before); grown > int64(m.taken)/2 {
		t.Errorf("the heap grew by %d KiB for a page of %d KiB", grown>>10, m.taken>>10)
	} else {
		t.Logf("the heap grew by %d KiB for a page of %d KiB", grown>>10, m.taken>>10)
	}
}

// leaver is a client that leaves after its first piece of the answer.
type leaver struct {
	*httptest.ResponseRecorder
	writes int
}

func (l *leaver) Write(b []byte) (int, error) {
	if l.writes++; l.writes > 1 {
		return 0, errors.New("broken pipe")
	}
	return len(b), nil
}

// TestClientLeaves holds that an answer stops with its client, as one that broke
// off.
func TestClientLeaves(t *testing.T) {
	s := newSite(t)
	s.recordPage(bytes.Repeat([]byte("b"), bodySize))
	h := s.handler()
	l := &leaver{ResponseRecorder: httptest.NewRecorder()}
	defer func() {
		if reason, _ := recover().(error); !errors.Is(reason, http.ErrAbortHandler) {
			t.Errorf("the answer ended with %v, want http.ErrAbortHandler", reason)
		}
		if l.writes != 2 {
			t.Errorf("%d pieces were written, want none after the one that failed", l.writes)
		}
	}()
	_ = h.ServeHTTP(l, newCall("POST", bulk, askPage), nil)
}
