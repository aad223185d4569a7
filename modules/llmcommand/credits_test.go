package llmcommand

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestCredits(t *testing.T) {
	const answer = `[{"org":"acme","store":"default","balance":70.125,"granted":70.125,"spent":0.000000001,"reserved":0}]`
	var asked string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/llm/process" {
			io.WriteString(w, aProcess)
			return
		}
		body, _ := io.ReadAll(r.Body)
		asked = r.Method + " " + r.URL.Path + " " + string(body)
		io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	t.Setenv(adminEnv, server.Listener.Addr().String())

	const table = processLine + `
ORG   STORE    BALANCE  GRANTED         SPENT  RESERVED
acme  default   $70.13   $70.13  $0.000000001     $0.00
`
	for _, tc := range []struct {
		args       []string
		asks, want string
	}{
		{nil, "GET /llm/credits ", table},
		{[]string{"acme", "20.125"}, `POST /llm/credits {"org":"acme","amount":"20.125"}`, table},
		{[]string{"--format", "json"}, "GET /llm/credits ", answer + "\n"},
	} {
		var out bytes.Buffer
		if _, err := run(t.Context(), creditsCommand, &out, tc.args...); err != nil || out.String() != tc.want || asked != tc.asks {
			t.Errorf("%q asks %q and shows\n%s, %v, want %q and\n%s", tc.args, asked, &out, err, tc.asks, tc.want)
		}
	}
	for _, args := range [][]string{{"acme"}, {"acme", "1", "2"}, {"--format", "csv"}} {
		if _, err := run(t.Context(), creditsCommand, new(bytes.Buffer), args...); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}
