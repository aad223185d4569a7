package llmlog

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/quic-go/quic-go/http3"
	"golang.org/x/net/websocket"

	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
)

// provider answers in every shape that HTTP has.
func provider() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/length", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "12")
		fmt.Fprint(w, `{"ok": true}`)
	})
	mux.HandleFunc("/chunked", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 5 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			w.(http.Flusher).Flush()
		}
	})
	mux.HandleFunc("/untyped", func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Type"] = nil
		fmt.Fprint(w, "<html>what is this</html>")
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Write(bytes.Repeat([]byte("0123456789abcdef"), 1<<16))
	})
	mux.HandleFunc("/error", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("X-Many", "a")
		w.Header().Add("X-Many", "b")
		w.Header().Set("Retry-After", "3")
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"error":{"type":"rate_limit"}}`)
	})
	mux.HandleFunc("/204", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/304", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Etag", `"x"`)
		w.WriteHeader(http.StatusNotModified)
	})
	mux.HandleFunc("/empty", func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Content-Length", "0") })
	mux.HandleFunc("/redirect", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/length", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/hints", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</a>")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprint(w, "after")
	})
	mux.HandleFunc("/trailers", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Trailer", "X-Announced")
		fmt.Fprint(w, "body")
		w.(http.Flusher).Flush()
		w.Header().Set("X-Announced", "1")
		w.Header().Set(http.TrailerPrefix+"X-Sudden", "2")
	})
	mux.HandleFunc("/gzip", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		fmt.Fprint(z, `{"packed": true}`)
		z.Close()
	})
	mux.HandleFunc("/mirror", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		names := maps.Clone(r.Header)
		for _, own := range []string{"Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
			delete(names, own)
		}
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprintf(w, "%s %s %d %v %v %s", r.Method, r.RequestURI, r.ContentLength, r.TransferEncoding, names, body)
	})
	return mux
}

// What the client can see of an answer.
type sight struct {
	status        int
	header        http.Header
	body          string
	contentLength int64
	trailer       http.Header
	hints         string
}

func look(t *testing.T, client *http.Client, method, url, body string) sight {
	t.Helper()
	var hints string
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r, err := http.NewRequest(method, url, reader)
	if err != nil {
		t.Fatal(err)
	}
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			h.Del("Alt-Svc") // has the port
			hints += fmt.Sprint(code, h)
			return nil
		},
	}))
	r.Header.Set("User-Agent", "test")
	r.Header.Set("X-Api-Key", "k")
	r.Header.Set("Accept-Encoding", "gzip")
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Header.Get("Content-Encoding") == "gzip" && len(answer) > 0 {
		// How encode cuts its blocks depends on how fast the chunks come.
		z, err := gzip.NewReader(bytes.NewReader(answer))
		if err != nil {
			t.Fatal(err)
		}
		if answer, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
	}
	header := resp.Header.Clone()
	delete(header, "Date")
	delete(header, "Alt-Svc")
	delete(header, "Service-Id")
	return sight{resp.StatusCode, header, string(answer), resp.ContentLength, resp.Trailer, hints}
}

func TestClientSeesTheProvider(t *testing.T) {
	upstream := httptest.NewServer(provider())
	defer upstream.Close()
	host := strings.TrimPrefix(upstream.URL, "http://")

	calls := []struct{ method, path, body string }{
		{"GET", "/length", ""}, {"HEAD", "/length", ""}, {"GET", "/chunked", ""}, {"GET", "/untyped", ""},
		{"GET", "/large", ""}, {"GET", "/error", ""}, {"GET", "/204", ""}, {"GET", "/304", ""},
		{"GET", "/empty", ""}, {"GET", "/redirect", ""}, {"GET", "/hints", ""}, {"GET", "/trailers", ""},
		{"GET", "/gzip", ""}, {"POST", "/mirror?a=b&key=secret", `{"model":"m"}`}, {"GET", "/mirror", ""},
	}
	// With this, encode guesses a Content-Type itself.
	encode := object{"handler": "encode", "encodings": object{"gzip": object{}}, "minimum_length": 1}
	for _, setting := range []struct {
		name   string
		logs   bool
		before []object
	}{
		{"plain", false, nil},
		{"access logs", true, nil},
		{"encode", true, []object{encode}},
	} {
		for _, protocol := range []string{"h1", "h2", "h3"} {
			t.Run(setting.name+" "+protocol, func(t *testing.T) {
				if protocol == "h3" && h3Races {
					t.Skip("Caddy itself races")
				}
				views := make([][]sight, 2)
				for i, config := range []object{nil, {}} {
					s := serve(t, options{upstream: host, config: config, before: setting.before, accessLogs: setting.logs, tls: true})
					client := protocolClient(t, s, protocol)
					for _, c := range calls {
						views[i] = append(views[i], look(t, client, c.method, s.url(c.path), c.body))
					}
					if config != nil && s.kept.appended() < len(calls) {
						t.Errorf("%d records of %d calls", s.kept.appended(), len(calls))
					}
					stop(t, s)
				}
				for i, c := range calls {
					if c.path == "/untyped" && setting.before == nil {
						delete(views[0][i].header, "Content-Type") // the server made it up
					}
					if bare, logged := fmt.Sprintf("%+v", views[0][i]), fmt.Sprintf("%+v", views[1][i]); bare != logged {
						t.Errorf("%s %s\n without: %.400s\n with:    %.400s", c.method, c.path, bare, logged)
					}
				}
			})
		}
	}
}

func protocolClient(t *testing.T, s *site, protocol string) *http.Client {
	config := &tls.Config{RootCAs: s.certs}
	if protocol == "h3" {
		transport := &http3.Transport{TLSClientConfig: config, DisableCompression: true}
		t.Cleanup(func() { transport.Close() })
		return &http.Client{Transport: transport, CheckRedirect: noRedirect}
	}
	transport := &http.Transport{TLSClientConfig: config, DisableCompression: true, ForceAttemptHTTP2: protocol == "h2"}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, CheckRedirect: noRedirect}
}

// noRedirect returns redirects as they are.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// The client gets each chunk before the provider sends the next.
func TestChunksDoNotWait(t *testing.T) {
	next := make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: {\"n\":%d}\n\n", i)
			w.(http.Flusher).Flush()
			<-next
		}
	}))
	defer upstream.Close()
	for _, logs := range []bool{false, true} {
		for _, streamUsage := range []bool{false, true} {
			t.Run(fmt.Sprintf("logs %v stream_usage %v", logs, streamUsage), func(t *testing.T) {
				s := serve(t, options{upstream: upstream.Listener.Addr().String(), accessLogs: logs, config: object{"stream_usage": streamUsage}})
				resp, err := s.client().Post(s.url("/v1/chat/completions"), "application/json", strings.NewReader(`{"stream":true}`))
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				b := make([]byte, 100)
				for i := range 3 {
					n, err := resp.Body.Read(b)
					if want := fmt.Sprintf("data: {\"n\":%d}\n\n", i); err != nil || string(b[:n]) != want {
						t.Fatalf("read %q, %v; want %q", b[:n], err, want)
					}
					next <- struct{}{}
				}
			})
		}
	}
}

func TestWebSocket(t *testing.T) {
	upstream := httptest.NewServer(websocket.Handler(func(c *websocket.Conn) {
		io.Copy(c, c)
	}))
	defer upstream.Close()
	for _, logs := range []bool{false, true} {
		t.Run(fmt.Sprintf("logs %v", logs), func(t *testing.T) {
			s := serve(t, options{upstream: upstream.Listener.Addr().String(), accessLogs: logs, config: object{}})
			c, err := websocket.Dial("ws://"+s.addr+"/v1/realtime", "", "http://"+s.addr)
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				websocket.Message.Send(c, "canary")
				var back string
				if err := websocket.Message.Receive(c, &back); err != nil || back != "canary" {
					t.Fatalf("received %q, %v", back, err)
				}
			}
			c.Close()
			e := s.record()
			if e.Status.N != 101 || e.EndState != storage.Complete {
				t.Errorf("status %v, %v", e.Status, e.EndState)
			}
			// A frame of 6 bytes has a header of 2, and a mask of 4 from a client.
			if e.RequestBytes < 3*12 || e.ResponseBytes < 3*8 {
				t.Errorf("%d bytes in, %d out", e.RequestBytes, e.ResponseBytes)
			}
			if e.Request.Data != nil || e.Response.Data != nil {
				t.Error("a body was kept")
			}
		})
	}
}

// A WebSocket ends with the key that opened it.
func TestWebSocketEndsWithItsKey(t *testing.T) {
	upstream := httptest.NewServer(websocket.Handler(func(c *websocket.Conn) { io.Copy(c, c) }))
	defer upstream.Close()
	s := serve(t, options{upstream: upstream.Listener.Addr().String(), config: object{"require_key": true}})
	loaded, err := caddy.ActiveContext().App("llm")
	if err != nil {
		t.Fatal(err)
	}
	store, err := loaded.(*llmapp.App).Store("")
	if err != nil {
		t.Fatal(err)
	}
	log, err := store.Control()
	if err != nil {
		t.Fatal(err)
	}
	org := &control.Organisation{Log: log, Name: stores.DefaultName}
	key, secret, err := org.CreateKey(t.Context(), control.Settings{Name: "k", Scopes: []string{access.ScopeLog}})
	if err != nil {
		t.Fatal(err)
	}
	config, err := websocket.NewConfig("ws://"+s.addr+"/v1/realtime", "http://"+s.addr)
	if err != nil {
		t.Fatal(err)
	}
	config.Header.Set("Service-Auth", "Bearer "+secret)
	c, err := config.DialContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := control.Delete[control.Key](t.Context(), org, key.ID); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	var back string
	if err := websocket.Message.Receive(c, &back); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("received %q, %v; want the end", back, err)
	}
}

// A flush before the first write sends the header, with our own in it.
func TestHeaderGoesOutBeforeTheBody(t *testing.T) {
	body := make(chan struct{})
	s := serve(t, options{config: object{}, handler: handlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Content-Type", "text/event-stream")
		if err := http.NewResponseController(w).Flush(); err != nil {
			return err
		}
		<-body
		fmt.Fprint(w, "data: x\n\n")
		return nil
	})})
	resp, err := s.client().Get(s.url("/"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("Service-Id") == "" {
		t.Error("a flush before the first write loses Service-Id")
	}
	close(body)
	if b, _ := io.ReadAll(resp.Body); string(b) != "data: x\n\n" {
		t.Errorf("%q", b)
	}
}
