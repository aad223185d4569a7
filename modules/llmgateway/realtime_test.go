package llmgateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gobwas/httphead"
	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/capture"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
)

const (
	realtimeCreate  = `{"type":"response.create"}`
	realtimeCreated = `{"type":"response.created","response":{"id":"r1","status":"in_progress","output":[]}}`
	realtimeDone    = `{"type":"response.done","response":{"object":"realtime.response","id":"r1","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_audio","transcript":"hi"}]}],"usage":{"total_tokens":8,"input_tokens":3,"output_tokens":5,"output_token_details":{"audio_tokens":4}}}}`
)

// realtimeEnds are the two ends of a WebSocket that passes through a gateway.
type realtimeEnds struct {
	t                *testing.T
	site             *site
	client, provider net.Conn
	handshake        *http.Request // that the provider got
}

// realtimeProvider accepts WebSockets, whose ends it sends to accepted.
func realtimeProvider(t *testing.T, accepted chan<- realtimeEnds) upstream {
	return func(w http.ResponseWriter, r *http.Request) {
		upgrader := ws.HTTPUpgrader{
			Protocol:  func(p string) bool { return p == "realtime" },
			Negotiate: func(option httphead.Option) (httphead.Option, error) { return option, nil },
		}
		conn, _, _, err := upgrader.Upgrade(r, w)
		if err != nil {
			t.Error(err)
			return
		}
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
		t.Cleanup(func() { conn.Close() })
		accepted <- realtimeEnds{provider: conn, handshake: r}
	}
}

// open opens a WebSocket to a model with the key of an organisation.
func (s *site) open(accepted <-chan realtimeEnds, model, key string, header ...string) *realtimeEnds {
	s.t.Helper()
	fields := http.Header{"Authorization": {"Bearer " + key}}
	for i := 0; i < len(header); i += 2 {
		fields.Set(header[i], header[i+1])
	}
	conn, _, _, err := (&ws.Dialer{Header: ws.HandshakeHeaderHTTP(fields)}).Dial(s.t.Context(), s.realtimeURL(model))
	if err != nil {
		s.t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	s.t.Cleanup(func() { conn.Close() })
	e := <-accepted
	e.t, e.site, e.client = s.t, s, conn
	return &e
}

func (s *site) realtimeURL(model string) string {
	return "ws" + strings.TrimPrefix(s.URL, "http") + realtimePath + "?model=" + model
}

// ask sends messages of the client, answer those of the provider. What arrives must be
// the same bytes.
func (e *realtimeEnds) ask(messages ...string) {
	e.t.Helper()
	for _, m := range messages {
		e.pass(e.client, e.provider, ws.MustCompileFrame(ws.MaskFrame(ws.NewTextFrame([]byte(m)))))
	}
}

func (e *realtimeEnds) answer(messages ...string) {
	e.t.Helper()
	for _, m := range messages {
		e.pass(e.provider, e.client, ws.MustCompileFrame(ws.NewTextFrame([]byte(m))))
	}
}

func (e *realtimeEnds) pass(from io.Writer, to io.Reader, frames []byte) {
	e.t.Helper()
	go func() { _, _ = from.Write(frames) }()
	got := make([]byte, len(frames))
	if _, err := io.ReadFull(to, got); err != nil || !bytes.Equal(got, frames) {
		e.t.Fatalf("%q became %q, %v", frames, got, err)
	}
}

// closed reads the client's end to its close frame, and returns the last event and the
// code.
func (e *realtimeEnds) closed() (event string, code ws.StatusCode) {
	e.t.Helper()
	for {
		data, err := wsutil.ReadServerText(struct {
			io.Reader
			io.Writer
		}{e.client, io.Discard})
		if closed, ok := errors.AsType[wsutil.ClosedError](err); ok {
			return event, closed.Code
		}
		if err != nil {
			e.t.Fatal(err)
		}
		event = string(data)
	}
}

// records are those of the responses, in the order of their beginning, and that of the
// WebSocket, once all have ended.
func (e *realtimeEnds) records() (responses []entry, whole entry) {
	e.t.Helper()
	for limit := time.Now().Add(time.Minute); e.site.kept.open() > 0; time.Sleep(time.Millisecond) { // nothing tells when the handler is done
		if time.Now().After(limit) {
			e.t.Fatal("a WebSocket does not end")
		}
	}
	for _, r := range e.site.kept.all() {
		if r.Status.N == http.StatusSwitchingProtocols {
			whole = r
		} else {
			responses = append(responses, r)
		}
	}
	slices.SortFunc(responses, func(a, b entry) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return responses, whole
}

func TestRealtimePassesAndEachResponseIsRecorded(t *testing.T) {
	accepted := make(chan realtimeEnds, 1)
	s := serve(t, map[string][]upstream{"one": {status(500)}, "raw": {status(503), realtimeProvider(t, accepted)}})
	e := s.open(accepted, "one/m,raw/priced", "k", "Service-User-Id", "ada", "OpenAI-Safety", "canary")
	h := e.handshake
	if h.Header.Get("Authorization") != "Bearer platform-key" || h.URL.String() != "/realtime?model=priced" ||
		h.Header["Service-User-Id"] != nil || h.Header["Openai-Safety"] != nil {
		t.Errorf("the provider got %s %v", h.URL, h.Header)
	}
	e.answer(`{"type":"session.created","session":{"model":"priced-2031"}}`)
	e.ask(`{"type":"session.update","session":{"instructions":"Be brief."}}`, `{"type":"input_audio_buffer.append","audio":"canary"}`, realtimeCreate)
	e.answer(realtimeCreated, `{"type":"response.output_audio.delta","response_id":"r1","delta":"canary"}`)
	if n := len(s.kept.all()); n != 1 { // of the first attempt
		t.Errorf("%d records before the end", n)
	}
	e.answer(realtimeDone)
	if n := len(s.kept.all()); n != 2 {
		t.Errorf("the client sees the end of the response, and there are %d records", n)
	}
	e.client.Close()
	responses, whole := e.records()
	if len(responses) != 2 { // the first attempt, which failed
		t.Fatalf("%d records", len(responses))
	}
	failed, r := responses[0], responses[1]
	if failed.Status != plugins.Known(503) || failed.AttemptOf != whole.ID {
		t.Errorf("the failed attempt: %+v", failed.Record)
	}
	if r.UserID != "ada" || r.Provider != "raw" || r.Account != "raw" || r.Dialect != plugins.Realtime || r.RequestModel != "one/m,raw/priced" || r.ResponseID != "r1" ||
		r.Referrer != "gateway" || r.EndState != storage.Complete || r.Status != plugins.Known(200) || !r.Latency.Valid {
		t.Errorf("the response: %+v", r.Record)
	}
	if r.Usage.Input != plugins.Known(3) || r.Usage.OutputAudio != plugins.Known(4) {
		t.Errorf("usage %+v, cost %v", r.Usage, r.Cost)
	}
	if !strings.Contains(r.request, "Be brief.") || !strings.Contains(r.response, `"hi"`) || strings.Contains(r.request+r.response, "canary") {
		t.Errorf("kept %s, %s", r.request, r.response)
	}
	if whole.EndState != storage.Complete || whole.request != "" || whole.response != "" || whole.Usage != (plugins.Usage{}) || whole.Cost.Valid ||
		whole.RequestBytes < 100 || whole.ResponseBytes < int64(len(realtimeDone)) || whole.ErrorType != "" {
		t.Errorf("the WebSocket: %+v", whole)
	}
}

func TestWhatARealtimeHandshakeMustBe(t *testing.T) {
	s := serve(t, map[string][]upstream{"raw": {status(401)}, "raw2": {says("text no socket")}})
	const upgrade = "Upgrade: websocket"
	for _, c := range []struct {
		path, key, upgrade string
		status             int
		code               string
	}{
		{"?model=raw/priced", "nobody", upgrade, 401, "invalid_api_key"},
		{"?model=raw/priced", "narrow", upgrade, 403, "insufficient_scope"},
		{"", "k", upgrade, 400, "missing_required_parameter"},
		{"?model=", "k", upgrade, 400, "missing_required_parameter"},
		{"?model=raw/priced&call_id=rtc_1", "k", upgrade, 400, "unsupported_parameter"},
		{"?model=raw/priced&deployment=other", "k", upgrade, 400, "unsupported_parameter"},
		{"?model=nobody/has-it", "k", upgrade, 404, "model_not_found"},
		{"?model=one/m", "k", upgrade, 400, "unsupported_endpoint"},
		{"?model=raw/priced", "k", upgrade, 502, "upstream_auth"},
		{"?model=raw/priced", "both", upgrade, 401, "invalid_api_key"},
		{"?model=raw2/m", "k", upgrade, 502, "server_error"},
		{"?model=raw/priced", "k", "Upgrade: h2c", 426, "websocket_required"},
		{"?model=raw/priced", "k", "X-None: x", 426, "websocket_required"},
	} {
		name, value, _ := strings.Cut(c.upgrade, ": ")
		resp, body := s.send("GET", realtimePath+c.path, nil, "Authorization", "Bearer "+c.key, "Connection", "Upgrade", name, value,
			"Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==")
		if resp.StatusCode != c.status || gjson.Get(body, "error.code").Str != c.code || gjson.Get(body, "error.message").Str == "" {
			t.Errorf("%s with %s, %s: %d %s", c.path, c.key, c.upgrade, resp.StatusCode, body)
		}
	}
	if resp, _ := s.post("{}"); resp.StatusCode != 400 {
		t.Error(resp.Status)
	}
	if resp, _ := s.send("POST", realtimePath, strings.NewReader("{}")); resp.StatusCode != 405 || resp.Header.Get("Allow") != "GET, OPTIONS" {
		t.Errorf("POST: %s, %v", resp.Status, resp.Header)
	}
}

// Browsers send the key as a subprotocol, which no provider gets.
func TestAKeyAsARealtimeSubprotocol(t *testing.T) {
	accepted := make(chan realtimeEnds, 1)
	s := serve(t, map[string][]upstream{"raw": {realtimeProvider(t, accepted)}})
	s.grant(100_000)
	for key, passed := range map[string]string{"both": "realtime, openai-organization.acme", "k": "realtime", "payer": "realtime"} {
		dialer := ws.Dialer{Protocols: []string{"realtime", "openai-insecure-api-key." + key, "openai-organization.acme"}}
		conn, _, shake, err := dialer.Dial(t.Context(), s.realtimeURL("raw/priced"))
		if err != nil {
			t.Fatal(err)
		}
		e := <-accepted
		if got := e.handshake.Header.Get("Sec-Websocket-Protocol"); got != passed || shake.Protocol != "realtime" {
			t.Errorf("%s: the provider got %s, the client %s", key, got, shake.Protocol)
		}
		conn.Close()
	}
	s.settled()
}

func TestRealtimeOmitsWhatTheHandshakeSays(t *testing.T) {
	accepted := make(chan realtimeEnds, 1)
	s := serve(t, map[string][]upstream{"raw": {realtimeProvider(t, accepted)}})
	e := s.open(accepted, "raw/priced", "k", "Service-Omit-Request", "true", "Service-Omit-Response", "true")
	e.ask(`{"type":"session.update","session":{"instructions":"canary"}}`, realtimeCreate)
	e.answer(realtimeCreated, strings.Replace(realtimeDone, `"hi"`, `"canary"`, 1))
	e.provider.Close()
	responses, whole := e.records()
	if len(responses) != 1 || strings.Contains(fmt.Sprint(responses, whole), "canary") || responses[0].Usage.Total() != plugins.Known(8) {
		t.Errorf("%+v, %+v", responses, whole)
	}
}

func TestRealtimeResponsesThatDoNotEnd(t *testing.T) {
	for name, c := range map[string]struct {
		cut          func(*realtimeEnds)
		begun, asked storage.EndState
	}{
		"the client leaves":    {func(e *realtimeEnds) { e.client.Close() }, storage.ClientAborted, storage.ClientAborted},
		"the provider is gone": {func(e *realtimeEnds) { e.provider.Close() }, storage.UpstreamAborted, storage.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			accepted := make(chan realtimeEnds, 1)
			s := serve(t, map[string][]upstream{"raw": {realtimeProvider(t, accepted)}})
			s.grant(100_000)
			e := s.open(accepted, "raw/priced", "payer")
			e.ask(realtimeCreate, realtimeCreate)
			e.answer(realtimeCreated, `{"type":"response.output_audio_transcript.delta","response_id":"r1","output_index":0,"content_index":0,"delta":"`+strings.Repeat("x", 6400)+`"}`)
			c.cut(e)
			responses, _ := e.records()
			if len(responses) != 2 || responses[0].EndState != c.begun || responses[1].EndState != c.asked {
				t.Fatalf("%+v", responses)
			}
			// What was set aside, and nothing for a response that never began. The record comes first.
			s.awaitRelease()
			if spent, _ := s.balance(); spent != 3*pricedContext {
				t.Errorf("spent %d", spent)
			}
			if want := plugins.Nanodollars(3 * pricedContext * 1e6); responses[0].Cost.N != want || responses[1].Cost.N != 0 {
				t.Errorf("costs %v and %v", responses[0].Cost, responses[1].Cost)
			}
		})
	}
}

// The model costs a thousandth of a dollar for a token in and two for one out: 3,000 for
// what a response may cost at most, and 13 for what it does.
func TestRealtimeIsPaidWithCredits(t *testing.T) {
	const one = 3 * pricedContext
	accepted := make(chan realtimeEnds, 1)
	s := serve(t, map[string][]upstream{"raw": {realtimeProvider(t, accepted)}})
	_, _, _, err := (&ws.Dialer{Header: ws.HandshakeHeaderHTTP{"Authorization": {"Bearer payer"}}}).Dial(t.Context(), s.realtimeURL("raw/priced"))
	if err == nil || !strings.Contains(err.Error(), "402") {
		t.Fatal("without credits:", err)
	}
	s.grant(2*one + 10) // with the dollar that it has: one for the handshake, and one response at a time
	e := s.open(accepted, "raw/priced", "payer")
	s.awaitRelease() // nothing is held before the first response
	for i := range 2 {
		e.ask(realtimeCreate)
		if _, reserved := s.balance(); reserved != 2*one {
			t.Errorf("%d are reserved", reserved)
		}
		id := strings.NewReplacer("r1", fmt.Sprint("of-", i))
		e.answer(id.Replace(realtimeCreated), id.Replace(realtimeDone))
		if spent, reserved := s.balance(); spent != int64(13*(i+1)) || reserved != one {
			t.Errorf("spent %d, reserved %d", spent, reserved)
		}
		e.answer(`{"type":"rate_limits.updated","rate_limits":[]}`)
	}
	s.grant(-one) // what is left does for the handshake alone, which holds it: one more response
	e.ask(realtimeCreate)
	e.answer(realtimeCreated, realtimeDone)
	event, code := e.closed()
	if gjson.Get(event, "type").Str != "error" || gjson.Get(event, "error.code").Str != "budget_reserved" || code != ws.StatusPolicyViolation {
		t.Errorf("the client got %s, and %d", event, code)
	}
	if _, err := io.ReadAll(e.provider); err != nil {
		t.Error("the provider's end:", err)
	}
	responses, whole := e.records()
	for _, r := range responses[1:] { // the first is the handshake that was refused
		if r.Cost.N != 13e6 || !r.PassthroughBilling || r.EndState != storage.Complete {
			t.Errorf("%+v", r.Record)
		}
	}
	if spent, reserved := s.balance(); len(responses) != 4 || spent != 3*13 || reserved != 0 || whole.ErrorType != "rate_limit_error" {
		t.Errorf("%d responses, spent %d, reserved %d, %+v", len(responses), spent, reserved, whole.Record)
	}
}

// A response that the credits are insufficient for is never asked for: the provider gets
// nothing of it.
func TestRealtimeRefusesWhatCannotBePaid(t *testing.T) {
	for name, message := range map[string]string{
		"credits":   realtimeCreate,
		"prompt":    `{"type":"session.update","session":{"type":"realtime","prompt":{"id":"pmpt_1"}}}`,
		"no frames": "",
	} {
		t.Run(name, func(t *testing.T) {
			accepted := make(chan realtimeEnds, 1)
			s := serve(t, map[string][]upstream{"raw": {realtimeProvider(t, accepted)}})
			s.grant(3*pricedContext + 10)
			e := s.open(accepted, "raw/priced", "payer")
			e.ask(realtimeCreate) // paid from what was set aside for the handshake
			frame := []byte("\x83\x02no frame")
			if message != "" {
				frame = ws.MustCompileFrame(ws.MaskFrame(ws.NewTextFrame([]byte(message))))
			}
			if _, err := e.client.Write(frame); err != nil {
				t.Fatal(err)
			}
			if passed, err := io.ReadAll(e.provider); err != nil || len(passed) > 0 {
				t.Errorf("the provider got %q, %v", passed, err)
			}
			if event, code := e.closed(); gjson.Get(event, "type").Str != "error" || code != ws.StatusPolicyViolation {
				t.Errorf("the client got %s, and %d", event, code)
			}
			responses, whole := e.records()
			if want := 1; name == "credits" {
				if r := responses[len(responses)-1]; len(responses) != 2 || r.Status != plugins.Known(429) || r.ErrorType != "rate_limit_error" {
					t.Errorf("%+v", responses)
				}
			} else if len(responses) != want || whole.ErrorType == "" {
				t.Errorf("%+v, %+v", responses, whole)
			}
			if _, reserved := s.balance(); reserved != 0 {
				t.Errorf("%d stay reserved", reserved)
			}
		})
	}
}

// What cannot be read of a WebSocket never comes to an account that others use: it may name
// what the account keeps for them.
func TestRealtimeOfASharedAccountIsRead(t *testing.T) {
	const prompt = `{"type":"session.update","session":{"type":"realtime","prompt":{"id":"pmpt_1"}}}`
	for name, frame := range map[string][]byte{
		"memory is short": ws.MustCompileFrame(ws.MaskFrame(ws.NewTextFrame([]byte(prompt)))),
		"no frames":       []byte("\x83\x02no frame"),
	} {
		t.Run(name, func(t *testing.T) {
			accepted := make(chan realtimeEnds, 1)
			s := serve(t, map[string][]upstream{"raw": {realtimeProvider(t, accepted)}})
			e := s.open(accepted, "raw/priced", "k")
			if name == "memory is short" {
				// What is left: the events of background responses that ended hold some for minutes.
				var taken int64
				for n := capture.Memory(); n > 0; n /= 2 {
					for capture.Reserve(n) {
						taken += n
					}
				}
				defer capture.Return(taken)
			}
			if _, err := e.client.Write(frame); err != nil {
				t.Fatal(err)
			}
			if passed, err := io.ReadAll(e.provider); err != nil || len(passed) > 0 {
				t.Errorf("the provider got %q, %v", passed, err)
			}
			if event, code := e.closed(); gjson.Get(event, "type").Str != "error" || code != ws.StatusPolicyViolation {
				t.Errorf("the client got %s, and %d", event, code)
			}
			e.records()
		})
	}
}

// A frame that comes before the WebSocket is open is read as any other: the server has read
// its first byte ahead.
func TestRealtimeOfASharedAccountIsReadFromTheFirstByte(t *testing.T) {
	accepted := make(chan realtimeEnds, 1)
	dialed := make(chan net.Conn, 1)
	accept := realtimeProvider(t, accepted)
	s := serve(t, map[string][]upstream{"raw": {func(w http.ResponseWriter, r *http.Request) {
		if _, err := (<-dialed).Write([]byte("\x83\x02no frame")); err != nil {
			t.Error(err)
		}
		time.Sleep(50 * time.Millisecond) // within which the server reads ahead
		accept(w, r)
	}}})
	client, _, _, err := (&ws.Dialer{
		Header: ws.HandshakeHeaderHTTP{"Authorization": {"Bearer k"}},
		NetDial: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			dialed <- conn
			return conn, err
		},
	}).Dial(t.Context(), s.realtimeURL("raw/priced"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	e := <-accepted
	if passed, err := io.ReadAll(e.provider); err != nil || len(passed) > 0 {
		t.Errorf("the provider got %q, %v", passed, err)
	}
	e.t, e.site = t, s
	e.records()
}

// Keys that a new configuration does not have must not be good for old sockets, but a
// response that is spoken goes on.
func TestRealtimeEndsWithItsConfiguration(t *testing.T) {
	accepted := make(chan realtimeEnds, 1)
	s := serve(t, map[string][]upstream{"raw": {realtimeProvider(t, accepted)}})
	unloaded := make(chan struct{})
	s.handler.unloaded = unloaded
	busy, idle := s.open(accepted, "raw/priced", "k"), s.open(accepted, "raw/priced", "k")
	busy.ask(realtimeCreate)
	busy.answer(realtimeCreated)
	close(unloaded)
	if event, code := idle.closed(); event != "" || code != ws.StatusGoingAway {
		t.Errorf("the idle client got %s, and %d", event, code)
	}
	busy.answer(realtimeDone)
	if _, code := busy.closed(); code != ws.StatusGoingAway {
		t.Errorf("the busy client got %d", code)
	}
	if responses, _ := busy.records(); len(responses) != 1 || responses[0].EndState != storage.Complete {
		t.Errorf("%+v", responses)
	}
}

// organisation returns what administrators have created in the default organisation.
func (s *site) organisation() *control.Organisation {
	s.t.Helper()
	store, err := s.handler.site.App.Store("")
	if err != nil {
		s.t.Fatal(err)
	}
	log, err := store.Control()
	if err != nil {
		s.t.Fatal(err)
	}
	return &control.Organisation{Log: log, Name: stores.DefaultName}
}

// A message that names a model which the key may not call never reaches the provider, for a response or
// for the transcription of what is heard.
func TestRealtimeKeepsToTheModelsOfItsKey(t *testing.T) {
	accepted := make(chan realtimeEnds, 1)
	s := serve(t, map[string][]upstream{"raw": {realtimeProvider(t, accepted)}})
	_, secret, err := s.organisation().CreateKey(t.Context(), control.Settings{Name: "limited", Scopes: []string{access.ScopeGateway}, Models: []string{"raw/priced", "raw/hear"}})
	if err != nil {
		t.Fatal(err)
	}
	for message, refused := range map[string]bool{
		`{"type":"session.update","session":{"model":"priced","audio":{"input":{"transcription":{"model":"hear"}}}}}`: false,
		`{"type":"session.update","session":{"model":"raw/priced","input_audio_transcription":null}}`:                 false,
		`{"type":"session.update","session":{"model":"thinks"}}`:                                                      true,
		`{"type":"session.update","session":{"model":"priced","model":"thinks"}}`:                                     true,
		`{"type":"session.update","session":{"audio":{"input":{"transcription":{"model":"thinks"}}}}}`:                true,
		`{"type":"session.update","session":{"input_audio_transcription":{"model":"thinks"}}}`:                        true,
		`{"type":"response.create","response":{"model":"thinks"}}`:                                                    true,
	} {
		e := s.open(accepted, "raw/priced", secret)
		if !refused {
			e.ask(message)
			e.client.Close()
			continue
		}
		if _, err := e.client.Write(ws.MustCompileFrame(ws.MaskFrame(ws.NewTextFrame([]byte(message))))); err != nil {
			t.Fatal(err)
		}
		if event, code := e.closed(); code != ws.StatusPolicyViolation || gjson.Get(event, "error.code").Str != "model_not_allowed" {
			t.Errorf("%s: the client got %s, and %d", message, event, code)
		}
		if passed, err := io.ReadAll(e.provider); err != nil || len(passed) > 0 {
			t.Errorf("%s: the provider got %q, %v", message, passed, err)
		}
	}
	s.settled()
}

// The WebSocket of a key that is deleted is closed, also if nobody says anything in it.
func TestRealtimeEndsWithItsKey(t *testing.T) {
	accepted := make(chan realtimeEnds, 1)
	s := serve(t, map[string][]upstream{"raw": {realtimeProvider(t, accepted)}})
	org := s.organisation()
	for name, response := range map[string]bool{"idle": false, "asks for a response": true} {
		key, secret, err := org.CreateKey(t.Context(), control.Settings{Name: name, Scopes: []string{access.ScopeGateway}})
		if err != nil {
			t.Fatal(err)
		}
		e := s.open(accepted, "raw/priced", secret)
		e.ask(realtimeCreate)
		e.answer(realtimeCreated, realtimeDone)
		if err := control.Delete[control.Key](t.Context(), org, key.ID); err != nil {
			t.Fatal(err)
		}
		if response {
			if _, err := e.client.Write(ws.MustCompileFrame(ws.MaskFrame(ws.NewTextFrame([]byte(realtimeCreate))))); err != nil {
				t.Fatal(err)
			}
		}
		if event, code := e.closed(); code != ws.StatusPolicyViolation || gjson.Get(event, "error.code").Str != "invalid_api_key" {
			t.Errorf("%s: the client got %s, and %d", name, event, code)
		}
	}
	s.settled()
}

// What the provider closes a WebSocket with reaches the client, also while this sends, and the other way. The
// records say so.
func TestRealtimeCloseCodesPass(t *testing.T) {
	accepted := make(chan realtimeEnds, 1)
	s := serve(t, map[string][]upstream{"raw": {realtimeProvider(t, accepted)}})
	bye := ws.NewCloseFrame(ws.NewCloseFrameBody(ws.StatusInternalServerError, "The session expired."))
	for name, c := range map[string]struct {
		header  []string
		end     storage.EndState
		message string
		close   func(e *realtimeEnds)
	}{
		"by the provider": {nil, storage.UpstreamAborted, "The provider closed the WebSocket with the code 1011: The session expired.", func(e *realtimeEnds) {
			go func() {
				for audio := ws.MustCompileFrame(ws.MaskFrame(ws.NewBinaryFrame(make([]byte, 1<<20)))); ; {
					if _, err := e.client.Write(audio); err != nil {
						return
					}
				}
			}()
			if _, err := e.provider.Write(ws.MustCompileFrame(bye)); err != nil {
				t.Error(err)
			}
			e.provider.Close()
			if _, code := e.closed(); code != ws.StatusInternalServerError {
				t.Errorf("the client is told %d", code)
			}
			e.client.Close()
		}},
		"omitted": {[]string{"Service-Omit-Response", "true"}, storage.UpstreamAborted, "The provider closed the WebSocket with the code 1011.", func(e *realtimeEnds) {
			e.pass(e.provider, e.client, ws.MustCompileFrame(bye))
			e.client.Close()
		}},
		"by the client": {nil, storage.ClientAborted, "The client closed the WebSocket with the code 1011: The session expired.", func(e *realtimeEnds) {
			e.pass(e.client, e.provider, ws.MustCompileFrame(ws.MaskFrame(bye)))
			e.client.Close()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(s.kept.all())
			e := s.open(accepted, "raw/priced", "k", c.header...)
			e.ask(realtimeCreate)
			e.answer(realtimeCreated)
			c.close(e)
			s.settled()
			for _, r := range s.kept.all()[before:] {
				isSocket := r.Status.N == http.StatusSwitchingProtocols
				if r.ErrorType != "websocket_closed" || !isSocket && (r.EndState != c.end || r.ErrorMessage != c.message) {
					t.Errorf("%d, %s, %s, %q", r.Status.N, r.EndState, r.ErrorType, r.ErrorMessage)
				}
			}
		})
	}
}

// A provider that answers the handshake without a WebSocket is paid nothing: another one may answer.
func TestNoWebSocketCostsNothing(t *testing.T) {
	s := serve(t, map[string][]upstream{"raw": {objectOf(`{}`)}})
	s.grant(10 * pricedContext)
	_, _, _, err := (&ws.Dialer{Header: ws.HandshakeHeaderHTTP{"Authorization": {"Bearer payer"}}}).Dial(t.Context(), s.realtimeURL("raw/priced"))
	if err == nil || !strings.Contains(err.Error(), "502") {
		t.Error(err)
	}
	s.awaitRelease()
	if spent, _ := s.balance(); spent != 0 {
		t.Errorf("spent %d", spent)
	}
}

// A provider that does not take the handshake is one that is not up.
func TestRealtimeFailsOver(t *testing.T) {
	accepted := make(chan realtimeEnds, 1)
	var refused atomic.Int32
	s := serve(t, map[string][]upstream{
		"raw":  {func(w http.ResponseWriter, _ *http.Request) { refused.Add(1); panic(http.ErrAbortHandler) }},
		"raw2": {realtimeProvider(t, accepted)},
	})
	e := s.open(accepted, "raws", "k")
	if refused.Load() != 2 || e.handshake.URL.Query().Get("model") != "m" {
		t.Errorf("%d attempts, then %s", refused.Load(), e.handshake.URL)
	}
	e.client.Close()
	e.records()
}
