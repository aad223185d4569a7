package bedrock

import (
	"net/http"
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

// target is a model that the catalogue does not describe.
var target = translate.Target{Model: "us.anthropic.claude-3-7-sonnet-20250219-v1:0", BaseURL: "http://localhost", Key: "secret"}

// fixtures are those of testdata, whose streams eventStream encodes.
func fixtures(t testing.TB) []plugintest.Fixture {
	all := plugintest.Fixtures(t, "testdata")
	for i := range all {
		all[i].Stream, all[i].StreamType = eventStream(t, string(all[i].Stream)), "application/vnd.amazon.eventstream"
	}
	return all
}

func TestFixtures(t *testing.T) {
	plugintest.Run(t, new(Provider), target, fixtures(t))
	plugintest.Named(t, fixtures(t), "tools_alone").InTurn(t, new(Provider))
}

// FuzzDecode: whatever the provider sends, the client gets a legal stream or
// object. Streams are fuzzed as the lines that their frames are made of, and
// then go on with the lines as they are.
func FuzzDecode(f *testing.F) {
	plugintest.Fuzz(f, new(Provider), plugintest.Fixtures(f, "testdata"), func(t testing.TB, lines []byte) []byte {
		if len(lines) > 1<<15 { // a header is no longer
			return lines
		}
		return append(eventStream(t, string(lines)), lines...)
	})
}

func TestResponseID(t *testing.T) {
	resp := plugintest.Response(http.StatusOK, fixture(t, "text.json"))
	resp.Header.Set("X-Amzn-Requestid", "b9ea026a")
	a := assembler(false)
	if err := new(Provider).Decode(resp, a); err != nil || a.Info().ResponseID != "b9ea026a" {
		t.Errorf("got %q, %v", a.Info().ResponseID, err)
	}
}

func TestCassettes(t *testing.T) {
	plugintest.Cassettes(t, "converse", func(string) translate.Provider { return new(Provider) })
}

func TestTruncationIsIncomplete(t *testing.T) {
	for stop, want := range map[string]string{
		"end_turn": "completed", "stop_sequence": "completed", "tool_use": "completed", "of_the_future": "incomplete",
		"max_tokens": "incomplete", "model_context_window_exceeded": "incomplete",
		"guardrail_intervened": "incomplete", "content_filtered": "incomplete",
	} {
		body := `{"output":{"message":{"role":"assistant","content":[{"text":"Once"}]}},"stopReason":"` + stop + `"}`
		r := plugintest.Answer(t, new(Provider), `{"model":"m","input":"hi"}`, []byte(body))
		if got := r.Get("status").Str; got != want || r.Get("output.0.status").Str != want {
			t.Errorf("%s: got %s", stop, r)
		}
	}
}

// Claude says which stop sequence it has written.
func TestStopSequenceIsNamed(t *testing.T) {
	p, err := translate.ParseRequest([]byte(`{"model":"m","input":"hi","stop":["a","b"]}`))
	if err != nil {
		t.Fatal(err)
	}
	a := translate.NewAssembler(p, nil, translate.Options{})
	body := `{"output":{"message":{"role":"assistant","content":[{"text":"Once"}]}},"stopReason":"stop_sequence","additionalModelResponseFields":{"stop_sequence":"b"}}`
	if err := new(Provider).Decode(plugintest.Response(http.StatusOK, body), a); err != nil || a.StopSequence() != "b" {
		t.Errorf("%q, %v", a.StopSequence(), err)
	}
}

// BenchmarkDecode reads a stream of 200 events of text.
func BenchmarkDecode(b *testing.B) {
	body := eventStream(b, `messageStart {"p":"abcdefgh","role":"assistant"}`+"\n"+
		strings.Repeat(`contentBlockDelta {"contentBlockIndex":0,"delta":{"text":" and then some"},"p":"abcdefghijklmnopqrstuvwxyzABCDEFGHI"}`+"\n", 196)+
		`contentBlockStop {"contentBlockIndex":0}`+"\n"+
		`messageStop {"stopReason":"end_turn"}`+"\n"+
		`metadata {"usage":{"inputTokens":9,"outputTokens":20,"totalTokens":29}}`)
	plugintest.BenchmarkDecode(b, new(Provider), string(body))
}
