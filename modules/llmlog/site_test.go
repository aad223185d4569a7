package llmlog

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/google/uuid"

	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/encode"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/encode/gzip"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/headers"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/logging"
	_ "github.com/caddyserver/caddy/v2/modules/logging"

	"github.com/weirhq/weir/internal/testkit/freeport"
	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/modules/internal/stores/storestest"
	_ "github.com/weirhq/weir/modules/llmencoder"
	_ "github.com/weirhq/weir/modules/llmforward"
	"github.com/weirhq/weir/storage"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // thousands of short calls in a small heap
	m.Run()
}

// site is a running Caddy with the handler in front of something.
type site struct {
	t     *testing.T
	addr  string
	kept  *ledger
	logs  *lockedBuffer
	certs *x509.CertPool

	reload func() error // the same configuration, made anew
	unlock func()
}

// options say how a site differs from llm_log in front of one upstream.
type options struct {
	upstream   string            // host:port for llm_forward
	handler    caddyhttp.Handler // instead of an upstream
	config     map[string]any    // of llm_log; nil leaves the handler out
	transport  map[string]any    // of llm_forward
	flush      bool              // llm_forward flushes each write
	before     []map[string]any  // handlers in front
	app        map[string]any    // of the app llm
	accessLogs bool
	encoder    string // of the logs; default json
	tls        bool
}

type object = map[string]any

// serve starts a site. Only one runs at a time.
func serve(t *testing.T, o options) *site {
	t.Helper()
	s := &site{t: t, kept: newLedger(), logs: new(lockedBuffer)}
	current.Lock()
	s.unlock = sync.OnceFunc(current.Unlock)
	t.Cleanup(s.unlock)
	current.kept, current.logs, current.handler = s.kept, s.logs, o.handler

	handlers := append([]object(nil), o.before...)
	if o.config != nil {
		config := object{"handler": "llm_log_test"}
		for k, v := range o.config {
			config[k] = v
		}
		handlers = append(handlers, config)
	}
	if o.handler != nil {
		handlers = append(handlers, object{"handler": "llm_test_func"})
	} else {
		transport := object{"protocol": "llm", "compression": false} // as llm_proxy has it
		for k, v := range o.transport {
			transport[k] = v
		}
		proxy := object{
			"handler": "llm_forward", "transport": transport,
			"upstreams": []object{{"dial": o.upstream}},
			"headers": object{"request": object{ // as llm_proxy has them, too
				"set": object{"Host": []string{o.upstream}}, "delete": []string{"Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"},
			}},
		}
		if o.flush {
			proxy["flush_interval"] = -1
		}
		handlers = append(handlers, proxy)
	}

	s.addr = "127.0.0.1:0" // which stays the same listener over reloads
	if o.tls {             // HTTP/3 has to have the number of TCP's port
		s.addr = freeport.Address(t)
	}
	server := object{
		"listen": []string{s.addr}, "automatic_https": object{"disable": true},
		"protocols": []string{"h1"},
		"routes":    []object{{"handle": handlers}},
	}
	if o.accessLogs {
		server["logs"] = object{}
	}
	app := object{"stores": object{
		"default": object{"storage": object{"backend": "test_null", "dir": t.TempDir()}},
		"eu":      object{"storage": object{"backend": "test_null", "dir": t.TempDir()}},
	}}
	for k, v := range o.app {
		app[k] = v
	}
	apps := object{"http": object{"grace_period": int64(time.Second), "servers": object{"s": server}}, "llm": app}
	if o.tls {
		cert, key := certificate(t)
		s.certs = x509.NewCertPool()
		s.certs.AppendCertsFromPEM(cert)
		server["protocols"] = []string{"h1", "h2", "h3"}
		server["tls_connection_policies"] = []object{{}}
		apps["tls"] = object{"certificates": object{"load_pem": []object{{"certificate": string(cert), "key": string(key)}}}}
	}
	config, err := json.Marshal(object{
		"admin":   object{"disabled": true, "config": object{"persist": false}},
		"logging": object{"logs": object{"default": object{"level": "DEBUG", "writer": object{"output": "test"}, "encoder": object{"format": cmp.Or(o.encoder, "json")}}}},
		"apps":    apps,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.reload = func() error { return caddy.Load(config, true) }
	if err := s.reload(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { storestest.Stop(t) })
	running, err := caddy.ActiveContext().App("http")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = running.(*caddyhttp.App).Servers["s"].Listeners()[0].Addr().String()
	return s
}

type handlerFunc = caddyhttp.HandlerFunc

// stop ends the site before the test does.
func stop(t *testing.T, s *site) {
	t.Helper()
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	s.unlock()
}

// url is an address on the site.
func (s *site) url(path string) string {
	if s.certs != nil {
		return "https://" + s.addr + path
	}
	return "http://" + s.addr + path
}

// client speaks HTTP/1.1 as it is written, without an Accept-Encoding of its
// own.
func (s *site) client() *http.Client {
	transport := &http.Transport{DisableCompression: true, TLSClientConfig: &tls.Config{RootCAs: s.certs}}
	s.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// do sends a request and reads the whole answer.
func (s *site) do(method, path, body string, header ...string) (*http.Response, string) {
	s.t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r, err := http.NewRequest(method, s.url(path), reader)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	resp, err := s.client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp, string(answer)
}

// current is what the modules below find of the site that is being started.
var current struct {
	sync.Mutex
	kept    *ledger
	logs    *lockedBuffer
	handler caddyhttp.Handler
}

func init() {
	caddy.RegisterModule(new(testHandler))
	caddy.RegisterModule(new(testFunc))
	caddy.RegisterModule(new(nullStorage))
	caddy.RegisterModule(new(testWriter))
}

// testHandler is the handler with a ledger in place of a journal.
type testHandler struct{ Handler }

func (*testHandler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.llm_log_test", New: func() caddy.Module { return new(testHandler) }}
}

func (h *testHandler) Provision(ctx caddy.Context) error {
	if err := h.Handler.Provision(ctx); err != nil {
		return err
	}
	kept := current.kept
	h.site.Open = func(context.CancelFunc) (recording.Recorder, func(), error) {
		if kept.openErr != nil {
			return nil, nil, kept.openErr
		}
		kept.count(+1)
		return kept, func() { kept.count(-1) }, nil
	}
	return nil
}

// testFunc is a handler that the test provides.
type testFunc struct{ next caddyhttp.Handler }

func (*testFunc) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.llm_test_func", New: func() caddy.Module { return new(testFunc) }}
}

func (f *testFunc) Provision(caddy.Context) error { f.next = current.handler; return nil }

func (f *testFunc) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	return f.next.ServeHTTP(w, r)
}

// nullStorage is a backend that keeps nothing.
type nullStorage struct {
	Path string `json:"dir"`
}

func (*nullStorage) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "llm.storage.test_null", New: func() caddy.Module { return new(nullStorage) }}
}

func (n *nullStorage) Key() string            { return n.Path }
func (n *nullStorage) Dir() string            { return n.Path }
func (*nullStorage) Backend() storage.Backend { return nullBackend{} }

type nullBackend struct{ storage.Backend }

func (nullBackend) Open(_ context.Context, h *storage.Host) (storage.Position, error) {
	return h.Position, nil
}
func (nullBackend) Limits() storage.Limits { return storage.Limits{} }
func (nullBackend) Request(context.Context, storage.RecordKey) (*storage.Record, error) {
	return nil, storage.ErrNotFound
}
func (nullBackend) Write(context.Context, *storage.Batch) error            { return nil }
func (nullBackend) Prune(context.Context, storage.Timestamp) (bool, error) { return false, nil }
func (nullBackend) Close() error                                           { return nil }

// testWriter collects the log.
type testWriter struct{}

func (*testWriter) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.logging.writers.test", New: func() caddy.Module { return new(testWriter) }}
}
func (*testWriter) String() string    { return "test" }
func (*testWriter) WriterKey() string { return uuid.NewString() }
func (*testWriter) OpenWriter() (io.WriteCloser, error) {
	return current.logs, nil
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}
func (l *lockedBuffer) Close() error { return nil }
func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// ledger is a recorder that remembers what it was given.
type ledger struct {
	amended []storage.Record
	mu      sync.Mutex
	entries []entry
	claimed map[storage.RecordKey]bool
	begun   int           // exchanges
	flying  int           // those in flight
	counted int           // those that have a record
	gate    chan struct{} // Append waits for it, if there is one
	entered chan struct{} // tells that it does
	openErr error
	delay   time.Duration // from what Response finds to its answer
}

type entry struct {
	storage.Record
	storage.Content
}

func newLedger() *ledger {
	return &ledger{claimed: make(map[storage.RecordKey]bool), entered: make(chan struct{}, 10)}
}

func (l *ledger) Append(r *storage.Record, k *storage.Kept) error {
	if l.gate != nil {
		l.entered <- struct{}{}
		<-l.gate
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Number > 0 {
		l.counted++
		r.Number = 0
	}
	if k == nil { // an amendment, whose content stays
		l.amended = append(l.amended, *r)
		for i := range l.entries {
			if l.entries[i].ID == r.ID {
				l.entries[i].Record = *r
			}
		}
		return nil
	}
	c := k.Content(r)
	kept := entry{*r, *c}
	kept.Request.Data = bytes.Clone(c.Request.Data)
	kept.Response.Data = bytes.Clone(c.Response.Data)
	l.entries = append(l.entries, kept)
	return nil
}

func (l *ledger) Begin(r *storage.Record) { r.Number = 1 }
func (*ledger) Abandon(*storage.Record)   {}

func (l *ledger) Claim(_ context.Context, key storage.RecordKey) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	free := !l.claimed[key]
	l.claimed[key] = true
	return free
}

func (l *ledger) Release(storage.RecordKey) {}

func (l *ledger) Known(_ context.Context, key storage.RecordKey) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.entries, func(e entry) bool { return e.Key() == key }), nil
}

func (l *ledger) Response(_ context.Context, org, id string) (*storage.Record, error) {
	defer time.Sleep(l.delay)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range slices.Backward(l.entries) {
		if e.ResponseID == id && e.Org == org && slices.Contains(storage.Polled, e.Dialect) {
			return &e.Record, nil
		}
	}
	return nil, storage.ErrNotFound
}

func (l *ledger) count(change int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flying += change
	l.begun += max(0, change)
}

// ended reports whether something began and everything that did has ended.
func (l *ledger) ended() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.begun > 0 && l.flying == 0
}

// appended counts what stands in the ledger now.
func (l *ledger) appended() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.entries)
}

// record waits for the exchanges to end and returns the newest version of the
// one record that there must be.
func (s *site) record() entry {
	s.t.Helper()
	for limit := time.Now().Add(10 * time.Second); !s.kept.ended(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			s.t.Fatal("an exchange does not end")
		}
	}
	s.kept.mu.Lock()
	defer s.kept.mu.Unlock()
	if len(s.kept.entries) == 0 {
		s.t.Fatal("there is no record")
	}
	if s.kept.counted != s.kept.begun {
		s.t.Errorf("%d exchanges began, and %d have a record", s.kept.begun, s.kept.counted)
	}
	last := s.kept.entries[len(s.kept.entries)-1]
	for _, e := range s.kept.entries {
		if e.ID != last.ID {
			s.t.Fatal("there is more than one record")
		}
	}
	return last
}

func certificate(t *testing.T) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
}
