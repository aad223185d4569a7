package observe

import (
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
		{"openai", "/v1/threads/thread_1/messages", plugins.Unknown, ""},
		{"azure", "/openai/deployments/my-gpt/chat/completions", plugins.Chat, "my-gpt"},
		{"azure", "/openai/deployments/ada%202/embeddings", plugins.Embeddings, "ada 2"},
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
