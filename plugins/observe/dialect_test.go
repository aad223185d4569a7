package observe

import (
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins"
)

func TestDetect(t *testing.T) {
	for _, c := range []struct {
		provider, path string
		want           plugins.Dialect
		model          string
	}{
		{"openai", "/v1/chat/completions", plugins.Chat, ""},
		{"openai", "/v1/chat/completions/", plugins.Chat, ""},
		{"openai", "/v1/responses", plugins.Responses, ""},
		{"openai", "/v1/responses/resp_1", plugins.Unknown, ""},
		{"openai", "/v1/completions", plugins.Completions, ""},
		{"openai", "/v1/embeddings", plugins.Embeddings, ""},
		{"openai", "/v1/models", plugins.Unknown, ""},
		{"openai", "/v1/responses/compact", plugins.Compaction, ""},
		{"openai", "/v1/responses/input_tokens", plugins.InputTokens, ""},
		{"openai", "/v1/images/edits", plugins.Images, ""},
		{"azure", "/openai/deployments/whisper/audio/translations", plugins.Transcription, "whisper"},
		{"azure", "/openai/realtime", plugins.Realtime, ""},
		{"openai", "/v1/threads/runs", plugins.Runs, ""},
		{"azure", "/openai/threads/t/runs/r/submit_tool_outputs", plugins.Runs, ""},
		{"openai", "/v1/agents/sessions", plugins.Runs, ""},
		{"openai", "/v1/realtime/sessions", plugins.Unknown, ""},
		{"anthropic", "/v1/sessions", plugins.Runs, ""},
		{"anthropic", "/v1/sessions/s/events", plugins.Unknown, ""},
		{"", "/v1/threads/t/runs", plugins.Unknown, ""},
		{"", "/v2/embed", plugins.CohereEmbed, ""},
		{"ollama", "/api/embed", plugins.OllamaEmbed, ""},
		{"cohere", "/v1/chat", plugins.CohereText, ""},
		{"", "/v1/chat", plugins.Unknown, ""},
		{"gemini", "/v1beta/models/imagen-x:predict", plugins.Predict, "imagen-x"},
		{"gemini", "/v1beta/models/e:embedContent", plugins.EmbedContent, "e"},
		{"gemini", "/v1beta/interactions", plugins.Interactions, ""},
		{"gemini", "/v1beta/models/:generateContent", plugins.Unknown, ""},
		{"openai", "/v1/threads/thread_1/messages", plugins.Unknown, ""},
		{"azure", "/openai/deployments/my-gpt/chat/completions", plugins.Chat, "my-gpt"},
		{"azure", "/openai/deployments/ada%202/embeddings", plugins.Embeddings, "ada 2"},
		{"openai", "/v1/engines/davinci/completions", plugins.Completions, "davinci"},
		{"azure", "/openai/engines/ada/embeddings", plugins.Embeddings, "ada"},
		{"", "/engines/openai/gpt-5/chat/completions", plugins.Chat, "openai/gpt-5"},
		{"", "/models/meta/llama/v1/chat/completions", plugins.Chat, "meta/llama"},
		{"mistral", "/v1/agents/completions", plugins.Chat, ""},
		{"anthropic", "/v1/messages", plugins.Messages, ""},
		{"anthropic", "/v1/messages/count_tokens", plugins.CountTokens, ""},
		{"gemini", "/v1beta/models/gemini-x:generateContent", plugins.GenerateContent, "gemini-x"},
		{"gemini", "/v1beta/models/gemini-x:streamGenerateContent", plugins.GenerateContent, "gemini-x"},
		{"gemini", "/v1beta/models/gemini-x:countTokens", plugins.Unknown, ""},
		{"gemini", "/v1beta/openai/chat/completions", plugins.Chat, ""},
		{"vertex", "/v1/projects/p/locations/l/publishers/anthropic/models/claude-x@1:streamRawPredict", plugins.Messages, "claude-x@1"},
		{"vertex", "/v1/projects/p/locations/l/publishers/mistralai/models/m:rawPredict", plugins.Chat, "m"},
		{"bedrock", "/model/us.anthropic.claude-x-v1%3A0/converse", plugins.Converse, "us.anthropic.claude-x-v1:0"},
		{"bedrock", "/model/us.anthropic.claude-x-v1:0/converse-stream", plugins.Converse, "us.anthropic.claude-x-v1:0"},
		{"bedrock", "/model/amazon.titan/invoke", plugins.Invoke, "amazon.titan"},
		{"bedrock", "/model/arn:aws:bedrock:us-east-1:1:inference-profile/us.meta.llama/invoke-with-response-stream",
			plugins.Invoke, "arn:aws:bedrock:us-east-1:1:inference-profile/us.meta.llama"},
		{"bedrock", "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fp/converse",
			plugins.Converse, "arn:aws:bedrock:us-east-1:1:inference-profile/p"},
		{"cohere", "/v2/chat", plugins.CohereChat, ""},
		{"ollama", "/api/chat", plugins.OllamaChat, ""},
		{"", "/api/generate", plugins.OllamaGenerate, ""},
		{"", "", plugins.Unknown, ""},
	} {
		d := Detect(c.provider, c.path)
		if d != c.want {
			t.Errorf("%s: dialect %q, want %q", c.path, d, c.want)
		}
		if d == plugins.Unknown {
			continue
		}
		if got := PathModel(d, c.path); got != c.model {
			t.Errorf("%s: model %q, want %q", c.path, got, c.model)
		}
	}
}

func TestProvider(t *testing.T) {
	for host, want := range map[string]string{
		"api.openai.com":                                   "openai",
		"API.OpenAI.com:443":                               "openai",
		"eu.api.openai.com":                                "openai",
		"me.openai.azure.com":                              "azure",
		"me.services.ai.azure.com":                         "azure",
		"generativelanguage.googleapis.com":                "gemini",
		"aiplatform.googleapis.com":                        "vertex",
		"us-central1-aiplatform.googleapis.com":            "vertex",
		"aiplatform.eu.rep.googleapis.com":                 "vertex",
		"storage.googleapis.com":                           "",
		"bedrock-runtime.us-east-1.amazonaws.com":          "bedrock",
		"bedrock-runtime-fips.us-east-1.amazonaws.com":     "bedrock",
		"v-1.bedrock-runtime.us-east-1.vpce.amazonaws.com": "bedrock",
		"bedrock-mantle.us-east-1.api.aws":                 "bedrock",
		"s3.amazonaws.com":                                 "",
		"api.x.ai":                                         "xai",
		"us-east-1.api.x.ai":                               "xai",
		"127.0.0.1:11434":                                  "ollama",
		"[::1]:11434":                                      "ollama",
		"notapi.openai.com.example":                        "",
		"openai.com":                                       "",
		"":                                                 "",
	} {
		if got := Provider(host); got != want {
			t.Errorf("%s: %q, want %q", host, got, want)
		}
	}
}

// Each dialect is found by one of its own paths, and no two claim the same.
func TestDialectsAreFoundByTheirPaths(t *testing.T) {
	for name, d := range dialects {
		for _, ending := range d.Dialect.Paths {
			path := "/base" + strings.ReplaceAll(ending, "{model}", "some/model")
			provider := ""
			if len(d.Providers) > 0 {
				provider = d.Providers[0]
			}
			if got := Detect(provider, path); got != name {
				t.Errorf("%s is of %q, want %q", path, got, name)
			}
			if model := PathModel(name, path); strings.Contains(ending, "{model}") != (model != "") {
				t.Errorf("%s names the model %q", path, model)
			}
		}
	}
}

func TestRegister(t *testing.T) {
	const name = "test_dialect"
	Register(Dialect{
		Name:      name,
		Operation: "embeddings",
		Paths:     []string{"/generate", "compose"},
		Providers: []string{"acme"},
		Signs:     []string{`kind:"acme.piece"`},
		Request:   Table{"engine": Model},
		Response:  Table{"engine": Model, "words": Output},
		Variants:  map[string]Table{"acme": {"price": Cost}},
	})
	defer func() {
		delete(dialects, name)
		delete(unknown.signs, "kind")
		delete(endings, "")
		endings["generate"] = slices.DeleteFunc(endings["generate"], func(e ending) bool { return e.of.Name == name })
	}()
	if got := Detect("acme", "/api/generate"); got != name { // though Ollama's is longer
		t.Errorf("acme's path is of %q", got)
	}
	if got := Detect("acme", "/v1/recompose/"); got != name { // an ending need not be a whole segment
		t.Errorf("acme's other path is of %q", got)
	}
	if got := Detect("ollama", "/api/generate"); got != plugins.OllamaGenerate {
		t.Errorf("ollama's path is of %q", got)
	}
	if got := readRequest(name, []byte(`{"engine":"e"}`), chunkings["bytes"]); got.Model != "e" {
		t.Errorf("a request reads as %+v", got)
	}
	want := plugins.ResponseInfo{Dialect: name, Model: "e", Phase: plugins.Ended,
		Usage: plugins.Usage{Output: known(3), ReportedCost: plugins.KnownCost(1_000_000)}}
	body := []byte(`{"kind":"acme.piece","engine":"e","words":3,"price":0.001}`)
	for _, d := range []plugins.Dialect{name, plugins.Unknown} {
		if got := observe(d, "acme", jsonType, body, chunkings["sevens"]); got != want {
			t.Errorf("as %q a response reads as %+v", d, got)
		}
	}
	if got := Operation(name); got != "embeddings" {
		t.Errorf("the operation is %q", got)
	}
	for _, d := range []Dialect{{}, {Name: plugins.Chat}, {Name: "other", Signs: []string{"no colon"}}} {
		func() {
			defer delete(dialects, "other")
			defer func() {
				if recover() == nil {
					t.Errorf("%+v was registered", d)
				}
			}()
			Register(d)
		}()
	}
}

func TestGeography(t *testing.T) {
	for _, tt := range []struct{ provider, host, path, want string }{
		{"openai", "eu.api.openai.com", "/v1/responses", "eu"},
		{"openai", "US.api.openai.com", "/v1/responses", "us"},
		{"openai", "api.openai.com", "/v1/responses", ""},
		{"openai", "gateway.example.com", "/v1/responses", ""},
		{"azure", "eu.api.openai.com", "/v1/responses", ""},
		{"vertex", "europe-west1-aiplatform.googleapis.com", "/v1/projects/p/locations/europe-west1/publishers/google/models/m:generateContent", "europe-west1"},
		{"vertex", "aiplatform.googleapis.com", "/v1/projects/p/locations/global/endpoints/openapi/chat/completions", "global"},
		{"vertex", "aiplatform.googleapis.com", "/v1/publishers/google/models/m:generateContent", ""},
	} {
		if got := Geography(tt.provider, tt.host, tt.path); got != tt.want {
			t.Errorf("%s at %s%s: got %q, want %q", tt.provider, tt.host, tt.path, got, tt.want)
		}
	}
}
