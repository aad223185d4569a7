package transcript

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// cassettes is a folder of recorded traffic, which is not part of this
// repository. Without it, the tests that replay it are skipped.
var cassettes = os.Getenv("WEIR_RECORDINGS")

// answer says where an answer in one piece has what a recording expects of it.
// A count is the sum of its places.
type answer struct {
	dialect           plugins.Dialect
	id, model, finish string
	input, output     []string
}

var answers = map[string]answer{
	"chat.completions": {plugins.Chat, "id", "model", "choices.0.finish_reason",
		[]string{"usage.prompt_tokens"}, []string{"usage.completion_tokens"}},
	"responses": {plugins.Responses, "id", "model", "status",
		[]string{"usage.input_tokens"}, []string{"usage.output_tokens"}},
	"messages": {plugins.Messages, "id", "model", "stop_reason",
		[]string{"usage.input_tokens", "usage.cache_read_input_tokens", "usage.cache_creation_input_tokens"},
		[]string{"usage.output_tokens"}},
	"generateContent": {plugins.GenerateContent, "responseId", "modelVersion", "candidates.0.finishReason",
		[]string{"usageMetadata.promptTokenCount", "usageMetadata.toolUsePromptTokenCount"},
		[]string{"usageMetadata.candidatesTokenCount", "usageMetadata.thoughtsTokenCount"}},
	"converse": {plugins.Converse, "none", "none", "stopReason",
		[]string{"usage.inputTokens", "usage.cacheReadInputTokens", "usage.cacheWriteInputTokens"},
		[]string{"usage.outputTokens"}},
	"invoke": {plugins.Invoke, "id", "model", "stop_reason",
		[]string{"usage.input_tokens", "inputTextTokenCount"},
		[]string{"usage.output_tokens", "results.0.tokenCount"}},
	"cohere.v2.chat": {plugins.CohereChat, "id", "none", "finish_reason",
		[]string{"usage.tokens.input_tokens"}, []string{"usage.tokens.output_tokens"}},
	"ollama.chat": {plugins.OllamaChat, "none", "model", "done_reason",
		[]string{"prompt_eval_count"}, []string{"eval_count"}},
	"ollama.generate": {plugins.OllamaGenerate, "none", "model", "done_reason",
		[]string{"prompt_eval_count"}, []string{"eval_count"}},
}

func TestStoredOfRecordings(t *testing.T) {
	index, err := os.ReadFile(filepath.Join(cassettes, "index.json"))
	if err != nil {
		t.Skip("no recordings beside the checkout")
	}
	for _, entry := range gjson.GetBytes(index, "entries").Array() {
		t.Run(entry.Get("name").Str, func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Join(cassettes, entry.Get("response_file").Str))
			if err != nil {
				t.Fatal(err)
			}
			a, ok := answers[entry.Get("endpoint").Str]
			if !ok {
				t.Fatalf("unknown endpoint %s", entry.Get("endpoint"))
			}
			contentType := entry.Get("response_headers.content-type").Str
			stored, storedType := formats[a.dialect].Stored(contentType, raw)
			if !entry.Get("stream").Bool() {
				if !bytes.Equal(stored, raw) || storedType != contentType {
					t.Errorf("an answer in one piece changed to %q of type %q", stored, storedType)
				}
				return
			}
			if storedType != jsonType || !json.Valid(stored) {
				t.Fatalf("stored %.300s of type %q", stored, storedType)
			}
			checkAnswer(t, a, gjson.ParseBytes(stored), entry.Get("expected"))
			for range 20 {
				raw = raw[:len(raw)*9/10]
				checkStored(t, a.dialect, contentType, raw)
			}
		})
	}
}

func checkAnswer(t *testing.T, a answer, stored, expected gjson.Result) {
	for place, want := range map[string]gjson.Result{
		a.id:     expected.Get("response_id"),
		a.model:  expected.Get("model"),
		a.finish: expected.Get("finish"),
	} {
		// Azure's id is in a later chunk than the recordings expect.
		if got := stored.Get(place); got.String() != want.String() && want.Str != "" {
			t.Errorf("%s is %s, want %s", place, got, want)
		}
	}
	for name, places := range map[string][]string{"input_tokens": a.input, "output_tokens": a.output} {
		var got int64
		for _, place := range places {
			got += stored.Get(place).Int()
		}
		if want := expected.Get("usage." + name).Int(); got != want {
			t.Errorf("%s are %d, want %d", name, got, want)
		}
	}
	if formats[a.dialect].OutputText([]byte(stored.Raw)) == "" && expected.Get("finish").Str == "stop" {
		t.Errorf("no output text in %.300s", stored.Raw)
	}
}
