package llmlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

const chatPath = "/v1/chat/completions"

// event is a server-sent event of a chat completion.
func event(data string) string { return "data: " + data + "\n\n" }

var (
	deltaEvent  = event(`{"id":"c1","object":"chat.completion.chunk","model":"gpt-4o-2024-08-06","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}`)
	finishEvent = event(`{"id":"c1","object":"chat.completion.chunk","model":"gpt-4o-2024-08-06","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)
	usageEvent  = event(`{"id":"c1","object":"chat.completion.chunk","model":"gpt-4o-2024-08-06","choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18}}`)
	doneEvent   = event("[DONE]")
)

// An upstream that writes its pieces one by one and then does what ends says.
func streaming(pieces []string, ends func(w http.ResponseWriter, r *http.Request)) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for _, p := range pieces {
			io.WriteString(w, p)
			w.(http.Flusher).Flush()
		}
		if ends != nil {
			ends(w, r)
		}
	}))
}

func TestEndStates(t *testing.T) {
	hangUp := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	wait := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

	for _, c := range []struct {
		name   string
		pieces []string
		ends   func(http.ResponseWriter, *http.Request)
		leave  string // the client leaves once it has read this
		state  storage.EndState
	}{
		{"error in a line of its own", []string{deltaEvent, "error: {\"code\":500,\"message\":\"x\"}\n\n"}, nil, "", storage.UpstreamAborted},
		{"error in an event", []string{deltaEvent, event(`{"error":{"message":"x","type":"server_error"}}`)}, nil, "", storage.UpstreamAborted},
		{"whole stream", []string{deltaEvent, finishEvent, doneEvent}, nil, "", storage.Complete},
		{"provider breaks off", []string{deltaEvent}, hangUp, "", storage.UpstreamAborted},
		{"client leaves", []string{deltaEvent}, wait, deltaEvent, storage.ClientAborted},
		{"client leaves at the terminal event", []string{deltaEvent, finishEvent, doneEvent}, wait, doneEvent, storage.Complete},
		{"provider breaks off after the terminal event", []string{deltaEvent, finishEvent, doneEvent}, hangUp, "", storage.Complete},
	} {
		for _, setting := range []struct {
			protocol string
			logs     bool
		}{{"h1", false}, {"h1", true}, {"h2", true}, {"h3", true}} {
			t.Run(fmt.Sprintf("%s %s logs %v", c.name, setting.protocol, setting.logs), func(t *testing.T) {
				if setting.protocol == "h3" && h3Races {
					t.Skip("Caddy itself races")
				}
				cancelled := make(chan struct{})
				upstream := streaming(c.pieces, func(w http.ResponseWriter, r *http.Request) {
					defer close(cancelled)
					if c.ends != nil {
						c.ends(w, r)
					}
				})
				defer upstream.Close()
				s := serve(t, options{upstream: upstream.Listener.Addr().String(), accessLogs: setting.logs, tls: true, config: object{}})

				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				r, _ := http.NewRequestWithContext(ctx, "POST", s.url(chatPath), strings.NewReader(`{"model":"gpt-4o","stream":true}`))
				breaks := strings.Contains(c.name, "breaks off")
				resp, err := protocolClient(t, s, setting.protocol).Do(r)
				if err == nil {
					defer resp.Body.Close()
				}
				switch {
				case err != nil && breaks && setting.protocol == "h3":
					// A reset of the stream overtakes what was sent before it.
				case err != nil:
					t.Fatal(err)
				case c.leave != "":
					readUntil(t, resp.Body, c.leave)
					leave()
				default:
					if _, err := io.ReadAll(resp.Body); (err != nil) != breaks {
						t.Errorf("the client reads %v", err)
					}
				}
				<-cancelled // leaving cancels the paid call
				e := s.record()
				if e.EndState != c.state || e.Status.N != 200 {
					t.Errorf("%v, status %d; want %v, 200", e.EndState, e.Status.N, c.state)
				}
				if got, want := string(e.Response.Data), strings.Join(c.pieces, ""); got != want {
					t.Errorf("kept %q, want %q", got, want)
				}
			})
		}
	}
}

func readUntil(t *testing.T, r io.Reader, want string) {
	t.Helper()
	var got strings.Builder
	b := make([]byte, 1024)
	for !strings.Contains(got.String(), want) {
		n, err := r.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		got.Write(b[:n])
	}
}

func TestClientLeavesBeforeTheAnswer(t *testing.T) {
	arrived := make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		close(arrived)
		<-r.Context().Done()
	}))
	defer upstream.Close()
	s := serve(t, options{upstream: upstream.Listener.Addr().String(), config: object{}})
	ctx, leave := context.WithCancel(t.Context())
	go func() { <-arrived; leave() }()
	r, _ := http.NewRequestWithContext(ctx, "POST", s.url(chatPath), strings.NewReader(`{"model":"gpt-4o"}`))
	if _, err := s.client().Do(r); err == nil {
		t.Fatal("there is an answer")
	}
	if e := s.record(); e.EndState != storage.ClientAborted || e.Status.N != storage.StatusClientLeft || e.Cost.Valid {
		t.Errorf("%v, status %v, cost %v", e.EndState, e.Status, e.Cost)
	}
}

// Failures are answered in the caller's dialect, and told to nobody else.
func TestUpstreamFailures(t *testing.T) {
	const closed = "127.0.0.1:1" // a port that nobody is given
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer silent.Close()
	slow := object{"response_header_timeout": int64(50 * time.Millisecond)}

	for _, c := range []struct {
		name, upstream, path string
		status               int
		answer               string
	}{
		{"dial", closed, chatPath, 502,
			`{"error":{"message":"The provider's host 127.0.0.1:1 refuses connections.","type":"server_error","param":null,"code":"upstream_unreachable"}}`},
		{"dial", closed, "/v1/messages", 502,
			`{"type":"error","error":{"type":"api_error","message":"The provider's host 127.0.0.1:1 refuses connections.","details":{"error_code":"upstream_unreachable"}}}`},
		{"dial", closed, "/v1beta/models/gemini-2.5-flash:generateContent", 502,
			`{"error":{"code":502,"message":"The provider's host 127.0.0.1:1 refuses connections.","status":"UNAVAILABLE"}}`},
		{"timeout", silent.Listener.Addr().String(), chatPath, 504,
			`{"error":{"message":"The provider's host ` + silent.Listener.Addr().String() + ` did not answer in time.","type":"server_error","param":null,"code":"upstream_timeout"}}`},
	} {
		t.Run(c.name+c.path, func(t *testing.T) {
			s := serve(t, options{upstream: c.upstream, transport: slow, accessLogs: true, config: object{}})
			resp, answer := s.do("POST", c.path, `{"model":"m"}`, "X-Api-Key", "sk-canary")
			if resp.StatusCode != c.status || answer != c.answer {
				t.Errorf("%d %s", resp.StatusCode, answer)
			}
			if ct := resp.Header.Get("Content-Type"); ct != "application/json" {
				t.Errorf("content type %s", ct)
			}
			e := s.record()
			if e.EndState != storage.Failed || e.Status.N != int64(c.status) || resp.Header.Get("Service-Id") != e.ID.String() {
				t.Errorf("%v, status %v", e.EndState, e.Status)
			}
			if string(e.Content.Request.Data) != `{"model":"m"}` || string(e.Content.Response.Data) != answer || e.RequestModel != "m" && c.path == chatPath {
				t.Errorf("the record has the model %q, the request %s, the answer %s", e.RequestModel, e.Content.Request.Data, e.Content.Response.Data)
			}
			for _, line := range strings.Split(s.logs.String(), "\n") {
				if gjson.Get(line, "logger").String() == "http.handlers.llm_log_test" && strings.Contains(line, "canary") {
					t.Errorf("a credential is logged: %s", line)
				}
			}
		})
	}
}

func TestErrorsPass(t *testing.T) {
	refused := caddyhttp.Error(http.StatusServiceUnavailable, errors.New("no"))
	s := serve(t, options{config: object{"errors": "pass"}, handler: handlerFunc(func(http.ResponseWriter, *http.Request) error { return refused })})
	resp, answer := s.do("POST", chatPath, `{}`)
	if resp.StatusCode != http.StatusServiceUnavailable || answer != "" || resp.Header.Get("Service-Id") == "" {
		t.Errorf("%d %q %v", resp.StatusCode, answer, resp.Header)
	}
	if e := s.record(); e.EndState != storage.Failed || e.Status.N != http.StatusServiceUnavailable {
		t.Errorf("%v, status %v", e.EndState, e.Status)
	}
}

// A panic cuts the answer off for the client too.
func TestPanicPasses(t *testing.T) {
	s := serve(t, options{config: object{}, handler: handlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
		io.WriteString(w, "part")
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})})
	resp, err := s.client().Get(s.url(chatPath))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the client takes a part for the whole")
	}
	if e := s.record(); e.EndState != storage.UpstreamAborted || e.ResponseBytes != 4 {
		t.Errorf("%v, %d bytes", e.EndState, e.ResponseBytes)
	}
}

// Over HTTP/2 and 3 a WebSocket is a CONNECT with a body in both directions.
func TestExtendedConnect(t *testing.T) {
	s := serve(t, options{config: object{}, handler: handlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		w.WriteHeader(http.StatusOK)
		_, err := io.Copy(w, r.Body)
		return err
	})})
	resp, back := s.do("CONNECT", "/v1/realtime", "canary")
	if resp.StatusCode != 200 || back != "canary" {
		t.Fatalf("%d %q", resp.StatusCode, back)
	}
	e := s.record()
	if e.Status.N != 101 || e.EndState != storage.Complete || e.RequestBytes != 6 || e.ResponseBytes != 6 {
		t.Errorf("status %v, %v, %d bytes in, %d out", e.Status, e.EndState, e.RequestBytes, e.ResponseBytes)
	}
	if e.Request.Data != nil || e.Response.Data != nil {
		t.Errorf("kept %q, %q", e.Request.Data, e.Response.Data)
	}
}

// A reload leaves the handler at work until its streams have ended.
func TestReloadWithinAStream(t *testing.T) {
	goOn := make(chan struct{})
	upstream := streaming([]string{deltaEvent}, func(w http.ResponseWriter, _ *http.Request) {
		<-goOn
		io.WriteString(w, finishEvent+usageEvent+doneEvent)
	})
	defer upstream.Close()
	s := serve(t, options{upstream: upstream.Listener.Addr().String(), config: object{}})
	resp, err := s.client().Post(s.url(chatPath), "application/json", strings.NewReader(`{"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	readUntil(t, resp.Body, deltaEvent)
	for range 2 {
		if err := s.reload(); err != nil {
			t.Fatal(err)
		}
	}
	close(goOn)
	if rest, err := io.ReadAll(resp.Body); string(rest) != finishEvent+usageEvent+doneEvent || err != nil {
		t.Errorf("%q, %v", rest, err)
	}
	if e := s.record(); e.EndState != storage.Complete || e.Usage.Total() != plugins.Known(18) {
		t.Errorf("%v, usage %+v", e.EndState, e.Usage)
	}
}
