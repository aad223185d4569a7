package llmlog

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// What is masked reaches the provider and the client as it was, and not the log.
func TestMaskedValuesAreForwarded(t *testing.T) {
	const canary = "alice@example.com"
	var sent bytes.Buffer
	s := serve(t, options{
		config: object{}, app: object{"mask": []object{{"kinds": []string{"email"}}}}, accessLogs: true, encoder: "llm",
		handler: caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
			_, err := sent.ReadFrom(r.Body)
			w.Header().Set("Content-Type", "text/event-stream")
			for _, part := range []string{"To alice@exa", "mple.com."} {
				fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", part)
			}
			fmt.Fprint(w, "data: [DONE]\n\n")
			return err
		}),
	})
	body := `{"model":"m","stream":true,"user":"alice@example.com","messages":[{"role":"user","content":"alice\u0040example.com"}]}`
	_, answer := s.do(http.MethodPost, "/v1/chat/completions", body)
	if sent.String() != body || !strings.Contains(answer, "alice@exa") || !strings.Contains(answer, "mple.com.") {
		t.Errorf("sent %s, answered %s", &sent, answer)
	}
	s.record()
	if log := s.logs.String(); strings.Contains(log, canary) {
		t.Errorf("logged: %s", log)
	}
}

// A request with what is refused reaches no provider, and the answer does not repeat it.
func TestRefusedValuesReachNoProvider(t *testing.T) {
	asked := false
	s := serve(t, options{
		config: object{}, app: object{"mask": []object{{"kinds": []string{"card"}, "on_match": "refuse"}}},
		handler: caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error {
			asked = true
			return nil
		}),
	})
	resp, answer := s.do(http.MethodPost, "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"4111 1111 1111 1111"}]}`)
	if resp.StatusCode != http.StatusBadRequest || asked || !strings.Contains(answer, "'card'") || strings.Contains(answer, "1111") {
		t.Errorf("%d, asked: %v, %s", resp.StatusCode, asked, answer)
	}
}
