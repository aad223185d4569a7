// Package export sends records to an OpenTelemetry collector, as spans of its
// GenAI conventions, without delaying traffic.
package export

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/metric"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// Spans counts what became of the records of each store. It lives as long as the
// process, so that it survives reloads.
var Spans = metric.NewCounters("weir_export_spans_total",
	"Records for OpenTelemetry collectors, by what became of them.", "store", "result")

// The results of a record.
var (
	sent    = metric.Constant("sent")
	dropped = metric.Constant("dropped") // the queue was full
	failed  = metric.Constant("failed")  // the collector did not take it
	erased  = metric.Constant("erased")  // somebody erased it while it waited
)

// Bounds of what waits for the collector; beyond them records are dropped.
const (
	maxQueue   = 4096     // records
	maxBytes   = 64 << 20 // bytes of content
	maxBatch   = 512      // records in a request
	maxRequest = 8 << 20  // bytes of content in a request of several records, of 16 MiB or so that collectors take
)

// delay is how long a record waits for others to go with it.
const delay = time.Second

// How often, and for how long, a batch is tried again which the collector could
// not be given.
const (
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
	maxRetries = time.Minute
)

// timeout bounds a request, as OpenTelemetry's exporters do by default.
const timeout = 10 * time.Second

// busyError is the answer of a collector that asks to be tried again.
type busyError struct {
	status string
	after  time.Duration // to wait at least, 0 if the collector does not say
}

func (e *busyError) Error() string { return "the collector answered " + e.status }

// transport returns a busyError for the answers after which OTLP lets a client try again.
// https://opentelemetry.io/docs/specs/otlp/#retryable-response-codes
type transport struct{}

func (transport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		resp.Body.Close()
		return nil, &busyError{resp.Status, plugins.RetryAfter(resp.Header)}
	}
	return resp, nil
}

// Options say where records go.
type Options struct {
	// Store is the label under which they are counted.
	Store metric.Label
	// Endpoint is the URL to post to.
	Endpoint string
	// Headers go with each request: credentials, usually.
	Headers map[string]string
	// Content adds requests and answers to the spans, where these are kept.
	Content bool
	// Erased is what was erased of a record while it waited, nil if nothing is ever erased.
	Erased func(storage.RecordKey) storage.ErasureScope
	// Logger logs when the collector stops taking spans, and when it takes them again.
	Logger *zap.Logger
}

// Exporter has a queue, and one goroutine that sends what is in it.
type Exporter struct {
	options Options
	client  otlptrace.Client
	cancel  context.CancelFunc
	wake    chan struct{} // has an element when there may be something to do
	closing chan struct{} // closed by Close
	done    chan struct{} // closed when nothing more is sent

	mu     sync.Mutex // guards the fields below
	queue  []*item
	bytes  int
	closed bool
}

// item is a record in the queue, with the content to send.
type item struct {
	record  storage.Record
	content storage.Content
}

func (i *item) size() int { return len(i.content.Request.Data) + len(i.content.Response.Data) }

// New starts an exporter. It connects to nothing before there is a record.
func New(o Options) *Exporter {
	ctx, cancel := context.WithCancel(context.Background())
	e := &Exporter{
		options: o, cancel: cancel,
		client: otlptracehttp.NewClient(
			otlptracehttp.WithEndpointURL(o.Endpoint),
			otlptracehttp.WithHeaders(o.Headers),
			otlptracehttp.WithCompression(otlptracehttp.GzipCompression),
			otlptracehttp.WithRetry(otlptracehttp.RetryConfig{}), // it would send what is erased meanwhile
			otlptracehttp.WithHTTPClient(&http.Client{Transport: transport{}, Timeout: timeout}),
		),
		wake: make(chan struct{}, 1), closing: make(chan struct{}), done: make(chan struct{}),
	}
	go e.run(ctx)
	return e
}

// Export takes a record whose call is over. It never waits; r and c are the
// caller's again when it returns.
func (e *Exporter) Export(r *storage.Record, c *storage.Content) {
	i := &item{record: *r}
	if e.options.Content {
		i.content.Request = storage.Body{Type: c.Request.Type, Data: bytes.Clone(c.Request.Data)}
		i.content.Response = storage.Body{Type: c.Response.Type, Data: bytes.Clone(c.Response.Data)}
	}
	e.mu.Lock()
	full := e.closed || len(e.queue) >= maxQueue || e.bytes+i.size() > maxBytes
	if !full {
		e.queue = append(e.queue, i)
		e.bytes += i.size()
	}
	e.mu.Unlock()
	if full {
		e.count(dropped, 1)
		return
	}
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Close sends what waits, until ctx ends.
func (e *Exporter) Close(ctx context.Context) {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	close(e.closing)
	select {
	case <-e.done:
	case <-ctx.Done():
		e.cancel()
		<-e.done
	}
	e.cancel()
	_ = e.client.Stop(ctx) // nothing is under way
}

func (e *Exporter) run(ctx context.Context) {
	defer close(e.done)
	failing := false
	for closing := false; !closing; {
		select {
		case <-e.wake:
			e.gather()
		case <-e.closing:
		}
		select {
		case <-e.closing: // nothing is added from here on
			closing = true
		default:
		}
		for batch := e.take(); len(batch) > 0; batch = e.take() {
			err := e.send(ctx, batch)
			if failing != (err != nil) {
				if failing = err != nil; failing {
					e.options.Logger.Error("the collector takes no spans: records are not exported, and counted, until it does",
						zap.Stringer("store", e.options.Store), zap.String("endpoint", e.options.Endpoint), zap.Error(err))
				} else {
					e.options.Logger.Info("the collector takes spans again", zap.Stringer("store", e.options.Store))
				}
			}
		}
	}
}

// gather waits for more records to go with the first.
func (e *Exporter) gather() {
	for late := time.After(delay); ; {
		select {
		case <-late:
			return
		case <-e.closing:
			return
		case <-e.wake:
			e.mu.Lock()
			enough := len(e.queue) >= maxBatch
			e.mu.Unlock()
			if enough {
				return
			}
		}
	}
}

func (e *Exporter) take() []*item {
	e.mu.Lock()
	defer e.mu.Unlock()
	n, size := 0, 0
	for n < min(len(e.queue), maxBatch) && (n == 0 || size+e.queue[n].size() <= maxRequest) {
		size += e.queue[n].size()
		n++
	}
	batch := e.queue[:n:n]
	if e.queue = e.queue[n:]; len(e.queue) == 0 {
		e.queue = nil
	}
	e.bytes -= size
	return batch
}

// erase removes from a batch what was erased meanwhile.
func (e *Exporter) erase(batch []*item) []*item {
	if e.options.Erased == nil {
		return batch
	}
	left := slices.DeleteFunc(batch, func(i *item) bool {
		scope := e.options.Erased(i.record.Key())
		if scope > 0 {
			i.record, i.content = *i.record.Erased(scope), storage.Content{}
		}
		return scope == storage.EraseRecord
	})
	e.count(erased, len(batch)-len(left))
	return left
}

// send gives the collector a batch. It tries again if the collector cannot be reached, or asks for
// that. What was erased since the last try is not sent again.
func (e *Exporter) send(ctx context.Context, batch []*item) error {
	begun := time.Now()
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		if batch = e.erase(batch); len(batch) == 0 {
			return nil
		}
		err := e.client.UploadTraces(ctx, []*tracepb.ResourceSpans{resourceSpans(batch)})
		if err == nil {
			e.count(sent, len(batch))
			return nil
		}
		pause, closing := wait, e.closing
		busy, ok := errors.AsType[*busyError](err)
		if ok { // it is there: an end waits for it
			pause, closing = max(wait, busy.after), nil
		}
		if _, again := errors.AsType[*url.Error](err); !again || time.Since(begun)+pause > maxRetries || !sleep(ctx, pause, closing) {
			e.count(failed, len(batch))
			return err
		}
	}
}

// sleep waits before another try. It returns false if ctx has ended, or closing was closed before.
func sleep(ctx context.Context, wait time.Duration, closing <-chan struct{}) bool {
	select {
	case <-closing:
		return false
	default:
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(wait):
	case <-closing: // once more, at once
	}
	return true
}

func (e *Exporter) count(result metric.Label, n int) {
	Spans.With(e.options.Store, result).Add(float64(n))
}
