package llmgateway

import (
	"net/http"
	"strings"
	"testing"
)

const nativeEvents = "event: response.created\n" +
	`data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","model":"m","status":"in_progress"}}` + "\n\n" +
	": a comment\n\n" +
	"event: response.output_text.delta\n" +
	`data: {"type":"response.output_text.delta","sequence_number":1,"delta":"ä\"sequence_number\":9"}` + "\n\n" +
	"event: response.completed\n" +
	`data: {"type":"response.completed","sequence_number":2,"response":{"id":"resp_1","model":"m","status":"completed","usage":{"input_tokens":1,"output_tokens":2}}}` + "\n\n"

// However a provider's stream is cut into chunks, the client gets its bytes.
func TestNativeBytesPass(t *testing.T) {
	for name, events := range map[string]string{"LF": nativeEvents, "CRLF": strings.ReplaceAll(nativeEvents, "\n", "\r\n"), "no last line": strings.TrimRight(nativeEvents, "\n")} {
		for _, size := range []int{1, 7, 100, len(events)} {
			s := serve(t, map[string][]upstream{"raw": {func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for rest := events; rest != ""; {
					n := min(size, len(rest))
					if _, err := w.Write([]byte(rest[:n])); err != nil {
						t.Error(err)
					}
					_ = http.NewResponseController(w).Flush()
					rest = rest[n:]
				}
			}}})
			resp, body := s.post(`{"model":"raw/m","input":"hi","stream":true}`)
			if body != events {
				t.Errorf("%s in chunks of %d: the client got\n%q", name, size, body)
			}
			if r := s.kept.all()[0]; r.response != events || r.Usage.Output.N != 2 || resp.Header.Get("Service-Id") != r.ID.String() {
				t.Errorf("%s in chunks of %d: the record is %+v", name, size, r)
			}
		}
	}
}

func TestLastEvent(t *testing.T) {
	for stream, want := range map[string]int{
		"": 0, "data: a": 0, "data: a\n": 0, "data: a\n\n": 9, "data: a\n\ndata": 9, "data: a\r\n\r\nda": 11, "data: a\r\rx": 9,
	} {
		if got := lastEvent([]byte(stream), 0); got != want {
			t.Errorf("lastEvent(%q) = %d, want %d", stream, got, want)
		}
	}
}

func TestNumber(t *testing.T) {
	for text, want := range map[string]int{"12,": 12, " 7}": 7, "": 0, "x": 0, "99999999999": 999999999} {
		if got := number([]byte(text)); got != want {
			t.Errorf("number(%q) = %d, want %d", text, got, want)
		}
	}
}
