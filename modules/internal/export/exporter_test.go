package export

import (
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus/testutil"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir/internal/metric"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// collector is what spans are sent to.
type collector struct {
	*httptest.Server
	mu    sync.Mutex
	spans []*tracepb.Span
	head  http.Header
	raw   []byte

	gate   chan struct{} // each request takes an element, nil lets all pass
	status int           // of answers; 0 is 200
	most   int           // bytes of a request; 0 is any number
}

func newCollector(t *testing.T) *collector {
	c := new(collector)
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c.gate != nil {
		select {
		case <-c.gate:
		case <-r.Context().Done():
			return
		}
	}
	if c.status != 0 {
		w.WriteHeader(c.status)
		return
	}
	body, err := gzip.NewReader(r.Body)
	if err != nil {
		w.WriteHeader(400)
		return
	}
	raw, _ := io.ReadAll(body)
	if c.most > 0 && len(raw) > c.most {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	request := new(collectorpb.ExportTraceServiceRequest)
	if r.URL.Path != "/v1/traces" || proto.Unmarshal(raw, request) != nil {
		w.WriteHeader(400)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.head, c.raw = r.Header.Clone(), append(c.raw, raw...)
	c.spans = append(c.spans, request.ResourceSpans[0].ScopeSpans[0].Spans...)
}

func (c *collector) received() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.spans)
}

// start starts an exporter to a collector, and returns what counts.
func start(t *testing.T, endpoint string, content bool) (*Exporter, func(result metric.Label) int) {
	names := make(metric.Set)
	names.Add(t.Name())
	store := names.Of(t.Name())
	e := New(Options{
		Store: store, Endpoint: endpoint + "/v1/traces", Headers: map[string]string{"Authorization": "Bearer key"},
		Content: content, Logger: zap.NewNop(),
	})
	return e, func(result metric.Label) int {
		return int(testutil.ToFloat64(Spans.With(store, result)))
	}
}

func record() *storage.Record {
	return &storage.Record{
		ID: uuid.Must(uuid.NewV7()), Org: "acme", CreatedAt: 1_790_000_000_000, Latency: plugins.KnownDuration(1200 * time.Millisecond), Status: plugins.Known(200),
		TraceID: "0af7651916cd43dd8448eb211c80319c", SpanID: "b7ad6b7169203331",
		Provider: "bedrock", Dialect: plugins.Chat, RequestModel: "m", UserID: "a\xff",
		Usage: plugins.Usage{Input: plugins.Known(3), Output: plugins.Known(5)},
	}
}

func content() *storage.Content {
	return &storage.Content{
		Request:  storage.Body{Type: "application/json", Data: []byte(`{"messages":[{"role":"user","content":"canary-in"}]}`)},
		Response: storage.Body{Type: "text/event-stream", Data: []byte(`data: {"choices":[{"index":0,"delta":{"content":"canary-out"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n")},
	}
}

func shut(e *Exporter, d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	e.Close(ctx)
}

// TestClose: what waits is sent before the end, with the credentials, and
// content only where it was asked for.
func TestClose(t *testing.T) {
	for name, withContent := range map[string]bool{"metrics": false, "content": true} {
		t.Run(name, func(t *testing.T) {
			c := newCollector(t)
			e, count := start(t, c.URL, withContent)
			said := content()
			for range 1000 {
				e.Export(record(), said)
			}
			for i := range said.Request.Data { // it is the caller's again
				said.Request.Data[i] = 'x'
			}
			shut(e, 10*time.Second)
			if c.received() != 1000 || count(sent) != 1000 {
				t.Fatalf("%d received, %d sent", c.received(), count(sent))
			}
			if got := c.head.Get("Authorization"); got != "Bearer key" {
				t.Errorf("Authorization %q", got)
			}
			raw := string(c.raw)
			if in, out := strings.Contains(raw, "canary-in"), strings.Contains(raw, "canary-out"); in != withContent || out != withContent {
				t.Errorf("content: %t, %t", in, out)
			}
			s := c.spans[0]
			if s.Name != "chat m" || s.EndTimeUnixNano-s.StartTimeUnixNano != 1_200_000_000 ||
				[16]byte(s.TraceId) != [16]byte{0x0a, 0xf7, 0x65, 0x19, 0x16, 0xcd, 0x43, 0xdd, 0x84, 0x48, 0xeb, 0x21, 0x1c, 0x80, 0x31, 0x9c} ||
				[8]byte(s.ParentSpanId) != [8]byte{0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31} || len(s.SpanId) != 8 {
				t.Errorf("%v", s)
			}
			e.Export(record(), said)
			if count(dropped) != 1 {
				t.Error("what comes after the end is not counted")
			}
		})
	}
}

// TestBehind: a collector that hangs makes nobody wait, and what does not fit is
// counted.
func TestBehind(t *testing.T) {
	c := newCollector(t)
	c.gate = make(chan struct{})
	e, count := start(t, c.URL, true)
	began := time.Now()
	const all = 3 * maxQueue
	for range all {
		e.Export(record(), content())
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("%d records took %s", all, took)
	}
	close(c.gate)
	shut(e, time.Minute)
	if count(sent)+count(dropped) != all || count(dropped) < maxQueue {
		t.Errorf("%d sent, %d dropped", count(sent), count(dropped))
	}
	big := content()
	big.Request.Data = make([]byte, maxBytes/2+1)
	e, _ = start(t, "http://127.0.0.1:1", true)
	before := count(dropped)
	e.Export(record(), big)
	e.Export(record(), big)
	if count(dropped) != before+1 {
		t.Error("content is not bounded")
	}
	shut(e, time.Millisecond)
}

// TestAgain: a collector that comes up late gets everything.
func TestAgain(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	e, count := start(t, "http://"+address, false)
	e.Export(record(), content())
	time.Sleep(delay + firstRetry/2)

	if listener, err = net.Listen("tcp", address); err != nil {
		t.Skipf("the port is taken: %v", err)
	}
	c := &collector{}
	server := &http.Server{Handler: c}
	go server.Serve(listener)
	defer server.Close()
	for end := time.Now().Add(10 * time.Second); c.received() == 0 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	shut(e, time.Second)
	if c.received() != 1 || count(sent) != 1 {
		t.Errorf("%d received, %d sent", c.received(), count(sent))
	}
}

// TestErased: what is erased while it waits is not sent.
func TestErased(t *testing.T) {
	c := newCollector(t)
	e, count := start(t, c.URL, true)
	records := []*storage.Record{record(), record(), record(), record()} // the first is not erased
	scopes := make(map[storage.RecordKey]storage.ErasureScope)
	for i, r := range records {
		r.UserID = "user-" + strconv.Itoa(i)
		scopes[r.Key()] = storage.ErasureScope(i)
	}
	e.options.Erased = func(key storage.RecordKey) storage.ErasureScope { return scopes[key] }
	for _, r := range records {
		e.Export(r, content())
	}
	shut(e, 10*time.Second)
	if c.received() != 3 || count(sent) != 3 || count(erased) != 1 {
		t.Errorf("%d received, %d sent, %d erased", c.received(), count(sent), count(erased))
	}
	for text, want := range map[string]int{"canary-in": 1, "canary-out": 1, "user-0": 1, "user-1": 1, "user-2": 0, "user-3": 0} {
		if got := strings.Count(string(c.raw), text); got != want {
			t.Errorf("the collector has %s %d times, want %d", text, got, want)
		}
	}
}

// TestErasedWhileItIsTriedAgain: what is erased while the collector is busy is not sent once it is free.
func TestErasedWhileItIsTriedAgain(t *testing.T) {
	c := newCollector(t)
	erase := make(chan struct{})
	c.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-erase:
			c.ServeHTTP(w, r)
		default:
			close(erase)
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	e, count := start(t, c.URL, true)
	gone, stays := record(), record()
	e.options.Erased = func(key storage.RecordKey) storage.ErasureScope {
		select {
		case <-erase:
			if key == gone.Key() {
				return storage.EraseRecord
			}
		default:
		}
		return 0
	}
	e.Export(gone, content())
	e.Export(stays, content())
	shut(e, 10*time.Second)
	if c.received() != 1 || count(sent) != 1 || count(erased) != 1 || strings.Count(string(c.raw), "canary-in") != 1 {
		t.Errorf("%d received, %d sent, %d erased", c.received(), count(sent), count(erased))
	}
}

// TestLast: a record that comes right before the end, when the queue was just
// found empty, is sent.
func TestLast(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // whoever waits for the lock takes turns
	c := newCollector(t)
	c.gate = make(chan struct{})
	e, count := start(t, c.URL, false)
	before := count(sent)
	for range maxBatch {
		e.Export(record(), content())
	}
	c.gate <- struct{}{}
	e.mu.Lock()
	time.Sleep(50 * time.Millisecond) // the answer comes, and the exporter looks for more
	go e.Export(record(), content())
	time.Sleep(10 * time.Millisecond)
	go shut(e, 10*time.Second)
	time.Sleep(10 * time.Millisecond)
	e.mu.Unlock()
	e.mu.Lock()
	time.Sleep(10 * time.Millisecond)
	e.mu.Unlock()
	close(c.gate)
	<-e.done
	if n := count(sent) - before; n != maxBatch+1 {
		t.Errorf("%d of %d sent", n, maxBatch+1)
	}
}

// TestLargeContent: no request is longer than collectors take, unless one record
// is.
func TestLargeContent(t *testing.T) {
	c := newCollector(t)
	c.most = 10 << 20
	e, count := start(t, c.URL, true)
	before := count(sent)
	said := content()
	said.Request.Data = []byte(`{"messages":[{"role":"user","content":"` + strings.Repeat("x", 3<<20) + `"}]}`)
	for range 5 {
		e.Export(record(), said)
	}
	shut(e, 20*time.Second)
	if n := count(sent) - before; n != 5 || count(failed) != 0 {
		t.Errorf("%d sent, %d failed", n, count(failed))
	}
}

// TestRefused: what a collector does not want is not sent again, and an end does
// not wait for one that is down.
func TestRefused(t *testing.T) {
	c := newCollector(t)
	c.status = http.StatusBadRequest
	e, count := start(t, c.URL, false)
	e.Export(record(), content())
	shut(e, 5*time.Second)
	if count(failed) != 1 {
		t.Errorf("%d failed", count(failed))
	}

	e, _ = start(t, "http://127.0.0.1:1", false)
	e.Export(record(), content())
	began := time.Now()
	shut(e, 200*time.Millisecond)
	if took := time.Since(began); took > 2*time.Second || count(failed) != 2 {
		t.Errorf("%s, %d failed", took, count(failed))
	}
}
