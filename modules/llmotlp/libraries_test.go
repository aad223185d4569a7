package llmotlp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// attrs are the attributes of a span.
type attrs map[string]any

// reported is a span with the attributes, and with nothing else than a name and a time.
func reported(n int, name string, a attrs) *tracepb.Span {
	s := &tracepb.Span{
		TraceId: []byte(fmt.Sprintf("library %08d", n)), SpanId: []byte(fmt.Sprintf("l%07d", n)), Name: name,
		StartTimeUnixNano: uint64(1_790_000_000_000_000_000 + n*1_000_000), EndTimeUnixNano: uint64(1_790_000_001_000_000_000 + n*1_000_000),
	}
	for key, value := range a {
		s.Attributes = append(s.Attributes, &commonpb.KeyValue{Key: key, Value: anyValue(value)})
	}
	return s
}

func anyValue(value any) *commonpb.AnyValue {
	switch v := value.(type) {
	case int:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: int64(v)}}
	case float64:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: v}}
	case bool:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: v}}
	case []string:
		list := new(commonpb.ArrayValue)
		for _, text := range v {
			list.Values = append(list.Values, anyValue(text))
		}
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: list}}
	}
	return text(value.(string))
}

// failing makes a span one that failed.
func failing(s *tracepb.Span, kind, message string) *tracepb.Span {
	s.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: message}
	if kind != "" {
		s.Events = append(s.Events, &tracepb.Span_Event{Name: "exception", Attributes: []*commonpb.KeyValue{
			{Key: "exception.type", Value: text(kind)}, {Key: "exception.message", Value: text(message)},
		}})
	}
	return s
}

// TestLibraries: the spans of each library, as its users send them, make the records that the
// provider's own report would make. A record is asked for the fields that are named.
func TestLibraries(t *testing.T) {
	aiSDK5 := func(provider, model string, a attrs) attrs {
		all := attrs{
			"operation.name": "ai.generateText.doGenerate checkout", "ai.operationId": "ai.generateText.doGenerate",
			"ai.model.provider": provider, "ai.model.id": model, "gen_ai.system": provider, "gen_ai.request.model": model,
		}
		for key, value := range a {
			all[key] = value
		}
		return all
	}
	for i, c := range []struct {
		name string
		span *tracepb.Span
		want map[string]any
	}{
		{"a provider with its kind", reported(0, "ai.generateText.doGenerate", aiSDK5("openai.responses", "gpt-4o", attrs{"ai.usage.inputTokens": 1000, "ai.usage.outputTokens": 100, "ai.response.id": "resp_1"})),
			map[string]any{"provider": "openai", "prompt_tokens": 1000, "completion_tokens": 100, "cost": 0.0035, "response_id": "resp_1"}},
		{"a vendor of another name", reported(0, "ai.streamText.doStream", aiSDK5("google.generative-ai", "gemini-2.5-flash", attrs{
			"ai.operationId": "ai.streamText.doStream", "ai.usage.inputTokens": 1000, "ai.usage.outputTokens": 100, "ai.usage.reasoningTokens": 50, "ai.usage.totalTokens": 1150, "ai.response.msToFirstChunk": 250.5,
		})), map[string]any{"provider": "gemini", "prompt_tokens": 1000, "completion_tokens": 150, "reasoning_tokens": 50, "time_to_first_token": 250, "stream": true}},
		{"a framework for a provider", reported(0, "chat", attrs{"gen_ai.operation.name": "chat", "gen_ai.system": "strands-agents", "gen_ai.request.model": "claude-sonnet-4-5", "gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 5}),
			map[string]any{"provider": "anthropic"}},
		{"a framework that calls Bedrock", reported(0, "chat", attrs{"gen_ai.operation.name": "chat", "gen_ai.system": "strands-agents", "gen_ai.request.model": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
			"gen_ai.usage.input_tokens": 4299, "gen_ai.usage.output_tokens": 631, "gen_ai.usage.total_tokens": 58291, "gen_ai.usage.cache_read_input_tokens": 35574, "gen_ai.usage.cache_write_input_tokens": 17787}),
			map[string]any{"provider": "bedrock", "prompt_tokens": 57660, "completion_tokens": 631, "cost": 0.109708995}},
		{"a name with a dot is not Bedrock's for that", reported(0, "chat", attrs{"gen_ai.operation.name": "chat", "gen_ai.system": "strands-agents", "gen_ai.request.model": "qwen3.5-of-ours", "gen_ai.usage.input_tokens": 1, "gen_ai.usage.output_tokens": 1}),
			map[string]any{"provider": "strands-agents", "cost": nil}},
		{"a prefix for a provider", reported(0, "chat", attrs{"gen_ai.operation.name": "chat", "gen_ai.system": "mock.chat", "gen_ai.request.model": "openai/gpt-4o", "gen_ai.usage.input_tokens": 1000, "gen_ai.usage.output_tokens": 100}),
			map[string]any{"provider": "openai", "request_model": "gpt-4o", "cost": 0.0035}},
		{"no provider", reported(0, "OpenAIEmbedding.get_text_embedding", attrs{"openinference.span.kind": "EMBEDDING", "embedding.model_name": "text-embedding-3-small", "llm.token_count.total": 1000}),
			map[string]any{"provider": "openai", "prompt_tokens": 1000, "cost": 0.00002}},
		{"a reseller's prefix stays", reported(0, "chat", attrs{"gen_ai.operation.name": "chat", "gen_ai.provider.name": "groq", "gen_ai.request.model": "openai/gpt-oss-120b", "gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 5}),
			map[string]any{"provider": "groq", "request_model": "openai/gpt-oss-120b"}},
		{"a model on one's own machine has no price", reported(0, "chat", attrs{"gen_ai.operation.name": "chat", "gen_ai.provider.name": "ollama", "gen_ai.request.model": "gpt-4o", "gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 5}),
			map[string]any{"provider": "ollama", "cost": nil}},

		{"acompletion", reported(0, "litellm_request", attrs{"gen_ai.operation.name": "acompletion", "gen_ai.system": "openai", "gen_ai.request.model": "gpt-4o", "gen_ai.usage.input_tokens": 1000, "gen_ai.usage.output_tokens": 100}),
			map[string]any{"cost": 0.0035}},
		{"aembedding", reported(0, "litellm_request", attrs{"gen_ai.operation.name": "aembedding", "gen_ai.system": "openai", "gen_ai.request.model": "text-embedding-3-small", "gen_ai.usage.input_tokens": 1000}),
			map[string]any{"cost": 0.00002}},
		{"an embedding of the AI SDK", reported(0, "ai.embed.doEmbed", attrs{"ai.operationId": "ai.embed.doEmbed", "ai.model.provider": "openai.embedding", "ai.model.id": "text-embedding-3-small", "ai.usage.tokens": 1000}),
			map[string]any{"provider": "openai", "prompt_tokens": 1000, "cost": 0.00002}},
		{"an operation that nobody knows", reported(0, "hello", attrs{"gen_ai.operation.name": "converse_with_model", "gen_ai.system": "openai", "gen_ai.request.model": "gpt-4o", "gen_ai.usage.input_tokens": 1000, "gen_ai.usage.output_tokens": 100}),
			map[string]any{"cost": 0.0035}},
		{"a model and a usage", reported(0, "hello", attrs{"gen_ai.request.model": "gpt-4o", "gen_ai.usage.input_tokens": 1000, "gen_ai.usage.output_tokens": 100}),
			map[string]any{"provider": "openai", "cost": 0.0035}},

		{"Anthropic's input in AI SDK 5", reported(0, "ai.generateText.doGenerate", aiSDK5("anthropic.messages", "claude-sonnet-4-5", attrs{
			"ai.usage.inputTokens": 100, "ai.usage.outputTokens": 50, "ai.usage.totalTokens": 150, "ai.usage.cachedInputTokens": 40,
		})), map[string]any{"provider": "anthropic", "prompt_tokens": 140, "prompt_cache_read_tokens": 40}},
		{"Anthropic's first words in AI SDK 5", reported(0, "ai.streamText.doStream", aiSDK5("anthropic.messages", "claude-sonnet-4-5", attrs{
			"ai.usage.inputTokens": 4, "ai.usage.outputTokens": 104, "ai.usage.totalTokens": 108, "ai.usage.cachedInputTokens": 0,
			"ai.response.providerMetadata": `{"anthropic":{"usage":{"input_tokens":4,"output_tokens":1,"cache_creation_input_tokens":2183,"cache_read_input_tokens":0}}}`,
		})), map[string]any{"prompt_tokens": 2187, "completion_tokens": 104, "prompt_cache_write_tokens": 2183}},
		{"Anthropic's own words in AI SDK 5", reported(0, "ai.generateText.doGenerate", aiSDK5("anthropic.messages", "claude-sonnet-4-5", attrs{
			"ai.usage.inputTokens": 100, "ai.usage.outputTokens": 50, "ai.usage.totalTokens": 150, "ai.usage.cachedInputTokens": 40,
			"ai.response.providerMetadata": `{"anthropic":{"usage":{"input_tokens":100,"cache_creation_input_tokens":30,"cache_read_input_tokens":40,"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20},"output_tokens":50},"cacheCreationInputTokens":30}}`,
		})), map[string]any{"prompt_tokens": 170, "prompt_cache_read_tokens": 40, "prompt_cache_write_tokens": 30}},
		{"details of AI SDK 6", reported(0, "ai.generateText.doGenerate", aiSDK5("openai.responses", "gpt-5-mini", attrs{
			"ai.usage.inputTokens": 1000, "ai.usage.outputTokens": 100, "ai.usage.inputTokenDetails.noCacheTokens": 600, "ai.usage.inputTokenDetails.cacheReadTokens": 400, "ai.usage.outputTokenDetails.reasoningTokens": 60, "ai.usage.outputTokenDetails.textTokens": 40,
		})), map[string]any{"prompt_tokens": 1000, "prompt_cache_read_tokens": 400, "completion_tokens": 100, "reasoning_tokens": 60}},
		{"the conventions' first release", reported(0, "chat", attrs{
			"gen_ai.operation.name": "chat", "gen_ai.provider.name": "anthropic", "gen_ai.request.model": "claude-sonnet-4-5", "gen_ai.usage.input_tokens": 1000, "gen_ai.usage.output_tokens": 100,
			"gen_ai.usage.cache_read.input_tokens": 300, "gen_ai.usage.cache_write.input_tokens": 200, "gen_ai.usage.reasoning.output_tokens": 30,
		}), map[string]any{"prompt_tokens": 1000, "prompt_cache_read_tokens": 300, "prompt_cache_write_tokens": 200, "reasoning_tokens": 30}},
		{"other words for the cache", reported(0, "chat", attrs{
			"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4o", "gen_ai.usage.input_tokens": 1000, "gen_ai.usage.output_tokens": 100,
			"gen_ai.usage.cache_read_tokens": 300, "gen_ai.usage.cache_write_tokens": 0,
		}), map[string]any{"prompt_cache_read_tokens": 300, "cost": 0.003125}},
		{"details", reported(0, "chat", attrs{
			"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-5-mini", "gen_ai.usage.input_tokens": 1000, "gen_ai.usage.output_tokens": 100,
			"gen_ai.usage.details.reasoning_tokens": 30, "gen_ai.usage.details.input_cached_tokens": 300,
		}), map[string]any{"prompt_cache_read_tokens": 300, "reasoning_tokens": 30, "completion_tokens": 100}},
		{"Gemini's thoughts", reported(0, "chat", attrs{
			"gen_ai.operation.name": "chat", "gen_ai.provider.name": "gcp.gemini", "gen_ai.request.model": "gemini-2.5-flash", "gen_ai.usage.input_tokens": 1000, "gen_ai.usage.output_tokens": 10,
			"gen_ai.usage.details.thoughts_tokens": 30,
		}), map[string]any{"completion_tokens": 40, "reasoning_tokens": 30}},
		{"an hour in the cache", reported(0, "chat", attrs{
			"gen_ai.operation.name": "chat", "gen_ai.provider.name": "anthropic", "gen_ai.request.model": "claude-sonnet-4-5", "gen_ai.usage.input_tokens": 3000, "gen_ai.usage.output_tokens": 10,
			"gen_ai.usage.cache_creation.input_tokens": 2000, "anthropic.usage.cache_creation.ephemeral_1h_input_tokens": 2000, "gen_ai.usage.ephemeral_1h_input_tokens": 2000,
		}), map[string]any{"prompt_tokens": 3000, "prompt_cache_write_tokens": 2000, "cost": 0.01515}},
		{"LangChain's usage", reported(0, "ChatAnthropic", attrs{
			"langsmith.span.kind": "llm", "langsmith.metadata.ls_provider": "anthropic", "gen_ai.request.model": "claude-sonnet-4-5", "langsmith.metadata.ls_model_name": "claude-sonnet-4-5", "gen_ai.usage.input_tokens": 500, "gen_ai.usage.output_tokens": 50,
			"langsmith.metadata.usage_metadata": `{"input_tokens":500,"output_tokens":50,"total_tokens":550,"input_token_details":{"cache_read":100,"cache_creation":0,"ephemeral_5m_input_tokens":200}}`,
			"langsmith.metadata.user_id":        "ada", "langsmith.metadata.session_id": "s1", "langsmith.metadata.team": "blue",
		}), map[string]any{"provider": "anthropic", "prompt_tokens": 500, "prompt_cache_read_tokens": 100, "prompt_cache_write_tokens": 200, "request_user_id": "ada", "properties.Service-Session-Id": "s1", "properties.team": "blue"}},
		{"LangChain's messages in LangSmith", reported(0, "ChatOpenAI", attrs{
			"langsmith.span.kind": "llm", "gen_ai.system": "openai", "gen_ai.request.model": "gpt-4o",
			"gen_ai.prompt": `{"messages":[[{"lc":1,"type":"constructor","id":["langchain","schema","messages","HumanMessage"],"kwargs":{"content":"Rain?","type":"human"}},` +
				`{"lc":1,"type":"constructor","id":["langchain","schema","messages","AIMessage"],"kwargs":{"content":"","type":"ai","tool_calls":[{"name":"weather","args":{"city":"Paris"},"id":"c1","type":"tool_call"}]}},` +
				`{"lc":1,"type":"constructor","id":["langchain","schema","messages","ToolMessage"],"kwargs":{"content":"sunny","type":"tool","tool_call_id":"c1"}}]]}`,
			"gen_ai.completion": `{"generations":[[{"text":"No.","message":{"lc":1,"type":"constructor","id":["langchain","schema","messages","AIMessage"],"kwargs":{"content":"No.","type":"ai"}}}]]}`,
		}), map[string]any{
			"request_body.messages.0.role": "user", "request_body.messages.0.content": "Rain?", "request_body.messages.1.role": "assistant",
			"request_body.messages.1.tool_calls.0.function.arguments": `{"city":"Paris"}`, "request_body.messages.2.tool_call_id": "c1",
			"response_body.choices.0.message.content": "No.",
		}},
		{"LangSmith's details as Python prints them", reported(0, "ChatAnthropic", attrs{
			"langsmith.span.kind": "llm", "gen_ai.system": "anthropic", "gen_ai.request.model": "claude-sonnet-4-5", "gen_ai.usage.input_tokens": 500, "gen_ai.usage.output_tokens": 50,
			"gen_ai.usage.input_token_details": `{'cache_read': 100, 'cache_creation': 200, 'audio': None}`, "gen_ai.usage.output_token_details": `{'reasoning': 30}`,
		}), map[string]any{"prompt_tokens": 500, "prompt_cache_read_tokens": 100, "prompt_cache_write_tokens": 200, "reasoning_tokens": 30}},
		{"LiteLLM's usage", reported(0, "completion", attrs{
			"openinference.span.kind": "LLM", "llm.model_name": "claude-sonnet-4-5", "llm.provider": "anthropic", "llm.token_count.prompt": 600, "llm.token_count.completion": 10,
			"metadata": `{"usage_object":{"prompt_tokens":600,"completion_tokens":10,"total_tokens":610,"prompt_tokens_details":{"cached_tokens":100},"cache_creation_input_tokens":200,"cache_read_input_tokens":100},"userId":"ada"}`,
		}), map[string]any{"prompt_tokens": 600, "prompt_cache_read_tokens": 100, "prompt_cache_write_tokens": 200, "request_user_id": "ada"}},
		{"the provider's own answer", reported(0, "ChatCompletion", attrs{
			"openinference.span.kind": "LLM", "llm.model_name": "gpt-4o", "llm.system": "openai",
			"output.value": `{"id":"chatcmpl-7","model":"gpt-4o-2024-08-06","choices":[{"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":100,"total_tokens":1100,"prompt_tokens_details":{"cached_tokens":300}}}`,
		}), map[string]any{"response_id": "chatcmpl-7", "prompt_tokens": 1000, "prompt_cache_read_tokens": 300, "response_model": "gpt-4o-2024-08-06"}},

		{"Anthropic's input in OpenLIT, which knows no price", reported(0, "chat claude-sonnet-4-5", attrs{
			"otel.scope.name": "openlit.instrumentation.anthropic", "gen_ai.operation.name": "chat", "gen_ai.provider.name": "anthropic", "gen_ai.request.model": "claude-sonnet-4-5",
			"gen_ai.usage.input_tokens": 2475, "gen_ai.usage.output_tokens": 211, "gen_ai.client.token.usage": 2686, "gen_ai.usage.cost": 0,
			"gen_ai.usage.cache_read.input_tokens": 1024, "gen_ai.usage.cache_creation.input_tokens": 512,
		}), map[string]any{"prompt_tokens": 4011, "prompt_cache_read_tokens": 1024, "prompt_cache_write_tokens": 512, "cost": 0.0128172}},
		{"MLflow", reported(0, "Completions", attrs{
			"mlflow.spanType": `"CHAT_MODEL"`, "mlflow.llm.model": `"gpt-4o"`, "mlflow.llm.provider": `"openai"`, "mlflow.chat.tokenUsage": `{"input_tokens":1000,"output_tokens":100,"total_tokens":1100}`,
			"mlflow.spanInputs": `{"model":"gpt-4o","messages":[{"role":"user","content":"Hi"}]}`, "mlflow.trace.user": `"ada"`,
		}), map[string]any{"provider": "openai", "cost": 0.0035, "request_body.messages.0.content": "Hi", "request_user_id": "ada"}},
		{"Genkit", reported(0, "gpt-4o", attrs{
			"genkit:type": "action", "genkit:metadata:subtype": "model", "genkit:name": "openai/gpt-4o", "genkit:input": `{"messages":[{"role":"user","content":[{"text":"Hi"}]}],"config":{}}`,
			"genkit:output": `{"message":{"role":"model","content":[{"text":"Hello"}]},"finishReason":"stop","usage":{"inputTokens":1000,"outputTokens":100,"totalTokens":1100}}`,
		}), map[string]any{"provider": "openai", "request_model": "gpt-4o", "cost": 0.0035, "request_body.messages.0.content": "Hi", "response_body.choices.0.message.content": "Hello"}},
		{"Claude Code", reported(0, "claude_code.llm_request", attrs{
			"span.type": "llm_request", "model": "claude-sonnet-4-5", "gen_ai.system": "anthropic", "gen_ai.request.model": "claude-sonnet-4-5", "input_tokens": 20, "output_tokens": 100, "cache_read_tokens": 1000, "cache_creation_tokens": 200,
			"ttft_ms": 400, "success": true, "stop_reason": "end_turn", "session.id": "s1",
		}), map[string]any{"prompt_tokens": 1220, "prompt_cache_read_tokens": 1000, "prompt_cache_write_tokens": 200, "time_to_first_token": 400, "stream": true, "response_status": 200}},

		{"Logfire's log of a stream", reported(0, "streaming response", attrs{
			"logfire.span_type": "log", "gen_ai.operation.name": "chat", "gen_ai.provider.name": "anthropic", "gen_ai.request.model": "claude-sonnet-4-5", "request_data": `{"model":"claude-sonnet-4-5"}`, "duration": 0.5,
			"gen_ai.response.id": "msg_2", "gen_ai.usage.input_tokens": 1000, "gen_ai.usage.output_tokens": 100, "operation.cost": 7.5,
		}), map[string]any{"delay_ms": 1500, "cost": 0.0045, "response_id": "msg_2"}},
		{"a user of the AI SDK", reported(0, "ai.generateText.doGenerate", aiSDK5("openai.chat", "gpt-4o", attrs{
			"ai.telemetry.metadata.userId": "ada", "ai.telemetry.metadata.sessionId": "s1", "ai.telemetry.metadata.team": "blue",
		})), map[string]any{"request_user_id": "ada", "properties.Service-Session-Id": "s1", "properties.team": "blue"}},
		{"a user of Mastra", reported(0, "chat gpt-4o", attrs{
			"mastra.span.type": "model_generation", "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4o", "mastra.metadata.userId": "ada", "mastra.metadata.threadId": "t1", "mastra.metadata.plan": "pro",
		}), map[string]any{"request_user_id": "ada", "properties.Service-Session-Id": "t1", "properties.plan": "pro"}},
		{"a user of OpenInference", reported(0, "chat", attrs{"openinference.span.kind": "LLM", "llm.model_name": "gpt-4o", "metadata": `{"user_id":"ada","session_id":"s1","plan":"pro"}`}),
			map[string]any{"request_user_id": "ada", "properties.Service-Session-Id": "s1", "properties.plan": "pro"}},

		{"a wrapped failure", failing(reported(0, "chat", attrs{"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o"}), "strands.types.exceptions.ModelRateLimitError", "slow down"), map[string]any{"response_status": 429}},
		{"AWS's failure", failing(reported(0, "chat", attrs{"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o"}), "ModelThrottledException", "slow down"), map[string]any{"response_status": 429}},
		{"Google's failure", failing(reported(0, "chat", attrs{"gen_ai.operation.name": "chat", "gen_ai.request.model": "gemini-2.5-flash"}), "google.genai.errors.ClientError", "429 RESOURCE_EXHAUSTED. {'error': {'code': 429}}"), map[string]any{"response_status": 429}},
		{"a failure in the status", failing(reported(0, "chat", attrs{"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o"}), "", "Error code: 429 - {'error': {'message': 'slow down'}}"), map[string]any{"response_status": 429}},
		{"Pydantic AI's failure", failing(reported(0, "chat gpt-4o", attrs{"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o"}), "pydantic_ai.exceptions.ModelHTTPError", "status_code: 503, model_name: gpt-4o, body: None"), map[string]any{"response_status": 503}},
		{"a failure that LangSmith calls OK", func() *tracepb.Span {
			s := failing(reported(0, "ChatAnthropic", attrs{"langsmith.span.kind": "llm", "gen_ai.operation.name": "chat", "gen_ai.request.model": "claude-sonnet-4-5", "gen_ai.completion": `{"generations":[[{"text":""}]]}`}), "Exception", `AnthropicInvalidRequestError("Error code: 400 - {'type': 'error'}")Traceback`)
			s.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_OK}
			return s
		}(), map[string]any{"response_status": 400}},
		{"a failure of the client", failing(reported(0, "chat", attrs{"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o"}), "ValueError", "got 400 items"), map[string]any{"response_status": nil, "end_state": "failed"}},

		{"parts of Langfuse's cache", reported(0, "g", attrs{
			"langfuse.observation.type": "generation", "langfuse.observation.model.name": "claude-sonnet-4-5",
			"langfuse.observation.usage_details": `{"input":100,"output":50,"cache_creation_input_tokens":2000,"cache_creation_ephemeral_5m_input_tokens":2000,"cache_read_input_tokens":300}`,
		}), map[string]any{"prompt_tokens": 2400, "prompt_cache_write_tokens": 2000, "prompt_cache_read_tokens": 300}},
		{"parts of Langfuse's cache without a sum", reported(0, "g", attrs{
			"langfuse.observation.type": "generation", "langfuse.observation.model.name": "claude-sonnet-4-5",
			"langfuse.observation.usage_details": `{"input":100,"output":50,"cache_creation_input_tokens":0,"ephemeral_1h_input_tokens":2000}`,
		}), map[string]any{"prompt_tokens": 2100, "prompt_cache_write_tokens": 2000}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t, "")
			c.span.TraceId, c.span.SpanId = []byte(fmt.Sprintf("library %08d", i)), []byte(fmt.Sprintf("l%07d", i))
			s.send("root", export(t, c.span), binary...)
			records := s.records("root")
			if len(records) != 1 {
				t.Fatalf("%d records", len(records))
			}
			for field, want := range c.want {
				expected, _ := json.Marshal(want)
				if got := records[0].Get(strings.ReplaceAll(field, "user.id", `user\.id`)); got.Raw != string(expected) && !(want == nil && got.Type == 0) {
					t.Errorf("%s is %s, not %s", field, got.Raw, expected)
				}
			}
			if t.Failed() {
				t.Log(records[0].Raw)
			}
		})
	}
}

// TestAggregates: what only adds up the calls within it is no call, whatever it says of them.
func TestAggregates(t *testing.T) {
	s := newSite(t, "")
	usage := attrs{"gen_ai.request.model": "gpt-4o", "gen_ai.provider.name": "openai", "gen_ai.usage.input_tokens": 1000, "gen_ai.usage.output_tokens": 100, "ai.model.id": "gpt-4o", "ai.model.provider": "openai.chat"}
	var spans []*tracepb.Span
	for i, kind := range []attrs{
		{"gen_ai.operation.name": "invoke_agent"}, {"gen_ai.operation.name": "execute_tool"}, {"gen_ai.operation.name": "create_agent"}, {"gen_ai.operation.name": "invoke_workflow"},
		{"ai.operationId": "ai.generateText"}, {"ai.operationId": "ai.streamText", "operation.name": "ai.streamText f"}, {"ai.operationId": "ai.toolCall"}, {"ai.operationId": "ai.embedMany"}, {"ai.operationId": "ai.embed"},
		{"gen_ai.operation.name": "chat", "logfire.span_type": "span", "request_data": `{"model":"gpt-4o"}`, "gen_ai.usage.input_tokens": "", "gen_ai.usage.output_tokens": ""},
		{"openinference.span.kind": "AGENT"}, {"openinference.span.kind": "CHAIN"}, {"openinference.span.kind": "TOOL"}, {"openinference.span.kind": "RETRIEVER"},
		{"mlflow.spanType": `"AGENT"`}, {"langfuse.observation.type": "agent"}, {"genkit:metadata:subtype": "flow"}, {"mastra.span.type": "agent_run"}, {"mastra.span.type": "model_step"},
		{"span.type": "interaction"}, {"langsmith.span.kind": "chain"}, {"traceloop.span.kind": "workflow"},
	} {
		spans = append(spans, reported(i, "work", together(usage, kind)))
	}
	spans = append(spans, reported(99, "invoke_agent weather", usage))
	response, _ := s.send("root", export(t, spans...), binary...)
	if got, want := response.Header.Get("Service-Spans"), fmt.Sprintf("ignored=%d", len(spans)); !strings.Contains(got, want) {
		t.Errorf("%q, want %s", got, want)
	}
}

// TestCodex: Codex reports the usage of a call in a span for the last event of the stream, and the
// model in one around it, which ends after the tools that were called, in a later batch.
func TestCodex(t *testing.T) {
	const call = 200
	for name, batches := range map[string]int{"one batch": 1, "two batches": 2} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, "")
			turn := reported(call, "session_task.turn", attrs{"model": "gpt-5", "codex.turn.token_usage.input_tokens": 2000, "codex.turn.token_usage.output_tokens": 200})
			outer := within(turn, call+1, 1, "try_run_sampling_request", attrs{"turn_id": "t1", "model": "gpt-5"})
			stream := within(outer, call+2, 2, "receiving_stream", nil)
			last := within(stream, call+3, 3, "completed", attrs{
				"gen_ai.usage.input_tokens": 1000, "gen_ai.usage.cache_read.input_tokens": 400, "gen_ai.usage.output_tokens": 100,
				"codex.usage.reasoning_output_tokens": 60, "codex.usage.total_tokens": 1100,
			})
			delta := within(stream, call+4, 4, "text_delta", attrs{"from": "output_item_done"})
			spans := []*tracepb.Span{delta, last, stream, outer, turn}
			s.send("root", export(t, spans[:len(spans)-2*(batches-1)]...), binary...)
			if batches > 1 {
				s.send("root", export(t, spans[3:]...), binary...)
			}
			records := s.records("root")
			if len(records) != 1 {
				t.Fatalf("%d records: %v", len(records), records)
			}
			for field, want := range map[string]string{
				"provider": `"openai"`, "request_model": `"gpt-5"`, "model": `"gpt-5"`, "prompt_tokens": "1000", "prompt_cache_read_tokens": "400", "completion_tokens": "100", "reasoning_tokens": "60", "cost": "0.0018",
			} {
				if got := records[0].Get(field).Raw; got != want {
					t.Errorf("%s is %s, not %s", field, got, want)
				}
			}
		})
	}
}

// TestExportersKeys: exporters send the key as they can.
func TestExportersKeys(t *testing.T) {
	s := newSite(t, "")
	for name, header := range map[string][2]string{"escaped": {"Authorization", "Bearer%20root"}, "of LangSmith": {"x-api-key", "root"}} {
		r, err := http.NewRequest("POST", s.url+"/v1/traces", strings.NewReader(string(export(t, span(int(time.Now().UnixNano()%1000), nil)))))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-protobuf")
		r.Header.Set(header[0], header[1])
		if response, answer := s.do(r); response.StatusCode != http.StatusOK {
			t.Errorf("%s: %s %q", name, response.Status, answer)
		}
	}
}
