package providers

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/gobwas/ws"

	"github.com/weirhq/weir/plugins/observe"
)

const (
	team   = "team 16f2151a-40f4-4a80-8ad0-cae00c27e8dd"
	masked = "team ************************************"
)

// No error in an answer names the platform's account, however it is framed and comes. What a model writes
// stays, and so do the errors of an account that is the organisation's own.
func TestErrorsDoNotNameTheAccount(t *testing.T) {
	long := strings.Repeat("x", observe.MaxStatement)
	for name, c := range map[string]struct {
		status int
		kind   string
		body   string
		want   string
	}{
		"a refusal":                     {403, "application/json", `{"message":"No, ` + team + `."}`, `{"message":"No, ` + masked + `."}`},
		"a refusal in words":            {429, "text/plain", "No,\n\n" + team, "No,\n\n" + masked},
		"a long refusal":                {404, "application/json", `{"error":"` + long + long + " " + team + `"}`, `{"error":"` + long + long + " " + masked + `"}`},
		"an error with 200":             {200, "application/json", `{"error":{"message":"No, ` + team + `."}}`, `{"error":{"message":"No, ` + masked + `."}}`},
		"lines of an error with 200":    {200, "application/json", "{\n \"error\": {\n  \"message\": \"" + team + "\"\n }\n}", "{\n \"error\": {\n  \"message\": \"" + masked + "\"\n }\n}"},
		"an event":                      {200, "text/event-stream", "data: {\"d\":\"" + team + "\"}\n\ndata: {\"error\":{\"m\":\"" + team + "\"}}\n\ndata: {\"d\":\"" + team + "\"}\n\n", "data: {\"d\":\"" + team + "\"}\n\ndata: {\"error\":{\"m\":\"" + masked + "\"}}\n\ndata: {\"d\":\"" + team + "\"}\n\n"},
		"an event of that type":         {200, "text/event-stream", "event: error\r\ndata: {\"type\":\"error\",\"m\":\"" + team + "\"}\r\n\r\n", "event: error\r\ndata: {\"type\":\"error\",\"m\":\"" + masked + "\"}\r\n\r\n"},
		"an event without its end":      {200, "text/event-stream", "data: {\"error\":\"" + team + "\"}", "data: {\"error\":\"" + masked + "\"}"},
		"two events":                    {200, "text/event-stream", "data: {\"error\":\"" + team + "\"}\n\ndata: {\"error\":\"" + team + "\"}\n\n", "data: {\"error\":\"" + masked + "\"}\n\ndata: {\"error\":\"" + masked + "\"}\n\n"},
		"an answer":                     {200, "application/json", `{"error": null,"text":"` + team + `","last":"error`, `{"error": null,"text":"` + team + `","last":"error`},
		"an answer about an error":      {200, "application/json", `{"text":"\"error\": ` + team + `"}`, `{"text":"\"error\": ` + team + `"}`},
		"a long answer with an error":   {200, "application/json", `{"error":{},"text":"` + long + team + `"}`, `{"error":{},"text":"` + long + team + `"}`},
		"frames that have checksums":    {200, "application/vnd.amazon.eventstream", `{"error":"` + team + `"}`, `{"error":"` + team + `"}`},
		"nothing":                       {500, "", "", ""},
		"the beginning of what decides": {200, "application/json", `{"error": nul`, `{"error": nul`},
	} {
		for way, pieces := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "end": iotest.DataErrReader, "half": iotest.HalfReader} {
			for _, platform := range []bool{true, false} {
				answer := &http.Response{StatusCode: c.status, Header: http.Header{"Content-Type": {c.kind}}, Body: io.NopCloser(pieces(strings.NewReader(c.body)))}
				want := c.want
				if !platform {
					want = c.body
				}
				var body io.Reader = sendFor(t, platform, answer).Body
				if way == "half" {
					body = iotest.OneByteReader(body)
				}
				if got, err := io.ReadAll(body); string(got) != want || err != nil {
					t.Errorf("%s, %s, platform %v: %.200q, %v", name, way, platform, got, err)
				}
			}
		}
	}
}

// No event waits for the next one.
func TestEventsDoNotWaitToBeMasked(t *testing.T) {
	sent, provider := io.Pipe()
	body := sendFor(t, true, &http.Response{StatusCode: http.StatusOK, Header: make(http.Header), Body: sent}).Body
	for _, event := range []string{"data: {\"error\":{}}\n\n", "data: {\"error\":null}\n\n", "data: {\"error\":1}\n\ndata: {\"error\":2}\n\n"} {
		go func() { _, _ = io.WriteString(provider, event) }()
		got := make([]byte, len(event))
		if _, err := io.ReadFull(body, got); string(got) != event || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
}

// The errors in a WebSocket do not name the account.
func TestWebSocketsDoNotNameTheAccount(t *testing.T) {
	frame := func(payload string) string { return string(ws.MustCompileFrame(ws.NewTextFrame([]byte(payload)))) }
	sent := frame(`{"type":"error","error":{"message":"`+team+`"}}`) + frame(`{"delta":"`+team+`"}`)
	want := frame(`{"type":"error","error":{"message":"`+masked+`"}}`) + frame(`{"delta":"`+team+`"}`)
	answer := &http.Response{StatusCode: http.StatusSwitchingProtocols, Header: make(http.Header), Body: readWriteCloser{strings.NewReader(sent), io.Discard, http.NoBody}}
	if got, err := io.ReadAll(sendFor(t, true, answer).Body); string(got) != want || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// sendFor returns the answer as Send gives it, for the platform's account or another.
func sendFor(t *testing.T, platform bool, answer *http.Response) *http.Response {
	a := &Account{key: "sk-aaab-aaac-0123", standIn: "stand-in", Platform: platform, Transport: NewTransport(roundTrip(func(*http.Request) (*http.Response, error) { return answer, nil }))}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://example.com", nil)
	resp, err := a.Send(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}
