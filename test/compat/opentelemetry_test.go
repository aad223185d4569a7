package compat

import (
	"net/http/httptest"
	"os/exec"
	"path"
	"slices"
	"testing"
)

// TestOpenTelemetryExamples runs the programs of examples/opentelemetry: the
// records of their calls have what the recorded answer says.
func TestOpenTelemetryExamples(t *testing.T) {
	if !*withClients {
		t.Skip("the examples need Node.js and Python: see README.md, then go test ./test/compat -compat")
	}
	all, err := loadRecordings("testdata")
	if err != nil {
		t.Fatal(err)
	}
	provider := httptest.NewServer(newReplayServer(all, nil))
	defer provider.Close()
	t.Setenv("OPENAI_API_KEY", "none")
	t.Setenv("WEIR_API_KEY", "weir-quickstart")
	for _, example := range []struct{ interpreter, program, recording string }{
		{"node", "../../examples/opentelemetry/node/ask.js", "chat"},
		{"../../clients/python/.venv/bin/python", "../../examples/opentelemetry/python/ask.py", "chat_tools_stream"},
	} {
		t.Run(path.Base(example.program), func(t *testing.T) {
			answer := all[slices.IndexFunc(all, func(r *Recording) bool { return r.Name == example.recording })]
			w := startQuickstart(t, provider.URL)
			t.Setenv("WEIR_BASE_URL", w.url)
			t.Setenv("OPENAI_BASE_URL", provider.URL+answer.Prefix()+"/v1")
			if out, err := exec.Command(example.interpreter, example.program).CombinedOutput(); err != nil {
				t.Fatalf("%v (README.md says what to install)\n%s", err, out)
			}
			record := w.record(t, "ada")
			checkRecord(t, record, answer)
			if got := record.Get("provider").Str; got != "openai" {
				t.Errorf("the provider is %q", got)
			}
			if got := record.Get("request_body.messages.0.content").Str; got != "What does this cost?" {
				t.Errorf("the stored question is %q", got)
			}
		})
	}
}
