package compat

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
)

// telemetrySetups are the set-ups of python/telemetry.py, by the file in python/telemetry that says
// what they need, and those of node/telemetry/telemetry.js.
var telemetrySetups = map[string][]string{
	"openinference": {
		"openinference/openai", "openinference/anthropic", "openinference/google-genai", "openinference/mistralai", "openinference/groq", "openinference/bedrock",
		"openinference/litellm", "openinference/llama-index", "openinference/openai-agents", "openinference/smolagents",
		"anthropic", "logfire/openai", "logfire/anthropic", "logfire/litellm", "logfire/openai-agents", "langfuse", "litellm",
	},
	"frameworks":      {"openinference/haystack", "openinference/agno"},
	"adk":             {"google-adk", "openinference/google-adk"},
	"pydantic-ai":     {"pydantic-ai"},
	"strands":         {"strands"},
	"openllmetry":     {"openllmetry/openai", "openllmetry/anthropic"},
	"semantic-kernel": {"semantic-kernel"},
	"langchain":       {"openinference/langchain", "openinference/langchain+sdks", "langsmith", "langsmith+sdks"},
	"dspy":            {"openinference/dspy"},
	"crewai":          {"openinference/crewai"},
	"openlit":         {"openlit", "openlit/langchain"},
	"traceloop":       {"traceloop", "traceloop/langchain"},
	"opentelemetry":   {"opentelemetry/openai", "opentelemetry/anthropic", "opentelemetry/langchain", "opentelemetry/google-genai"},
	"node":            {"ai", "openinference/openai", "openinference/anthropic", "openllmetry/openai"},
}

// telemetryFaults are what libraries themselves report wrongly: what the test says of it, by set-up.
// A fault that a library has no more fails the test, too.
var telemetryFaults = map[string][]string{
	// Without usage; the record has no tokens.
	"openinference/groq": {`no record`, `a record of no call: .*"prompt_tokens":null`}, // a stream is its Python object
	// Without the parts of the usage: cached tokens are priced as plain input.
	"openinference/smolagents": {`prompt_cache_read_tokens is 0`, `reasoning_tokens is 0`, `the cost is`},
	"openinference/haystack":   {`prompt_cache_read_tokens is 0`, `reasoning_tokens is 0`, `the cost is`},
	"openinference/agno":       {`reasoning_tokens is 0`},
	// Streams and embeddings without usage, and no span of a refused call.
	"node/openinference/openai": {`no record`, `a record of no call: .*"prompt_tokens":null`, `two records have 0 tokens`, `refused`},
	// Besides, neither the parts of the usage nor embeddings.
	"node/openllmetry/openai": {`no record`, `a record of no call: .*"prompt_tokens":null`, `prompt_cache_read_tokens is 0`, `reasoning_tokens is 0`, `the cost is`, `refused`},
	"semantic-kernel":         {`prompt_cache_read_tokens is 0`, `reasoning_tokens is 0`, `the cost is`},
	"litellm":                 {`prompt_cache_read_tokens is 0`, `reasoning_tokens is 0`, `the cost is`}, // of OpenAI
	"strands":                 {`reasoning_tokens is 0`},
	"openllmetry/openai":      {`reasoning_tokens is 0`}, // of one call
	// LangChain's callbacks know no embeddings.
	"openinference/langchain": {`text-embedding-3-small: no record`},
	"opentelemetry/langchain": {`text-embedding-3-small: no record`},
	"langsmith":               {`text-embedding-3-small: no record`},
	"traceloop":               {`reasoning_tokens is 0`}, // of one call
	"traceloop/langchain":     {`reasoning_tokens is 0`},
	"openinference/crewai":    {`refused`},                          // of Anthropic's SDK, which CrewAI requires in a version that only an old instrumentation knows
	"openlit":                 {`reasoning_tokens is 0`, `refused`}, // a refused call of Anthropic has no attributes
	// Tokens of streams are guessed by their words, and those from a cache are missing.
	"openlit/langchain": {`no record`, `a record of no call`, `reasoning_tokens is 0`},
	// All calls of an agent are one span, whose attributes are those of the last.
	"openinference/google-adk": {`no record`},
}

// TestTelemetry has libraries report calls over OpenTelemetry, as their users set them up. Each call
// of the provider has one record, with the tokens that the provider stated, and with their price.
func TestTelemetry(t *testing.T) {
	if !*withClients || !*full {
		t.Skip("the libraries need Python and Node.js: see README.md, then go test ./test/compat -compat -full -run Telemetry")
	}
	stating := new(statingProvider)
	provider := httptest.NewServer(stating)
	defer provider.Close()
	w := startQuickstart(t, provider.URL)
	for _, needs := range slices.Sorted(maps.Keys(telemetrySetups)) {
		for _, setup := range telemetrySetups[needs] {
			name := setup
			program := []string{"python/telemetry/." + needs + "/bin/python", "python/telemetry.py", setup}
			if needs == "node" {
				name = "node/" + setup
				program = []string{"node", "node/telemetry/telemetry.js", setup}
			}
			t.Run(name, func(t *testing.T) {
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				command := exec.CommandContext(ctx, program[0], program[1:]...)
				command.Env = append(os.Environ(), "PROVIDER_URL="+provider.URL,
					"OTEL_EXPORTER_OTLP_ENDPOINT="+w.url, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="+w.url+"/v1/traces",
					"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf", "OTEL_EXPORTER_OTLP_TRACES_HEADERS=Authorization=Bearer%20weir-quickstart",
					"OTEL_EXPORTER=otlp_http", "OTEL_ENDPOINT="+w.url+"/v1/traces", "OTEL_HEADERS=Authorization=Bearer%20weir-quickstart", // LiteLLM's
					"LANGFUSE_BASE_URL="+w.url, "LANGFUSE_HOST="+w.url, "LANGFUSE_PUBLIC_KEY=weir", "LANGFUSE_SECRET_KEY=weir-quickstart",
				)
				out, err := command.CombinedOutput()
				calls := stating.take()
				if err != nil {
					t.Fatalf("%v (README.md says what to install)\n%.3000s", err, out)
				}
				if len(calls) == 0 {
					t.Fatalf("the provider was not called\n%.3000s", out)
				}
				var records []gjson.Result
				w.await(t, began, len(calls), &records)
				problems := checkTelemetry(calls, records)
				for _, known := range telemetryFaults[name] {
					fault := regexp.MustCompile(known)
					if !slices.ContainsFunc(problems, fault.MatchString) {
						t.Errorf("the library has no more the fault %q", known)
					}
					problems = slices.DeleteFunc(problems, fault.MatchString)
				}
				for _, p := range problems {
					t.Error(p)
				}
				if t.Failed() {
					t.Logf("%.3000s", out)
				}
			})
		}
	}
}

// await waits until there are so many records since a time, or no more come.
func (w *weir) await(t *testing.T, since time.Time, calls int, records *[]gjson.Result) {
	t.Helper()
	for end := time.Now().Add(3 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		body := fmt.Sprintf(`{"filter":{"request_response_rmt":{"request_created_at":{"gte":%q}}},"limit":200}`, since.UTC().Format("2006-01-02T15:04:05.000Z"))
		r, err := http.NewRequestWithContext(t.Context(), "POST", w.url+"/v1/request/query-clickhouse", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer weir-quickstart")
		_, _, answer := do(t, r)
		*records = gjson.GetBytes(answer, "data").Array()
		if len(*records) >= calls || time.Now().After(end) {
			return
		}
	}
}

// checkTelemetry says in what records differ from what a provider has stated.
func checkTelemetry(calls []statedCall, records []gjson.Result) (problems []string) {
	problem := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	var failed []gjson.Result
	left := make(map[int64]gjson.Result)
	for _, r := range records {
		if r.Get("end_state").Str == "failed" || r.Get("response_status").Int() >= 400 {
			failed = append(failed, r)
			continue
		}
		n := r.Get("prompt_tokens").Int()
		if _, twice := left[n]; twice {
			problem("two records have %d tokens", n)
			n = -int64(len(left))
		}
		left[n] = r
	}
	refused := 0
	for _, c := range calls {
		if c.status != http.StatusOK {
			refused++
			continue
		}
		u := c.usage
		r, there := left[u.Input.N]
		if !there {
			problem("%s %s: no record with %d tokens", c.provider, c.model, u.Input.N)
			continue
		}
		delete(left, u.Input.N)
		for field, want := range map[string]int64{
			"completion_tokens": u.Output.N, "prompt_cache_read_tokens": u.CacheRead.N, "prompt_cache_write_tokens": u.CacheWrite.N, "reasoning_tokens": u.Reasoning.N,
		} {
			if got := r.Get(field).Int(); got != want {
				problem("%s %s: %s is %d, want %d", c.provider, c.model, field, got, want)
			}
		}
		want := catalog.Default().Cost(c.provider, c.model, u, catalog.Conditions{At: time.Now()})
		if got := r.Get("cost"); want.Valid != (got.Type == gjson.Number) || want.Valid && plugins.Nanodollars(math.Round(got.Num*1e9)) != want.N {
			problem("%s %s: the cost is %s, want %v (provider %s, model %s)", c.provider, c.model, got.Raw, want.N, r.Get("provider"), r.Get("model"))
		}
	}
	if len(failed) != refused {
		problem("%d calls were refused, and %d records say so: %.1500s", refused, len(failed), failed)
	}
	for _, r := range left {
		problem("a record of no call: %.600s", r.Get(`@this.{provider,model,prompt_tokens,completion_tokens,end_state,response_status,response_id,span_id,properties}`).Raw)
	}
	return problems
}
