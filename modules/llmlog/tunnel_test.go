package llmlog

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/httphead"
	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
	"github.com/google/uuid"
	"github.com/klauspost/compress/flate"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weirhq/weir/modules/internal/tunnel"
	"github.com/weirhq/weir/modules/internal/websocket"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"
)

const (
	socketPath   = "/v1/responses"
	realtimePath = "/v1/realtime?model=gpt-realtime"

	createEvent    = `{"type":"response.create","model":"gpt-4o","input":"canary-question","store":false}`
	createdEvent   = `{"type":"response.created","response":{"id":"resp_%d","object":"response","status":"in_progress","model":"gpt-4o-2024-08-06","output":[]}}`
	textDeltaEvent = `{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"canary-answer"}`
	completedEvent = `{"type":"response.completed","response":{"id":"resp_%d","object":"response","status":"completed","model":"gpt-4o-2024-08-06","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"canary-answer"}]}],"usage":{"input_tokens":20,"output_tokens":6,"total_tokens":26}}}`
)

// socket is a WebSocket whose two ends the test writes and reads.
type socket struct {
	t                  *testing.T
	site               *site
	accepted           chan net.Conn
	client, upstream   io.ReadWriteCloser
	toClient, toServer *flate.Writer // of compressed messages
	out                bytes.Buffer
}

// listen starts the server, and returns its address.
func (k *socket) listen() string {
	k.accepted = make(chan net.Conn, 1)
	upgrader := ws.HTTPUpgrader{Negotiate: func(option httphead.Option) (httphead.Option, error) { return option, nil }}
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, _, err := upgrader.Upgrade(r, w)
		if err != nil {
			k.t.Error(err)
			return
		}
		conn.SetDeadline(time.Now().Add(10 * time.Second))
		k.t.Cleanup(func() { conn.Close() })
		k.accepted <- conn
	}))
	k.t.Cleanup(upstream.Close)
	return upstream.Listener.Addr().String()
}

// dial opens a WebSocket through a site, with a handshake that says so.
func dial(t *testing.T, o options, path, extension string, header ...string) *socket {
	t.Helper()
	k := &socket{t: t}
	o.upstream = k.listen()
	k.site = serve(t, o)
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	dialer := ws.Dialer{Header: ws.HandshakeHeaderHTTP(h)}
	if extension != "" {
		dialer.Extensions = []httphead.Option{httphead.NewOption(extension, nil)}
	}
	client, _, _, err := dialer.Dial(t.Context(), "ws://"+k.site.addr+path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	client.SetDeadline(time.Now().Add(10 * time.Second))
	k.client, k.upstream = client, <-k.accepted
	return k
}

// pass sends bytes from one end, and fails unless the other end gets the same.
func (k *socket) pass(from io.Writer, to io.Reader, frames []byte) {
	k.t.Helper()
	go from.Write(frames)
	got := make([]byte, len(frames))
	if _, err := io.ReadFull(to, got); err != nil || !bytes.Equal(got, frames) {
		k.t.Fatalf("%q became %q, %v", frames, got, err)
	}
}

// ask passes messages to the server, and answer to the client.
func (k *socket) ask(messages ...string) {
	for _, m := range messages {
		k.pass(k.client, k.upstream, ws.MustCompileFrame(ws.MaskFrame(k.frame(&k.toServer, m))))
	}
}

func (k *socket) answer(messages ...string) {
	for _, m := range messages {
		k.pass(k.upstream, k.client, ws.MustCompileFrame(k.frame(&k.toClient, m)))
	}
}

func (k *socket) frame(z **flate.Writer, message string) ws.Frame {
	if *z == nil {
		return ws.NewTextFrame([]byte(message))
	}
	k.out.Reset()
	(*z).Write([]byte(message))
	(*z).Flush()
	f := ws.NewTextFrame(bytes.TrimSuffix(bytes.Clone(k.out.Bytes()), []byte{0, 0, 0xff, 0xff}))
	f.Header.Rsv = ws.Rsv(true, false, false)
	return f
}

// hangUp closes the WebSocket by the client, as the protocol has it.
func (k *socket) hangUp() {
	bye := ws.NewCloseFrame(ws.NewCloseFrameBody(ws.StatusNormalClosure, ""))
	k.pass(k.client, k.upstream, ws.MustCompileFrame(ws.MaskFrame(bye)))
	k.pass(k.upstream, k.client, ws.MustCompileFrame(bye))
	k.upstream.Close()
	k.client.Close()
}

// records are those of the responses, in the order in which they began, and that of
// the tunnel. The exchanges must end.
func (k *socket) records() (responses []entry, tunnel entry) {
	k.t.Helper()
	for limit := time.Now().Add(10 * time.Second); !k.site.kept.ended(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			k.t.Fatal("an exchange does not end")
		}
	}
	kept := k.site.kept
	kept.mu.Lock()
	defer kept.mu.Unlock()
	newest := make(map[uuid.UUID]entry)
	for _, e := range kept.entries {
		newest[e.ID] = e
	}
	for _, e := range newest {
		if e.Status.N == http.StatusSwitchingProtocols {
			tunnel = e
		} else {
			responses = append(responses, e)
		}
	}
	if kept.counted != len(newest) {
		k.t.Errorf("%d records, and %d exchanges have one", len(newest), kept.counted)
	}
	slices.SortFunc(responses, func(a, b entry) int { return bytes.Compare(a.ID[:], b.ID[:]) }) // version 7: by time
	return responses, tunnel
}

// stored is the answer as it is stored.
func (e *entry) stored() string {
	stored, _ := observe.Transcript(e.Dialect).Stored(e.Response.Type, e.Response.Data)
	return string(stored)
}

// Two responses in one WebSocket have a record each, with all that they would have
// over HTTP, and the tunnel has its own.
func TestResponsesInATunnel(t *testing.T) {
	for _, compressed := range []bool{false, true} {
		t.Run(fmt.Sprintf("compressed %v", compressed), func(t *testing.T) {
			extension := ""
			if compressed {
				extension = "permessage-deflate"
			}
			k := dial(t, options{config: object{"provider": "openai"}, accessLogs: true}, socketPath, extension, "Service-User-Id", "ada")
			if compressed {
				k.toClient, _ = flate.NewWriter(&k.out, 6)
				k.toServer, _ = flate.NewWriter(&k.out, 6)
			}
			for i := range 2 {
				before := k.site.kept.appended()
				k.ask(createEvent)
				k.answer(fmt.Sprintf(createdEvent, i), textDeltaEvent)
				if n := k.site.kept.appended(); n != before {
					t.Errorf("%d versions before the end", n-before)
				}
				k.answer(fmt.Sprintf(completedEvent, i))
				if n := k.site.kept.appended(); n != before+1 {
					t.Errorf("the client sees the end of answer %d before its record stands", i)
				}
			}
			k.hangUp()
			responses, tunnel := k.records()
			if len(responses) != 2 {
				t.Fatalf("%d records of responses", len(responses))
			}
			for i, e := range responses {
				if e.UserID != "ada" || e.Path != socketPath || e.Provider != "openai" || e.Dialect != plugins.Responses || !e.Stream {
					t.Errorf("record %+v", e.Record)
				}
				if e.RequestModel != "gpt-4o" || e.ResponseModel != "gpt-4o-2024-08-06" || e.ResponseID != fmt.Sprintf("resp_%d", i) ||
					e.Finish != "completed" || e.EndState != storage.Complete || e.Status != plugins.Known(200) {
					t.Errorf("record %+v", e.Record)
				}
				if e.Usage.Total() != plugins.Known(26) || e.Cost.N != 20*2_500+6*10_000 || !e.TimeToFirstToken.Valid || !e.Latency.Valid {
					t.Errorf("usage %+v, cost %v, first token %v", e.Usage, e.Cost, e.TimeToFirstToken)
				}
				if string(e.Request.Data) != createEvent || e.RequestBytes != int64(len(createEvent)) {
					t.Errorf("request %s, %d bytes", e.Request.Data, e.RequestBytes)
				}
				want := strings.TrimSuffix(strings.SplitAfterN(fmt.Sprintf(completedEvent, i), `"response":`, 2)[1], "}")
				if got := e.stored(); got != want {
					t.Errorf("stored\n%s, want\n%s", got, want)
				}
			}
			if tunnel.Usage != (plugins.Usage{}) || tunnel.Request.Data != nil || tunnel.Response.Data != nil ||
				tunnel.EndState != storage.Complete || tunnel.ErrorType != "" || tunnel.ResponseBytes < 100 {
				t.Errorf("the tunnel's record: %+v", tunnel.Record)
			}
		})
	}
}

func realtimeDone(id, status string, input int) string {
	return fmt.Sprintf(`{"type":"response.done","response":{"object":"realtime.response","id":%q,"status":%q,"output":[{"type":"message","role":"assistant","content":[{"type":"output_audio","transcript":"hi from %s"}]}],"usage":{"total_tokens":%d,"input_tokens":%d,"output_tokens":5}}}`,
		id, status, id, input+5, input)
}

// Responses of a conversation: the server begins one unasked, two overlap, one is
// cancelled, one is refused, and the session's model changes.
func TestRealtime(t *testing.T) {
	k := dial(t, options{config: object{"provider": "openai"}}, realtimePath, "")
	k.answer(`{"type":"session.created","session":{"id":"s","model":"gpt-realtime-2025-08-28","instructions":""}}`)
	k.ask(`{"type":"session.update","session":{"instructions":"Be brief."}}`,
		`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}}`,
		`{"type":"response.create"}`,
		`{"type":"response.create","response":{"conversation":"none","metadata":{"n":"2"}}}`)
	k.answer(`{"type":"session.updated","session":{"model":"gpt-realtime-2025-08-28","instructions":"Be brief."}}`,
		`{"type":"response.created","response":{"id":"r1","status":"in_progress","output":[]}}`,
		`{"type":"response.created","response":{"id":"r2","status":"in_progress","output":[]}}`,
		`{"type":"response.output_audio.delta","response_id":"r2","delta":"AAAA"}`,
		realtimeDone("r2", "completed", 20),
		`{"type":"rate_limits.updated","rate_limits":[]}`)
	k.ask(`{"type":"response.cancel","response_id":"r1"}`)
	k.answer(realtimeDone("r1", "cancelled", 10))

	k.ask(`{"type":"response.create","event_id":"e3"}`)
	k.answer(`{"type":"error","error":{"type":"invalid_request_error","code":"x","event_id":"e0"}}`, // of another event
		`{"type":"error","error":{"type":"invalid_request_error","code":"x","event_id":"e3"}}`)

	k.ask(`{"type":"input_audio_buffer.append","audio":"canary-audio"}`)
	k.answer(`{"type":"session.updated","session":{"model":"gpt-realtime-mini"}}`,
		`{"type":"response.created","response":{"id":"r4","status":"in_progress","output":[]}}`,
		"{\n\"type\":\"response.done\",\n"+strings.TrimPrefix(realtimeDone("r4", "completed", 40), `{"type":"response.done",`),
		`{"type":"response.output_item.done","response_id":"r4"}`) // too late
	k.hangUp()

	responses, tunnel := k.records()
	if len(responses) != 4 {
		t.Fatalf("%d records of responses", len(responses))
	}
	for i, want := range []struct {
		id, finish, model, errorType string
		input                        plugins.Count
		request, output              string
	}{
		{"r1", "cancelled", "gpt-realtime-2025-08-28", "", plugins.Known(10), "Be brief.\nhello", "hi from r1"},
		{"r2", "completed", "gpt-realtime-2025-08-28", "", plugins.Known(20), "", "hi from r2"},
		{"", "", "gpt-realtime", "invalid_request_error", plugins.Count{}, "", ""},
		{"r4", "completed", "gpt-realtime-mini", "", plugins.Known(40), "", "hi from r4"},
	} {
		e := responses[i]
		if e.ResponseID != want.id || e.Finish != want.finish || e.Model != want.model || e.ErrorType != want.errorType ||
			e.Usage.Input != want.input || e.Dialect != plugins.Realtime || e.RequestModel != "gpt-realtime" || e.EndState != storage.Complete {
			t.Errorf("response %d: %+v", i, e.Record)
		}
		f := observe.Transcript(e.Dialect)
		if got := f.InputText(e.Request.Data); got != want.request {
			t.Errorf("response %d: input %q of %s", i, got, e.Request.Data)
		}
		if got := f.OutputText([]byte(e.stored())); got != want.output || strings.Contains(e.stored(), "AAAA") {
			t.Errorf("response %d: output %q of %s", i, got, e.stored())
		}
		if strings.Contains(string(e.Request.Data), "canary-audio") {
			t.Error("audio was kept")
		}
	}
	if responses[0].Request.Data[0] != '[' || tunnel.EndState != storage.Complete {
		t.Errorf("request %s, tunnel %v", responses[0].Request.Data, tunnel.EndState)
	}
}

// Gemini's events have no type and name no response: the model's first word begins one, and
// the usage ends it. Each response has the usage that its own event states.
func TestLive(t *testing.T) {
	const path = "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"
	k := dial(t, options{config: object{"provider": "gemini"}}, path, "")
	k.ask(`{"setup":{"model":"models/gemini-3.1-flash-live-preview"}}`)
	k.answer(`{"setupComplete":{}}`)
	k.ask(`{"clientContent":{"turns":[{"role":"user","parts":[{"text":"hello"}]}],"turnComplete":true}}`)
	k.answer(`{"serverContent":{"modelTurn":{"parts":[{"inlineData":{"mimeType":"audio/pcm","data":"canary-audio"}}]}}}`,
		`{"serverContent":{"outputTranscription":{"text":"Hi."}}}`,
		`{"serverContent":{"generationComplete":true}}`)
	before := k.site.kept.appended()
	k.answer(`{"serverContent":{"turnComplete":true},"usageMetadata":{"promptTokenCount":20,"responseTokenCount":9,"totalTokenCount":29,` +
		`"promptTokensDetails":[{"modality":"TEXT","tokenCount":20}],"responseTokensDetails":[{"modality":"AUDIO","tokenCount":9}]}}`)
	if n := k.site.kept.appended(); n != before+1 {
		t.Error("the client sees the end of an answer before its record stands")
	}
	k.ask(`{"realtimeInput":{"audio":{"mimeType":"audio/pcm","data":"canary-audio"}}}`, `{"realtimeInput":{"text":"What is new?"}}`)
	k.answer(`{"toolCall":{"functionCalls":[{"id":"f1","name":"news","args":{}}]}}`,
		`{"usageMetadata":{"promptTokenCount":40,"responseTokenCount":5,"thoughtsTokenCount":3,"totalTokenCount":48}}`,
		`{"serverContent":{"turnComplete":true}}`,
		`{"goAway":{"timeLeft":"10s"}}`)
	k.hangUp()

	responses, tunnel := k.records()
	if len(responses) != 2 {
		t.Fatalf("%d records of responses", len(responses))
	}
	for i, want := range []struct {
		usage plugins.Usage
		said  string
	}{
		{plugins.Usage{Input: plugins.Known(20), Output: plugins.Known(9), OutputAudio: plugins.Known(9)}, "hello"},
		{plugins.Usage{Input: plugins.Known(40), Output: plugins.Known(8), Reasoning: plugins.Known(3)}, "What is new?"},
	} {
		e := responses[i]
		if e.Usage != want.usage || !e.Cost.Valid || e.Dialect != plugins.Live || e.EndState != storage.Complete ||
			e.RequestModel != "models/gemini-3.1-flash-live-preview" || !e.TimeToFirstToken.Valid {
			t.Errorf("response %d: %+v", i, e.Record)
		}
		if !strings.Contains(string(e.Request.Data), want.said) || strings.Contains(string(e.Request.Data)+e.stored(), "canary-audio") {
			t.Errorf("response %d: %s, %s", i, e.Request.Data, e.stored())
		}
	}
	if tunnel.Usage != (plugins.Usage{}) || tunnel.EndState != storage.Complete {
		t.Errorf("the tunnel's record: %+v", tunnel.Record)
	}
}

// A transcription of what the user says is a call of its own, of another model.
func TestRealtimeTranscription(t *testing.T) {
	for _, omit := range []string{"", "Service-Omit-Request", "Service-Omit-Response"} {
		var header []string
		if omit != "" {
			header = []string{omit, "yes"}
		}
		k := dial(t, options{config: object{"provider": "openai"}}, realtimePath, "", header...)
		k.answer(`{"type":"session.updated","session":{"model":"gpt-realtime","audio":{"input":{"transcription":{"model":"gpt-4o-transcribe"}}}}}`,
			`{"type":"input_audio_buffer.committed","item_id":"i1"}`,
			`{"type":"conversation.item.input_audio_transcription.completed","item_id":"i1","transcript":"canary","usage":{"type":"tokens","total_tokens":30,"input_tokens":20,"output_tokens":10}}`)
		k.hangUp()
		responses, _ := k.records()
		stop(t, k.site)
		if len(responses) != 1 {
			t.Fatalf("%d records", len(responses))
		}
		e := responses[0]
		if e.Model != "gpt-4o-transcribe" || e.Usage.Total() != plugins.Known(30) || !e.Cost.Valid {
			t.Errorf("%+v", e.Record)
		}
		if kept := strings.Contains(string(e.Response.Data), "canary"); kept != (omit == "") {
			t.Errorf("%q: kept %s", omit, e.Response.Data)
		}
	}
}

// What is omitted by the handshake is nowhere; what is measured is there all the same.
func TestOmissionInATunnel(t *testing.T) {
	for _, c := range []struct {
		header            []string
		request, response bool // omitted
	}{
		{nil, false, false},
		{[]string{"Service-Omit-Request", "true"}, true, false},
		{[]string{"Service-Omit-Response", "perhaps"}, false, true},
		{[]string{"Service-Omit-Request", "1", "Service-Omit-Response", "on"}, true, true},
	} {
		for _, broken := range []bool{false, true} {
			k := dial(t, options{config: object{"provider": "openai"}, accessLogs: true}, socketPath, "", c.header...)
			k.ask(createEvent)
			k.answer(fmt.Sprintf(createdEvent, 1), textDeltaEvent)
			if broken {
				k.pass(k.upstream, k.client, []byte("\xff\xffcanary-answer canary-question"))
			} else {
				k.answer(fmt.Sprintf(completedEvent, 1))
			}
			k.upstream.Close()
			k.client.Close()
			responses, tunnel := k.records()
			logs := k.site.logs.String()
			stop(t, k.site)
			if len(responses) != 1 {
				t.Fatalf("%v: %d records", c.header, len(responses))
			}
			e := responses[0]
			if e.RequestOmitted != c.request || strings.Contains(string(e.Request.Data), "canary-question") == c.request {
				t.Errorf("%v: request %s", c.header, e.Request.Data)
			}
			if e.ResponseOmitted != c.response || strings.Contains(string(e.Response.Data), "canary-answer") == c.response {
				t.Errorf("%v: response %s", c.header, e.Response.Data)
			}
			if outside := fmt.Sprintf("%+v %+v %s", e.Record, tunnel, logs); strings.Contains(outside, "canary") {
				t.Errorf("%v: content outside of the content", c.header)
			}
			if e.RequestModel != "gpt-4o" || e.RequestBytes != int64(len(createEvent)) || !broken && e.Usage.Total() != plugins.Known(26) {
				t.Errorf("%v: metrics %+v", c.header, e.Record)
			}
		}
	}
}

// A tunnel that ends in the middle leaves records of what had not ended.
func TestBrokenTunnels(t *testing.T) {
	for name, c := range map[string]struct {
		cut         func(k *socket)
		begun       storage.EndState
		asked       storage.EndState
		askedStatus int64
	}{
		"client":                  {func(k *socket) { k.client.Close(); io.Copy(io.Discard, k.upstream); k.upstream.Close() }, storage.ClientAborted, storage.ClientAborted, 499},
		"client, by the protocol": {func(k *socket) { k.hangUp() }, storage.ClientAborted, storage.ClientAborted, 499},
		"server":                  {func(k *socket) { k.upstream.Close(); io.Copy(io.Discard, k.client); k.client.Close() }, storage.UpstreamAborted, storage.Failed, 502},
		"server, by the protocol": {func(k *socket) {
			k.pass(k.upstream, k.client, ws.MustCompileFrame(ws.NewCloseFrame(nil)))
			k.client.Close()
			k.upstream.Close()
		}, storage.UpstreamAborted, storage.Failed, 502},
		"reload": {func(k *socket) { k.site.reload() }, storage.UpstreamAborted, storage.Failed, 502},
	} {
		t.Run(name, func(t *testing.T) {
			k := dial(t, options{config: object{"provider": "openai"}}, realtimePath, "")
			k.ask(`{"type":"response.create"}`, `{"type":"response.create"}`)
			k.answer(`{"type":"response.created","response":{"id":"r1","status":"in_progress","output":[]}}`,
				`{"type":"response.output_item.added","response_id":"r1","output_index":0,"item":{"type":"message","content":[]}}`,
				`{"type":"response.content_part.added","response_id":"r1","output_index":0,"content_index":0,"part":{"type":"audio","transcript":""}}`,
				`{"type":"response.output_audio_transcript.delta","response_id":"r1","output_index":0,"content_index":0,"delta":"half a "}`,
				`{"type":"response.output_audio_transcript.delta","response_id":"r1","output_index":0,"content_index":0,"delta":"sentence"}`)
			c.cut(k)
			responses, _ := k.records()
			if len(responses) != 2 {
				t.Fatalf("%d records", len(responses))
			}
			if e := responses[0]; e.EndState != c.begun || e.ResponseID != "r1" || !e.TimeToFirstToken.Valid || e.Cost.Valid {
				t.Errorf("begun: %+v", e.Record)
			}
			if out := observe.Transcript(plugins.Realtime).OutputText([]byte(responses[0].stored())); out != "half a sentence" {
				t.Errorf("stored %s", responses[0].stored())
			}
			if e := responses[1]; e.EndState != c.asked || e.Status != plugins.Known(c.askedStatus) || e.ResponseID != "" {
				t.Errorf("asked: %+v", e.Record)
			}
		})
	}
}

// Frames that cannot be read pass, and the records say so.
func TestUnreadableTunnel(t *testing.T) {
	before := testutil.ToFloat64(websocket.Unreadable)
	k := dial(t, options{config: object{"provider": "openai"}}, socketPath, "")
	k.ask(createEvent)
	k.pass(k.upstream, k.client, []byte("\x83\x02no frame"))
	k.answer(fmt.Sprintf(completedEvent, 1))
	k.ask(createEvent)
	k.hangUp()
	responses, whole := k.records()
	if whole.ErrorType != tunnel.UnreadableError || whole.EndState != storage.Complete || testutil.ToFloat64(websocket.Unreadable) != before+1 {
		t.Errorf("the tunnel's record: %+v", whole.Record)
	}
	if len(responses) != 2 || responses[0].ErrorType != tunnel.UnreadableError || responses[0].EndState != storage.Failed {
		t.Errorf("%+v", responses)
	}
	if !strings.Contains(k.site.logs.String(), "a WebSocket cannot be read") {
		t.Error("nothing is logged")
	}
	stop(t, k.site)

	k = dial(t, options{config: object{"provider": "openai"}}, socketPath, "x-unknown")
	k.ask(createEvent)
	k.answer(fmt.Sprintf(completedEvent, 1))
	k.hangUp()
	if responses, whole := k.records(); len(responses) > 0 || whole.ErrorType != tunnel.UnreadableError {
		t.Errorf("an unknown extension: %+v, %d records", whole.Record, len(responses))
	}
}

// Messages are cut at max_body like other bodies, and their metrics are not.
func TestLongMessagesOfATunnel(t *testing.T) {
	k := dial(t, options{config: object{"provider": "openai", "max_body": 50}}, socketPath, "")
	k.ask(createEvent)
	k.answer(fmt.Sprintf(createdEvent, 1), fmt.Sprintf(completedEvent, 1))
	k.hangUp()
	responses, _ := k.records()
	if len(responses) != 1 {
		t.Fatalf("%d records", len(responses))
	}
	e := responses[0]
	if len(e.Request.Data) != 50 || len(e.Response.Data) != 50 || !e.RequestTruncated || !e.ResponseTruncated || e.Usage.Total() != plugins.Known(26) {
		t.Errorf("kept %q, %q; %+v", e.Request.Data, e.Response.Data, e.Record)
	}
}

// Errors that answer a request end it, with the status that they tell.
func TestRefusedResponse(t *testing.T) {
	k := dial(t, options{config: object{"provider": "openai"}}, socketPath, "")
	k.ask(createEvent)
	k.answer(`{"type":"error","status":400,"error":{"type":"invalid_request_error","code":"previous_response_not_found","message":"x"}}`)
	k.ask(createEvent)
	k.answer(fmt.Sprintf(createdEvent, 2), `{"type":"error","code":"server_error","message":"x"}`,
		`{"type":"response.failed","response":{"id":"resp_2","status":"failed","error":{"code":"server_error"}}}`)
	k.hangUp()
	responses, _ := k.records()
	if len(responses) != 2 {
		t.Fatalf("%d records", len(responses))
	}
	if e := responses[0]; e.Status != plugins.Known(400) || e.ErrorType != "invalid_request_error" || e.Cost != plugins.KnownCost(0) || e.EndState != storage.Complete {
		t.Errorf("%+v", e.Record)
	}
	if e := responses[1]; e.Status != plugins.Known(200) || e.ErrorType == "" || e.ResponseID != "resp_2" {
		t.Errorf("%+v", e.Record)
	}
}

// A client that asks without end for what is not answered is given up in part.
func TestResponsesInFlightAreBounded(t *testing.T) {
	k := dial(t, options{config: object{"provider": "openai"}}, socketPath, "")
	for range tunnel.MaxInFlight + 3 {
		k.ask(createEvent)
	}
	if n := k.site.kept.appended(); n != 3 {
		t.Errorf("%d records are written", n)
	}
	k.hangUp()
	if responses, _ := k.records(); len(responses) != tunnel.MaxInFlight+3 {
		t.Errorf("%d records", len(responses))
	}
}

// A server that begins responses without end, and ends none, is recorded in bounded memory.
func TestBegunResponsesAreBounded(t *testing.T) {
	k := dial(t, options{config: object{"provider": "openai"}}, socketPath, "")
	for i := range tunnel.MaxInFlight + 3 {
		k.answer(fmt.Sprintf(createdEvent, i))
	}
	if n := k.site.kept.appended(); n != 3 {
		t.Errorf("%d records are written", n)
	}
	k.hangUp()
	if responses, _ := k.records(); len(responses) != tunnel.MaxInFlight+3 {
		t.Errorf("%d records", len(responses))
	}
}

// Over HTTP/2 and 3 the frames are the bodies of a CONNECT that names the protocol.
func TestTunnelOverExtendedConnect(t *testing.T) {
	k := &socket{t: t}
	k.site = serve(t, options{
		config: object{"provider": "openai"},
		before: []object{{"handler": "headers", "request": object{"set": object{":protocol": []string{"websocket"}}}}},
		handler: handlerFunc(func(w http.ResponseWriter, r *http.Request) error {
			in := wsutil.NewServerSideReader(r.Body)
			if _, err := in.NextFrame(); err != nil {
				return err
			}
			if _, err := io.Copy(io.Discard, in); err != nil {
				return err
			}
			return wsutil.WriteServerText(w, fmt.Appendf(nil, completedEvent, 1))
		}),
	})
	ask := ws.MustCompileFrame(ws.MaskFrame(ws.NewTextFrame([]byte(createEvent))))
	if _, back := k.site.do("CONNECT", socketPath, string(ask)); !strings.Contains(back, "canary-answer") {
		t.Fatalf("%q", back)
	}
	responses, tunnel := k.records()
	if len(responses) != 1 || responses[0].Usage.Total() != plugins.Known(26) || tunnel.EndState != storage.Complete {
		t.Errorf("%+v, %+v", responses, tunnel.Record)
	}
}

// A session of OpenAI's Live costs its length, also if it breaks off, and what it delegates has records of
// its own. An error of a command does not end it, and one that is the last event says why it broke off. Its events have what the user says: who omits requests
// omits them.
func TestALiveSession(t *testing.T) {
	const session = `"session":{"id":"sess_1","model":"gpt-live-1","status":"active","expires_at":1}`
	const closed = `{"type":"session.closed","event_id":"e4","reason":"close_requested",` + session + `,"usage":{"seconds":120}}`
	for _, c := range []struct {
		name, header string
		last         string // event, "" if the session breaks off
		end          storage.EndState
		status       int64
		errorType    string
	}{
		{"closed", "", closed, storage.Complete, 200, ""},
		{"broken off", "", "", storage.UpstreamAborted, 200, "server_error"},
		{"failed", "", `{"type":"error","error":{"type":"session_error","message":"the model is gone"}}`, storage.UpstreamAborted, 200, "session_error"},
		{"failed with a status", "", `{"type":"error","status":503,"error":{"type":"overloaded_error","message":"try later"}}`, storage.UpstreamAborted, 503, "overloaded_error"},
		{"its request omitted", "Service-Omit-Request", closed, storage.Complete, 200, ""},
		{"its response omitted", "Service-Omit-Response", closed, storage.Complete, 200, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var header []string
			if c.header != "" {
				header = []string{c.header, "yes"}
			}
			k := dial(t, options{config: object{"provider": "openai"}}, "/v1/live/sessions", "", header...)
			k.ask(`{"type":"session.start","session":{"model":"gpt-live-1","instructions":"canary-question"}}`)
			k.answer(`{"type":"session.started","event_id":"e1",` + session + `}`)
			k.ask(`{"type":"session.input_audio.append","audio":"canary-audio"}`)
			k.answer(`{"type":"session.input_transcript.delta","delta":"canary-question","start_ms":0,"end_ms":1}`,
				`{"type":"session.output_audio.delta","delta":"canary-audio"}`,
				`{"type":"session.usage.updated","event_id":"e2","usage":{"seconds":60}}`,
				`{"type":"error","error":{"type":"invalid_request_error","code":"unknown_event","message":"no such command"}}`,
				`{"type":"session.delegation.created","delegation":{"id":"d","target":"responses","type":"delegation","response_id":"resp_1"}}`,
				`{"type":"response.event","delegation_id":"d","event":{"type":"response.created","response":{"id":"resp_1","model":"gpt-5-mini","status":"in_progress","usage":null}}}`,
				`{"type":"response.event","delegation_id":"d","event":{"type":"response.output_text.delta","item_id":"i","output_index":0,"content_index":0,"delta":"canary-answer"}}`,
				`{"type":"response.event","delegation_id":"d","event":{"type":"response.completed","response":{"id":"resp_1","model":"gpt-5-mini","status":"completed","usage":{"input_tokens":1000,"output_tokens":100,"total_tokens":1100}}}}`,
				`{"type":"decision.event","event":{"type":"decision.completed","decision":{"model":"gpt-6-luna","answers":[{"type":"predicate","probability":0.9}],"usage":{"input_tokens":2000,"output_tokens":10,"total_tokens":2010}}}}`,
				`{"type":"session.usage.updated","event_id":"e3","usage":{"seconds":90.5}}`)
			if c.last != "" {
				k.answer(c.last)
			}
			k.upstream.Close()
			io.Copy(io.Discard, k.client)
			k.client.Close()
			records, _ := k.records()
			if len(records) != 3 {
				t.Fatalf("%d records", len(records))
			}
			for _, e := range records {
				text := string(e.Request.Data) + string(e.Response.Data)
				if strings.Contains(text, "canary-audio") || c.header == "Service-Omit-Request" && strings.Contains(text, "canary-question") ||
					c.header == "Service-Omit-Response" && len(e.Response.Data) > 0 {
					t.Errorf("kept %s", text)
				}
			}
			slices.SortFunc(records, func(a, b entry) int { return strings.Compare(a.Model, b.Model) })
			for i, want := range []struct {
				dialect  plugins.Dialect
				id       string
				usage    plugins.Usage
				cost     plugins.Nanodollars
				endState storage.EndState
			}{
				{plugins.Responses, "resp_1", plugins.Usage{Input: plugins.Known(1000), Output: plugins.Known(100)}, 1000*250 + 100*2000, storage.Complete},
				{plugins.Decisions, "", plugins.Usage{Input: plugins.Known(2000), Output: plugins.Known(10)}, 2000*100 + 10*500, storage.Complete},
				{plugins.LiveSessions, "sess_1", plugins.Usage{AudioDuration: plugins.KnownDuration(90500 * time.Millisecond)}, 75_416_667, c.end},
			} {
				status, errorType := int64(200), ""
				if want.dialect == plugins.LiveSessions {
					status, errorType = c.status, c.errorType
					if c.last == closed {
						want.usage.AudioDuration, want.cost = plugins.KnownDuration(2*time.Minute), 100_000_000
					}
				}
				if e := records[i]; e.Dialect != want.dialect || e.ResponseID != want.id || e.Usage != want.usage || e.Cost != plugins.KnownCost(want.cost) || e.EndState != want.endState ||
					e.Status != plugins.Known(status) || e.ErrorType != errorType {
					t.Errorf("record %d: %+v", i, e.Record)
				}
			}
		})
	}
}
