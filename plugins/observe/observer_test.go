package observe

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/plugins"
)

func known(n int64) plugins.Count { return plugins.Known(n) }

// typed is the header of a response with that content type.
func typed(contentType string) http.Header {
	return http.Header{"Content-Type": {contentType}}
}

// observe reads a body that comes at size.
func observe(d plugins.Dialect, provider, contentType string, body []byte, size func() int) plugins.ResponseInfo {
	x := New(d, provider, typed(contentType))
	defer x.Free() // so that those that follow are read in used memory
	feed(x.Write, body, size)
	x.Close()
	return *x.Info()
}

// events is a stream of data without names; each is on one line.
func events(data ...string) string {
	oneLine := strings.NewReplacer("\n", "", "\t", "")
	var b strings.Builder
	for _, d := range data {
		b.WriteString("data: " + oneLine.Replace(d) + "\n\n")
	}
	return b.String()
}

const (
	jsonType = "application/json; charset=utf-8"
	sseType  = "text/event-stream"
)

func TestObserver(t *testing.T) {
	type usage = plugins.Usage
	for _, c := range []struct {
		name        string
		dialect     plugins.Dialect
		provider    string
		contentType string
		body        string
		want        plugins.ResponseInfo
	}{{
		"chat", plugins.Chat, "openai", jsonType,
		`{"id":"c1","object":"chat.completion","model":"gpt","service_tier":"flex","choices":[
			{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"},
			{"index":1,"message":{"role":"assistant","content":"ho"},"finish_reason":"length"}],
		"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,
			"prompt_tokens_details":{"cached_tokens":4,"audio_tokens":3,"cache_write_tokens":2},
			"completion_tokens_details":{"reasoning_tokens":2,"audio_tokens":1}}}`,
		plugins.ResponseInfo{Model: "gpt", ResponseID: "c1", Finish: "stop", ServiceTier: "flex",
			Content: true, Phase: plugins.Ended, Usage: usage{Input: known(10), Output: known(5),
				CacheRead: known(4), CacheWrite: known(2), InputAudio: known(3), Reasoning: known(2), OutputAudio: known(1)}},
	}, {
		"chat stream with usage", plugins.Chat, "openai", sseType,
		events(`{"id":"c1","model":"gpt","choices":[{"delta":{"content":"a"},"finish_reason":null}],"usage":null}`,
			`{"id":"c1","model":"gpt","choices":[{"delta":{},"finish_reason":"stop"}],"usage":null}`,
			`{"id":"c1","model":"gpt","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}`, `[DONE]`),
		plugins.ResponseInfo{Stream: true, Model: "gpt", ResponseID: "c1", Finish: "stop", Content: true, Phase: plugins.Ended,
			Usage: usage{Input: known(3), Output: known(1)}},
	}, {
		"chat stream of two choices", plugins.Chat, "openai", sseType,
		events(`{"id":"c1","model":"gpt","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}`,
			`{"id":"c1","model":"gpt","choices":[{"index":1,"delta":{"content":"a"},"finish_reason":null}]}`,
			`{"id":"c1","model":"gpt","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
			`{"id":"c1","model":"gpt","choices":[{"index":1,"delta":{},"finish_reason":"length"}]}`),
		plugins.ResponseInfo{Stream: true, Model: "gpt", ResponseID: "c1", Finish: "stop", Content: true, Phase: plugins.Finished},
	}, {
		"chat stream whose second choice alone has ended", plugins.Chat, "google", sseType,
		events(`{"id":"c1","choices":[{"delta":{"content":"a"},"finish_reason":"length","index":1}]}`),
		plugins.ResponseInfo{Stream: true, ResponseID: "c1", Content: true},
	}, {
		"generate content of two candidates", plugins.GenerateContent, "google", sseType,
		events(`{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"MAX_TOKENS","index":1}],"responseId":"r"}`,
			`{"candidates":[{"content":{"parts":[{"text":"b"}]},"index":0}],"responseId":"r"}`),
		plugins.ResponseInfo{Stream: true, ResponseID: "r", Content: true},
	}, {
		"chat stream without usage, cut", plugins.Chat, "azure", sseType,
		events(`{"id":"","model":"","choices":[],"prompt_filter_results":[{}]}`,
			`{"id":"c1","model":"gpt","choices":[{"delta":{"role":"assistant","content":""},"finish_reason":null}]}`),
		plugins.ResponseInfo{Stream: true, Model: "gpt", ResponseID: "c1"},
	}, {
		"groq's usage and error", plugins.Chat, "groq", sseType,
		events(`{"id":"a","model":"m","choices":[{"delta":{"reasoning":"x"},"finish_reason":"stop"}],"x_groq":{"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}}`) +
			"event: error\ndata: {\"error\":{\"message\":\"x\",\"status_code\":500}}\n\n",
		plugins.ResponseInfo{Stream: true, Model: "m", ResponseID: "a", Finish: "stop", Content: true, ErrorType: "error", ErrorMessage: "x", Phase: plugins.Finished,
			Usage: usage{Input: known(7), Output: known(2)}},
	}, {
		"xai leaves reasoning out", plugins.Chat, "xai", jsonType,
		`{"choices":[{"finish_reason":"stop"}],"usage":{"prompt_tokens":12,"completion_tokens":1,"total_tokens":241,
			"completion_tokens_details":{"reasoning_tokens":228},"cost_in_usd_ticks":1234567895}}`,
		plugins.ResponseInfo{Finish: "stop", Phase: plugins.Ended,
			Usage: usage{Input: known(12), Output: known(229), Reasoning: known(228), ReportedCost: plugins.KnownCost(123456790)}},
	}, {
		"more cached than prompted", plugins.Chat, "xai", jsonType,
		`{"usage":{"prompt_tokens":10,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":30}}}`,
		plugins.ResponseInfo{Phase: plugins.Ended, Usage: usage{Input: known(40), Output: known(1), CacheRead: known(30)}},
	}, {
		"deepseek's cache", plugins.Chat, "deepseek", jsonType,
		`{"usage":{"prompt_cache_hit_tokens":5,"prompt_cache_miss_tokens":2,"completion_tokens":1}}`,
		plugins.ResponseInfo{Phase: plugins.Ended, Usage: usage{Input: known(7), Output: known(1), CacheRead: known(5)}},
	}, {
		"dashscope's cache, whose tokens are parts of the input", plugins.Chat, "dashscope", jsonType,
		`{"usage":{"prompt_tokens":2000,"completion_tokens":1,"total_tokens":2001,"prompt_tokens_details":{"cached_tokens":1500,"cache_creation":{"ephemeral_5m_input_tokens":300},"cache_creation_input_tokens":300,"cache_type":"ephemeral"}}}`,
		plugins.ResponseInfo{Phase: plugins.Ended, Usage: usage{Input: known(2000), Output: known(1), CacheRead: known(1500), CacheWrite: known(300)}},
	}, {
		"llama.cpp's cache", plugins.Chat, "custom", sseType,
		events(`{"choices":[{"delta":{},"finish_reason":"stop"}],"timings":{"cache_n":80,"prompt_n":20,"predicted_n":5}}`, `{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":5,"total_tokens":105}}`),
		plugins.ResponseInfo{Stream: true, Finish: "stop", Phase: plugins.Finished, Usage: usage{Input: known(100), Output: known(5), CacheRead: known(80)}},
	}, {
		"mistral's cache and content", plugins.Chat, "mistral", sseType,
		events(`{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"x"}]}]}}],"usage":{"prompt_tokens":64,"completion_tokens":6,"total_tokens":70,"num_cached_tokens":32}}`),
		plugins.ResponseInfo{Stream: true, Content: true, Usage: usage{Input: known(64), Output: known(6), CacheRead: known(32)}},
	}, {
		"mistral's audio", plugins.Chat, "mistral", jsonType,
		`{"usage":{"prompt_audio_seconds":203,"prompt_tokens":4,"total_tokens":3264,"completion_tokens":635}}`,
		plugins.ResponseInfo{Phase: plugins.Ended, Usage: usage{Input: known(2629), InputAudio: known(2625), Output: known(635), AudioDuration: plugins.KnownDuration(203 * time.Second)}},
	}, {
		"mistral's error", plugins.Chat, "mistral", jsonType,
		`{"object":"error","message":"x","type":"invalid_model","param":null,"code":"1500"}`,
		plugins.ResponseInfo{ErrorType: "invalid_model", ErrorMessage: "x", Phase: plugins.Ended},
	}, {
		"perplexity counts so far", plugins.Chat, "perplexity", sseType,
		events(`{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":6}}`,
			`{"object":"chat.completion.done","choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":9,"total_tokens":14,"reasoning_tokens":100,"num_search_queries":3,"cost":{"total_cost":0.0061}}}`),
		plugins.ResponseInfo{Stream: true, Content: true, Finish: "stop", Phase: plugins.Finished, Usage: usage{Input: known(5), Output: known(109),
			Reasoning: known(100), WebSearches: known(3), ReportedCost: plugins.KnownCost(6_100_000)}},
	}, {
		"openrouter's cost and error", plugins.Chat, "openrouter", sseType,
		": OPENROUTER PROCESSING\n\n" + events(`{"error":{"code":400,"message":"x"},"choices":[{"delta":{"content":""},"finish_reason":null}],"usage":{"prompt_tokens":43,"completion_tokens":10,"total_tokens":53,"cost":1.5e-05,"completion_tokens_details":{"reasoning_tokens":11}}}`, `[DONE]`),
		plugins.ResponseInfo{Stream: true, ErrorType: "400", ErrorMessage: "x", Phase: plugins.Ended,
			Usage: usage{Input: known(43), Output: known(10), Reasoning: known(11), ReportedCost: plugins.KnownCost(15_000)}},
	}, {
		"a cost of unknown currency", plugins.Chat, "acme", jsonType,
		`{"usage":{"prompt_tokens":1,"cost":3}}`,
		plugins.ResponseInfo{Phase: plugins.Ended, Usage: usage{Input: known(1)}},
	}, {
		"openai's error", plugins.Chat, "openai", jsonType,
		`{"error":{"message":"x","type":"invalid_request_error","param":null,"code":"model_not_found"}}`,
		plugins.ResponseInfo{ErrorType: "invalid_request_error", ErrorMessage: "x", Phase: plugins.Ended},
	}, {
		"completions", plugins.Completions, "openai", jsonType,
		`{"id":"cmpl","model":"m","choices":[{"text":"x","finish_reason":"length"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`,
		plugins.ResponseInfo{Model: "m", ResponseID: "cmpl", Finish: "length", Content: true, Phase: plugins.Ended,
			Usage: usage{Input: known(1), Output: known(2)}},
	}, {
		"embeddings", plugins.Embeddings, "openai", jsonType,
		`{"object":"list","data":[{"object":"embedding","embedding":[0.1,0.2]}],"model":"e","usage":{"prompt_tokens":8,"total_tokens":8}}`,
		plugins.ResponseInfo{Model: "e", Phase: plugins.Ended, Usage: usage{Input: known(8), Output: known(0)}},
	}, {
		"responses stream", plugins.Responses, "openai", sseType,
		"event: response.created\n" + events(`{"type":"response.created","response":{"id":"r1","status":"in_progress","model":"gpt","usage":null,"error":null}}`,
			`{"type":"response.output_item.added","item":{"type":"message","content":[]}}`,
			`{"type":"response.output_text.delta","delta":"x"}`,
			`{"type":"response.completed","response":{"id":"r1","status":"completed","model":"gpt","service_tier":"default",
			"usage":{"input_tokens":20,"input_tokens_details":{"cached_tokens":8},"output_tokens":6,"output_tokens_details":{"reasoning_tokens":4},"total_tokens":26},
			"tool_usage":{"web_search":{"num_requests":2}}}}`),
		plugins.ResponseInfo{Stream: true, Model: "gpt", ResponseID: "r1", Finish: "completed", ServiceTier: "default", Content: true, Phase: plugins.Ended,
			Usage: usage{Input: known(20), Output: known(6), CacheRead: known(8), Reasoning: known(4), WebSearches: known(2)}},
	}, {
		"responses failed", plugins.Responses, "openai", sseType,
		events(`{"type":"error","code":"server_error","message":"x","param":null}`,
			`{"type":"response.failed","response":{"id":"r1","status":"failed","error":{"code":"server_error","message":"x"}}}`),
		plugins.ResponseInfo{Stream: true, ResponseID: "r1", Finish: "failed", ErrorType: "server_error", ErrorMessage: "x", Phase: plugins.Ended},
	}, {
		"code is no error", plugins.Responses, "openai", sseType,
		events(`{"type":"response.code_interpreter_call_code.done","code":"print()"}`),
		plugins.ResponseInfo{Stream: true},
	}, {
		"messages", plugins.Messages, "anthropic", jsonType,
		`{"model":"claude","id":"msg","type":"message","role":"assistant","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn",
		"usage":{"input_tokens":16,"cache_creation_input_tokens":70,"cache_read_input_tokens":100,
			"cache_creation":{"ephemeral_5m_input_tokens":30,"ephemeral_1h_input_tokens":40},
			"output_tokens":9,"service_tier":"standard","server_tool_use":{"web_search_requests":1},"output_tokens_details":{"thinking_tokens":3}}}`,
		plugins.ResponseInfo{Model: "claude", ResponseID: "msg", Finish: "end_turn", ServiceTier: "standard", Content: true, Phase: plugins.Ended,
			Usage: usage{Input: known(186), Output: known(9), CacheRead: known(100), CacheWrite: known(70), CacheWrite1h: known(40),
				Reasoning: known(3), WebSearches: known(1)}},
	}, {
		"dashscope's messages, whose input has the cached tokens in it", plugins.Messages, "dashscope", sseType,
		events(`{"type":"message_start","message":{"model":"qwen","content":[],"usage":{"input_tokens":3602,"output_tokens":0}}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"cache_creation_input_tokens":0,"cache_read_input_tokens":3604,"prompt_tokens_details":{"cached_tokens":3604},"output_tokens":878}}`),
		plugins.ResponseInfo{Stream: true, Model: "qwen", Finish: "end_turn", Usage: usage{Input: known(3604), Output: known(878), CacheRead: known(3604), CacheWrite: known(0)}},
	}, {
		"dashscope's messages, whose input has the written tokens in it", plugins.Messages, "dashscope", jsonType,
		`{"model":"qwen","type":"message","stop_reason":"end_turn","usage":{"input_tokens":3602,"cache_creation_input_tokens":3590,"cache_read_input_tokens":0,"prompt_tokens_details":{"cached_tokens":0},"output_tokens":8}}`,
		plugins.ResponseInfo{Model: "qwen", Finish: "end_turn", Phase: plugins.Ended, Usage: usage{Input: known(3602), Output: known(8), CacheRead: known(0), CacheWrite: known(3590)}},
	}, {
		"messages of another vendor with the details of chat completions", plugins.Messages, "custom", jsonType,
		`{"model":"m","type":"message","stop_reason":"end_turn","usage":{"input_tokens":50,"cache_creation_input_tokens":20,"cache_read_input_tokens":100,"prompt_tokens_details":{"cached_tokens":100},"output_tokens":8}}`,
		plugins.ResponseInfo{Model: "m", Finish: "end_turn", Phase: plugins.Ended, Usage: usage{Input: known(170), Output: known(8), CacheRead: known(100), CacheWrite: known(20)}},
	}, {
		"moonshot's messages, which begin with the input that was cached", plugins.Messages, "moonshotai", sseType,
		events(`{"type":"message_start","message":{"model":"kimi-k3","content":[],"usage":{"input_tokens":10000,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":80,"cache_read_input_tokens":9920,"output_tokens":20}}`),
		plugins.ResponseInfo{Stream: true, Model: "kimi-k3", Finish: "end_turn", Usage: usage{Input: known(10_000), Output: known(20), CacheRead: known(9920), CacheWrite: known(0)}},
	}, {
		"the same, if all of it was cached", plugins.Messages, "moonshotai", sseType,
		events(`{"type":"message_start","message":{"model":"kimi-k3","content":[],"usage":{"input_tokens":10000,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":0,"cache_read_input_tokens":10000,"output_tokens":20}}`),
		plugins.ResponseInfo{Stream: true, Model: "kimi-k3", Finish: "end_turn", Usage: usage{Input: known(10_000), Output: known(20), CacheRead: known(10_000), CacheWrite: known(0)}},
	}, {
		"messages whose last event has no input", plugins.Messages, "custom", sseType,
		events(`{"type":"message_start","message":{"model":"m","content":[],"usage":{"input_tokens":6,"cache_read_input_tokens":100,"output_tokens":1}}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":0,"cache_read_input_tokens":100,"output_tokens":20}}`),
		plugins.ResponseInfo{Stream: true, Model: "m", Finish: "end_turn", Usage: usage{Input: known(106), Output: known(20), CacheRead: known(100)}},
	}, {
		"messages that were compacted, and an advisor", plugins.Messages, "anthropic", jsonType,
		`{"model":"claude","type":"message","stop_reason":"end_turn","usage":{"input_tokens":162,"output_tokens":11,"iterations":[
			{"type":"compaction","input_tokens":9000,"cache_read_input_tokens":1000,"output_tokens":700},
			{"output_tokens":5,"model":"advisor","input_tokens":20,"type":"advisor_message"},
			{"type":"message","input_tokens":162,"output_tokens":11}]}}`,
		plugins.ResponseInfo{Model: "claude", Finish: "end_turn", Phase: plugins.Ended, Usage: usage{Input: known(162), Output: known(11)},
			Beside: &plugins.Billed{Model: "advisor", Usage: usage{Input: known(20), Output: known(5)}, Next: &plugins.Billed{
				Usage: usage{Input: known(10_000), Output: known(700), CacheRead: known(1000)}}}},
	}, {
		"messages, after another model declined", plugins.Messages, "anthropic", sseType,
		events(`{"type":"message_start","message":{"model":"fable","content":[],"usage":{"input_tokens":5,"output_tokens":1}}}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"fallback","from":{"model":"fable"},"to":{"model":"opus"}}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":7,"output_tokens":20,"iterations":[
				{"type":"message","model":"fable","input_tokens":5,"output_tokens":3},
				{"type":"message","model":"haiku","input_tokens":6,"output_tokens":0},
				{"type":"fallback_message","model":"opus","input_tokens":7,"output_tokens":20}]}}`),
		plugins.ResponseInfo{Stream: true, Model: "opus", Finish: "end_turn", Usage: usage{Input: known(7), Output: known(20)},
			Beside: &plugins.Billed{Model: "fable", Usage: usage{Input: known(5), Output: known(3)}}},
	}, {
		"messages, of which only the iterations tell that another model answered", plugins.Messages, "anthropic", sseType,
		events(`{"type":"message_start","message":{"model":"fable","content":[],"usage":{"input_tokens":7,"output_tokens":1}}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":7,"output_tokens":20,"iterations":[
				{"type":"message","model":"fable","input_tokens":5,"output_tokens":0},
				{"type":"fallback_message","model":"opus","input_tokens":7,"output_tokens":20}]}}`),
		plugins.ResponseInfo{Stream: true, Model: "opus", Finish: "end_turn", Usage: usage{Input: known(7), Output: known(20)}},
	}, {
		"messages with an iteration of a kind that is not known", plugins.Messages, "anthropic", jsonType,
		`{"usage":{"input_tokens":1,"output_tokens":1,"iterations":[{"type":"dream","input_tokens":9,"output_tokens":9}]}}`,
		plugins.ResponseInfo{Phase: plugins.Ended, Usage: usage{Input: known(1), Output: known(1)}, Beside: new(plugins.Billed)},
	}, {
		"a picture in a response", plugins.Responses, "openai", sseType,
		events(`{"type":"response.created","response":{"status":"in_progress","output":[],"tools":[{"type":"image_generation","model":"painter"}]}}`,
			`{"type":"response.completed","response":{"status":"completed","output":[{"type":"image_generation_call","result":"AA"}],
				"tool_usage":{"image_gen":{"input_tokens":30,"input_tokens_details":{"image_tokens":10,"text_tokens":20},
					"output_tokens":4160,"output_tokens_details":{"image_tokens":4000,"text_tokens":160}},"web_search":{"num_requests":0}},
				"tools":[{"model":"painter","type":"image_generation"}],"usage":{"input_tokens":3,"output_tokens":2,"total_tokens":5}}}`),
		plugins.ResponseInfo{Stream: true, Finish: "completed", Content: true, Phase: plugins.Ended,
			Usage:  usage{Input: known(3), Output: known(2), WebSearches: known(0)},
			Beside: &plugins.Billed{Model: "painter", Usage: usage{Input: known(30), InputImage: known(10), Output: known(4160), OutputImage: known(4000)}}},
	}, {
		"a picture whose tokens are not stated", plugins.Responses, "azure", jsonType,
		`{"status":"completed","output":[{"type":"image_generation_call"}],"tools":[{"type":"image_generation","model":"painter"}],
			"tool_usage":{"image_gen":{"input_tokens":0,"output_tokens":0}},"usage":{"input_tokens":3,"output_tokens":2}}`,
		plugins.ResponseInfo{Finish: "completed", Content: true, Phase: plugins.Ended, Usage: usage{Input: known(3), Output: known(2)}, Beside: new(plugins.Billed)},
	}, {
		"a picture of a model that is not named", plugins.Responses, "openai", jsonType,
		`{"tool_usage":{"image_gen":{"input_tokens":1,"output_tokens":9}},"usage":{"input_tokens":3,"output_tokens":2}}`,
		plugins.ResponseInfo{Phase: plugins.Ended, Usage: usage{Input: known(3), Output: known(2)}, Beside: new(plugins.Billed)},
	}, {
		"a response without pictures", plugins.Responses, "openai", jsonType,
		`{"tools":[{"type":"image_generation","model":"painter"}],"tool_usage":{"image_gen":{"input_tokens":0,"output_tokens":0}},"usage":{"input_tokens":3,"output_tokens":2}}`,
		plugins.ResponseInfo{Phase: plugins.Ended, Usage: usage{Input: known(3), Output: known(2)}},
	}, {
		"searches by their items", plugins.Responses, "azure", sseType,
		events(`{"type":"response.output_item.done","item":{"type":"web_search_call","action":{"type":"search"}}}`,
			`{"type":"response.completed","response":{"output":[{"type":"web_search_call","action":{"type":"search","query":"a"}},
				{"action":{"type":"open_page"},"type":"web_search_call"},{"type":"web_search_call"},{"type":"message","content":[]}],
				"usage":{"input_tokens":3,"output_tokens":2}}}`),
		plugins.ResponseInfo{Stream: true, Content: true, Phase: plugins.Ended, Usage: usage{Input: known(3), Output: known(2), WebSearches: known(2)}},
	}, {
		"the stated number of searches wins", plugins.Responses, "openai", jsonType,
		`{"tool_usage":{"web_search":{"num_requests":1}},"output":[{"type":"web_search_call"},{"type":"web_search_call"}],"usage":{"input_tokens":3,"output_tokens":2}}`,
		plugins.ResponseInfo{Content: true, Phase: plugins.Ended, Usage: usage{Input: known(3), Output: known(2), WebSearches: known(1)}},
	}, {
		"a tool that is billed by the piece", plugins.Responses, "openai", jsonType,
		`{"output":[{"type":"file_search_call"}],"usage":{"input_tokens":3,"output_tokens":2}}`,
		plugins.ResponseInfo{Content: true, Phase: plugins.Ended, Usage: usage{Input: known(3), Output: known(2)}, Beside: new(plugins.Billed)},
	}, {
		"a tool that Bedrock runs is billed by the piece", plugins.Converse, "bedrock", jsonType,
		`{"output":{"message":{"content":[{"toolUse":{"name":"nova_code_interpreter"}},{"toolUse":{"name":"nova_grounding"}}]}},"stopReason":"end_turn","usage":{"inputTokens":3,"outputTokens":2}}`,
		plugins.ResponseInfo{Finish: "end_turn", Content: true, Phase: plugins.Ended, Usage: usage{Input: known(3), Output: known(2), WebSearches: known(1)}, Beside: new(plugins.Billed)},
	}, {
		"a model that searches for each answer", plugins.Chat, "openai", sseType,
		events(`{"model":"gpt-5-search-api-2025-10-14","choices":[{"index":0,"delta":{"content":"x"}}]}`,
			`{"model":"gpt-5-search-api-2025-10-14","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}`),
		plugins.ResponseInfo{Stream: true, Model: "gpt-5-search-api-2025-10-14", Content: true, Usage: usage{Input: known(3), Output: known(2)}, Beside: new(plugins.Billed)},
	}, {
		"gemini searches", plugins.GenerateContent, "gemini", sseType,
		events(`{"candidates":[{"content":{"parts":[{"text":"x"}]}}],"usageMetadata":{"promptTokenCount":1,"totalTokenCount":1},"modelVersion":"gemini-3-flash"}`,
			`{"candidates":[{"groundingMetadata":{"webSearchQueries":["a","b"]}}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":2,"totalTokenCount":3},"modelVersion":"gemini-3-flash"}`,
			`{"candidates":[{"finishReason":"STOP","groundingMetadata":{"webSearchQueries":["a","b"]}}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":3,"totalTokenCount":4}}`),
		plugins.ResponseInfo{Stream: true, Model: "gemini-3-flash", Finish: "STOP", Content: true, Phase: plugins.Ended,
			Usage: usage{Input: known(1), Output: known(3), WebSearches: known(2)}},
	}, {
		"gemini 2 charges the call that searches", plugins.GenerateContent, "vertex", jsonType,
		`{"candidates":[{"finishReason":"STOP","groundingMetadata":{"webSearchQueries":["a","b"]}}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":3,"totalTokenCount":4},"modelVersion":"gemini-2.5-flash"}`,
		plugins.ResponseInfo{Model: "gemini-2.5-flash", Finish: "STOP", Phase: plugins.Ended, Usage: usage{Input: known(1), Output: known(3), WebSearches: known(1)}},
	}, {
		"gemini looks at maps", plugins.GenerateContent, "gemini", jsonType,
		`{"candidates":[{"groundingMetadata":{"groundingChunks":[{"maps":{"title":"x"}}]}}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":3,"totalTokenCount":4}}`,
		plugins.ResponseInfo{Phase: plugins.Ended, Usage: usage{Input: known(1), Output: known(3)}, Beside: new(plugins.Billed)},
	}, {
		"an interaction that searches", plugins.Interactions, "gemini", jsonType,
		`{"status":"completed","steps":[{"type":"google_search_call","arguments":{"queries":["a","b"]}},{"type":"google_search_call","arguments":{"queries":["c"]}}],
			"usage":{"total_input_tokens":3,"total_output_tokens":4}}`,
		plugins.ResponseInfo{Finish: "completed", Phase: plugins.Ended, Usage: usage{Input: known(3), Output: known(4), WebSearches: known(3)}},
	}, {
		"an interaction that counts its searches", plugins.Interactions, "gemini", jsonType,
		`{"status":"completed","usage":{"total_input_tokens":3,"total_output_tokens":4,"grounding_tool_count":[{"type":"google_search","count":5}]}}`,
		plugins.ResponseInfo{Finish: "completed", Phase: plugins.Ended, Usage: usage{Input: known(3), Output: known(4), WebSearches: known(5)}},
	}, {
		"messages, faster and in a geography", plugins.Messages, "anthropic", jsonType,
		`{"model":"claude","type":"message","stop_reason":"end_turn",
		"usage":{"input_tokens":1,"output_tokens":2,"speed":"fast","service_tier":"standard","inference_geo":"us"}}`,
		plugins.ResponseInfo{Model: "claude", Finish: "end_turn", ServiceTier: "fast", InferenceGeo: "us", Phase: plugins.Ended,
			Usage: usage{Input: known(1), Output: known(2)}},
	}, {
		"messages stream, at the usual speed", plugins.Messages, "anthropic", sseType,
		events(`{"type":"message_start","message":{"model":"claude","content":[],"usage":{"input_tokens":1,"output_tokens":1,"service_tier":"standard","inference_geo":"global","speed":"standard"}}}`),
		plugins.ResponseInfo{Stream: true, Model: "claude", ServiceTier: "standard", InferenceGeo: "global", Usage: usage{Input: known(1), Output: known(1)}},
	}, {
		"messages stream", plugins.Messages, "anthropic", sseType,
		"event: message_start\n" + events(`{"type":"message_start","message":{"id":"msg","model":"claude","content":[],"stop_reason":null,"usage":{"input_tokens":10,"cache_read_input_tokens":4,"output_tokens":1}}}`,
			`{"type":"ping"}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","input":{}}}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"input_tokens":12,"cache_read_input_tokens":null,"output_tokens":30}}`,
			`{"type":"message_stop"}`),
		plugins.ResponseInfo{Stream: true, Model: "claude", ResponseID: "msg", Finish: "tool_use", Content: true, Phase: plugins.Ended,
			Usage: usage{Input: known(16), Output: known(30), CacheRead: known(4)}},
	}, {
		"messages before any content", plugins.Messages, "anthropic", sseType,
		events(`{"type":"message_start","message":{"id":"msg","model":"claude","content":[]}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":""}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`),
		plugins.ResponseInfo{Stream: true, Model: "claude", ResponseID: "msg", Finish: "end_turn"},
	}, {
		"messages overloaded", plugins.Messages, "anthropic", sseType,
		"event: error\n" + events(`{"type":"error","error":{"type":"overloaded_error","message":"x"}}`),
		plugins.ResponseInfo{Stream: true, ErrorType: "overloaded_error", ErrorMessage: "x"},
	}, {
		"gemini", plugins.GenerateContent, "gemini", jsonType,
		`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]},"finishReason":"STOP"}],
		"usageMetadata":{"promptTokenCount":40,"candidatesTokenCount":6,"toolUsePromptTokenCount":10,"thoughtsTokenCount":4,"totalTokenCount":60,"cachedContentTokenCount":30,
			"promptTokensDetails":[{"modality":"TEXT","tokenCount":20},{"tokenCount":15,"modality":"AUDIO"},{"modality":"IMAGE","tokenCount":5}],
			"cacheTokensDetails":[{"modality":"AUDIO","tokenCount":11}],"candidatesTokensDetails":[{"modality":"IMAGE","tokenCount":6}]},
		"modelVersion":"gemini-x","responseId":"g1"}`,
		plugins.ResponseInfo{Model: "gemini-x", ResponseID: "g1", Finish: "STOP", Content: true, Phase: plugins.Ended,
			Usage: usage{Input: known(50), Output: known(10), CacheRead: known(30), InputAudio: known(15), InputImage: known(5),
				CacheReadAudio: known(11), OutputImage: known(6), Reasoning: known(4)}},
	}, {
		"gemini as an array", plugins.GenerateContent, "vertex", jsonType,
		`[{"candidates":[{"content":{"parts":[{"text":"x"}]}}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":5,"totalTokenCount":14}}
		,
		{"candidates":[{"content":{"parts":[{"text":""}]},"finishReason":"MAX_TOKENS"}],"usageMetadata":{"trafficType":"ON_DEMAND"}}]`,
		plugins.ResponseInfo{Finish: "MAX_TOKENS", ServiceTier: "ON_DEMAND", Content: true, Phase: plugins.Ended, Usage: usage{Input: known(9), Output: known(5)}},
	}, {
		"gemini's later whole report", plugins.GenerateContent, "gemini", sseType,
		events(`{"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":21,"totalTokenCount":65,"thoughtsTokenCount":35}}`,
			`{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":87,"totalTokenCount":165,"thoughtsTokenCount":78}}`),
		plugins.ResponseInfo{Stream: true, Finish: "STOP", Phase: plugins.Ended, Usage: usage{Input: known(87), Output: known(78), Reasoning: known(78)}},
	}, {
		"gemini blocked", plugins.GenerateContent, "gemini", sseType,
		events(`{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":5,"totalTokenCount":5}}`),
		plugins.ResponseInfo{Stream: true, Finish: "SAFETY", Phase: plugins.Ended, Usage: usage{Input: known(5), Output: known(0)}},
	}, {
		"gemini's error", plugins.GenerateContent, "gemini", jsonType,
		`[{"error":{"code":400,"message":"x","status":"INVALID_ARGUMENT"}}]`,
		plugins.ResponseInfo{ErrorType: "INVALID_ARGUMENT", ErrorMessage: "x", Phase: plugins.Ended},
	}, {
		"converse", plugins.Converse, "bedrock", jsonType,
		`{"metrics":{"latencyMs":1},"output":{"message":{"role":"assistant","content":[{"text":"x"}]}},"serviceTier":{"type":"flex"},"stopReason":"end_turn",
		"usage":{"inputTokens":3,"outputTokens":4,"cacheReadInputTokens":20,"cacheWriteInputTokens":10,"totalTokens":37,
			"cacheDetails":[{"inputTokens":6,"ttl":"1h"},{"ttl":"5m","inputTokens":4}]}}`,
		plugins.ResponseInfo{Finish: "end_turn", ServiceTier: "flex", Content: true, Phase: plugins.Ended,
			Usage: usage{Input: known(33), Output: known(4), CacheRead: known(20), CacheWrite: known(10), CacheWrite1h: known(6)}},
	}, {
		"invoke nova", plugins.Invoke, "bedrock", jsonType,
		`{"output":{"message":{"content":[{"text":"x"}]}},"stopReason":"end_turn","usage":{"inputTokens":3,"outputTokens":4,"totalTokens":7,"cacheReadInputTokenCount":0}}`,
		plugins.ResponseInfo{Finish: "end_turn", Content: true, Phase: plugins.Ended, Usage: usage{Input: known(3), Output: known(4), CacheRead: known(0)}},
	}, {
		"invoke titan", plugins.Invoke, "bedrock", jsonType,
		`{"inputTextTokenCount":5,"results":[{"tokenCount":9,"outputText":"x","completionReason":"FINISH"}]}`,
		plugins.ResponseInfo{Finish: "FINISH", Content: true, Phase: plugins.Ended, Usage: usage{Input: known(5), Output: known(9)}},
	}, {
		"invoke llama", plugins.Invoke, "bedrock", jsonType,
		`{"generation":"x","prompt_token_count":5,"generation_token_count":9,"stop_reason":"length"}`,
		plugins.ResponseInfo{Finish: "length", Content: true, Phase: plugins.Ended, Usage: usage{Input: known(5), Output: known(9)}},
	}, {
		"invoke mistral", plugins.Invoke, "bedrock", jsonType, `{"outputs":[{"text":"x","stop_reason":"stop"}]}`,
		plugins.ResponseInfo{Finish: "stop", Content: true, Phase: plugins.Ended},
	}, {
		"invoke command", plugins.Invoke, "bedrock", jsonType, `{"generations":[{"finish_reason":"COMPLETE","id":"g","text":"x"}],"id":"i"}`,
		plugins.ResponseInfo{ResponseID: "i", Finish: "COMPLETE", Content: true, Phase: plugins.Ended},
	}, {
		"invoke claude", plugins.Invoke, "bedrock", jsonType,
		`{"id":"msg","type":"message","model":"claude","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"cache_read_input_tokens":2,"output_tokens":4}}`,
		plugins.ResponseInfo{Model: "claude", ResponseID: "msg", Finish: "end_turn", Content: true, Phase: plugins.Ended,
			Usage: usage{Input: known(5), Output: known(4), CacheRead: known(2)}},
	}, {
		"cohere", plugins.CohereChat, "cohere", jsonType,
		`{"id":"c","finish_reason":"TOOL_CALL","message":{"role":"assistant","tool_calls":[{"id":"t"}]},"usage":{"billed_units":{"input_tokens":33,"output_tokens":22},"tokens":{"input_tokens":1452,"output_tokens":35},"cached_tokens":144}}`,
		plugins.ResponseInfo{ResponseID: "c", Finish: "TOOL_CALL", Content: true, Phase: plugins.Ended,
			Usage: usage{Input: known(1452), Output: known(35), CacheRead: known(144), BilledInput: known(33), BilledOutput: known(22)}},
	}, {
		"cohere stream", plugins.CohereChat, "cohere", sseType,
		events(`{"id":"c","type":"message-start","delta":{"message":{"role":"assistant","content":[],"tool_plan":"","tool_calls":[],"citations":[]}}}`,
			`{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":""}}}}`) +
			events(`{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"x"}}}}`,
				`{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"tokens":{"input_tokens":4,"output_tokens":1}}}}`),
		plugins.ResponseInfo{Stream: true, ResponseID: "c", Finish: "COMPLETE", Content: true, Phase: plugins.Ended, Usage: usage{Input: known(4), Output: known(1)}},
	}, {
		"ollama stream", plugins.OllamaChat, "ollama", "application/x-ndjson",
		`{"model":"llama","message":{"content":"x"},"done":false}` + "\n" + `{"model":"llama","message":{"content":""},"done":true,"done_reason":"stop","eval_count":7}` + "\n",
		plugins.ResponseInfo{Stream: true, Model: "llama", Finish: "stop", Content: true, Phase: plugins.Ended, Usage: usage{Output: known(7)}},
	}, {
		"ollama cut", plugins.OllamaGenerate, "ollama", "application/x-ndjson",
		`{"model":"llama","response":"x","done":false}` + "\n" + `{"model":"ll`,
		plugins.ResponseInfo{Model: "llama", Content: true},
	}, {
		"ollama's error, after a broken line", plugins.OllamaChat, "ollama", "application/x-ndjson",
		"{]\n" + `{"error":"model not found"}`,
		plugins.ResponseInfo{ErrorType: "error", ErrorMessage: "model not found"},
	}, {
		"a stream declared as JSON", plugins.Chat, "acme", jsonType, events(`{"id":"c"}`, `[DONE]`),
		plugins.ResponseInfo{Stream: true, ResponseID: "c", Phase: plugins.Ended},
	}, {
		"an error declared as a stream", plugins.Chat, "acme", sseType, "\xEF\xBB\xBF\r\n" + `{"error":{"code":"x"}}`,
		plugins.ResponseInfo{ErrorType: "x", Phase: plugins.Ended},
	}, {
		"no media type", plugins.Messages, "", "", "event: message_stop\r\ndata: {\"type\":\"message_stop\"}",
		plugins.ResponseInfo{Stream: true, Phase: plugins.Ended},
	}, {
		"a page", plugins.Chat, "", "text/html", "<html>\ndata\n</html>", plugins.ResponseInfo{},
	}, {
		"a broken event between", plugins.Chat, "", sseType, events(`{"id":"c","choices":[}`, `{"model":"m"}`),
		plugins.ResponseInfo{Stream: true, ResponseID: "c", Model: "m"},
	}, {
		"an event over several lines", plugins.Chat, "", sseType, "data: {\"id\":\ndata: \"c\"}\n\n",
		plugins.ResponseInfo{Stream: true, ResponseID: "c"},
	}, {
		"numbers that a proxy wrote", plugins.Chat, "", jsonType, `{"usage":{"prompt_tokens":12.0,"completion_tokens":-1,"total_tokens":"12"}}`,
		plugins.ResponseInfo{Phase: plugins.Ended, Usage: usage{Input: known(12)}},
	}} {
		t.Run(c.name, func(t *testing.T) {
			c.want.Dialect = c.dialect
			for name, size := range chunkings {
				if got := observe(c.dialect, c.provider, c.contentType, []byte(c.body), size); !reflect.DeepEqual(got, c.want) {
					t.Errorf("%s:\n got %+v\nwant %+v", name, got, c.want)
				}
			}
		})
	}
}

func TestShapeOfUnknownTraffic(t *testing.T) {
	for body, want := range map[string]plugins.Dialect{
		`{"id":"a","object":"chat.completion","choices":[]}`: plugins.Chat,
		`{"id":"a","choices":[{"text":"x"}]}`:                plugins.Chat,
		`{"object":"text_completion"}`:                       plugins.Completions,
		`{"id":"a","object":"response"}`:                     plugins.Responses,
		`{"object":"list","data":[{"embedding":"AAAA"}]}`:    plugins.Embeddings,
		`{"object":"list","data":[{"id":"gpt"}]}`:            plugins.Unknown,
		`{"type":"message","id":"a"}`:                        plugins.Messages,
		`{"promptFeedback":{"blockReason":"SAFETY"}}`:        plugins.GenerateContent,
		`[{"candidates":[]}]`:                                plugins.GenerateContent,
		`{"stopReason":"end_turn"}`:                          plugins.Converse,
		`{"id":"a","message":{}}`:                            plugins.CohereChat,
		`{"model":"a","message":{},"done":true}`:             plugins.OllamaChat,
		`{"model":"a","response":"x"}`:                       plugins.OllamaGenerate,
		`{"message":"not found"}`:                            plugins.Unknown,
		`hello`:                                              plugins.Unknown,
	} {
		for name, size := range chunkings {
			if got := observe(plugins.Unknown, "", "", []byte(body), size); got.Dialect != want {
				t.Errorf("%s, %s: %q, want %q", body, name, got.Dialect, want)
			}
		}
	}
	got := observe(plugins.Unknown, "", sseType, []byte(events(
		`{"id":"c","model":"m","object":"chat.completion.chunk","choices":[{"delta":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3}}`)), chunkings["whole"])
	want := plugins.ResponseInfo{Stream: true, Dialect: plugins.Chat, Model: "m", ResponseID: "c", Finish: "stop", Content: true,
		Phase: plugins.Finished, Usage: plugins.Usage{Input: known(3)}}
	if got != want {
		t.Errorf("the first event: %+v, want %+v", got, want)
	}
}

// What ends a stream must be seen before those bytes are passed on, and no
// sooner than the usage that comes with them.
func TestPhaseIsSeenAtOnce(t *testing.T) {
	for _, c := range []struct {
		dialect     plugins.Dialect
		contentType string
		chunks      []string
		want        []plugins.Phase
	}{
		{plugins.Chat, sseType,
			[]string{`data: {"choices":[{"finish_reason":"stop"`, `}]}`, "\n\ndata: [DONE", "]"},
			[]plugins.Phase{plugins.Running, plugins.Finished, plugins.Finished, plugins.Ended}},
		{plugins.Messages, sseType,
			[]string{"data: {\"delta\":{\"stop_reason\":\"x\"}}\n\n", `data: {"type":"message_stop"`, "}"},
			[]plugins.Phase{plugins.Running, plugins.Running, plugins.Ended}},
		{plugins.Responses, sseType,
			[]string{`data: {"type":"response.incomplete","response":{`, `"usage":{"input_tokens":1}`, "}}"},
			[]plugins.Phase{plugins.Running, plugins.Running, plugins.Ended}},
		{plugins.GenerateContent, sseType,
			[]string{"data: {\"candidates\":[{}]}\n\n", `data: {"candidates":[{"finishReason":"STOP"}]}`},
			[]plugins.Phase{plugins.Running, plugins.Ended}},
		{plugins.GenerateContent, jsonType,
			[]string{`[{"candidates":[{}]}`, `,{"candidates":[{"finishReason":"STOP"}]`, `}`},
			[]plugins.Phase{plugins.Running, plugins.Running, plugins.Ended}},
		{plugins.OllamaChat, "application/x-ndjson",
			[]string{"{\"done\":false}\n", `{"done":true,"eval_count":1`, `}`},
			[]plugins.Phase{plugins.Running, plugins.Running, plugins.Ended}},
		{plugins.Unknown, jsonType, []string{`{"x":[{}]`, `}`}, []plugins.Phase{plugins.Running, plugins.Ended}},
	} {
		x := New(c.dialect, "", typed(c.contentType))
		for i, chunk := range c.chunks {
			x.Write([]byte(chunk))
			if got := x.Info().Phase; got != c.want[i] {
				t.Errorf("%q after %q: phase %d, want %d", c.dialect, chunk, got, c.want[i])
			}
		}
		x.Close()
	}
}

func TestObserverCutsText(t *testing.T) {
	long := strings.Repeat("m", 1000)
	got := observe(plugins.Chat, "", jsonType, []byte(`{"model":"`+long+`"}`), chunkings["random"])
	if got.Model != long[:256] {
		t.Errorf("%d bytes of model", len(got.Model))
	}
}

func TestObserverAllocatesNothingPerChunk(t *testing.T) {
	chunk := []byte(events(`{"id":"c","model":"m","choices":[{"delta":{"content":"a\"b"},"finish_reason":null}],"usage":{"prompt_tokens":3}}`))
	x := New(plugins.Chat, "", typed(sseType))
	write := func() {
		x.Write(chunk[:40])
		x.Write(chunk[40:])
	}
	if n := testing.AllocsPerRun(100, write); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// fuzzed are all dialects, in an order that stays.
func fuzzed() []plugins.Dialect {
	return append([]plugins.Dialect{plugins.Unknown}, slices.Sorted(maps.Keys(dialects))...)
}

// fuzzedProviders are those who mean something else in a dialect, and others.
var fuzzedProviders = []string{"openrouter", "vercel", "perplexity", "openai"}

var fuzzedTypes = []string{"", jsonType, sseType, "application/x-ndjson", "application/vnd.amazon.eventstream"}

func FuzzObserver(f *testing.F) {
	all := fuzzed()
	for i, body := range []string{
		`data: {"object":"chat.completion","choices":[{"delta":{"content":"x"}}]}`,
		`[{"usageMetadata":{"promptTokenCount":1,"promptTokensDetails":[{"modality":"AUDIO","tokenCount":1}]}}]`,
		"data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":1}}}\n\n",
		"data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"y\\\"\"}}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":1}}\n\n",
		"error: {\"error\":{\"type\":\"x\"}}\n\n",
		`{"predictions":[{"bytesBase64Encoded":"AA"},{"embeddings":{"statistics":{"token_count":4}}}]}`,
		`{"data":[{"b64_json":"AA"}],"usage":{"cost":"0.1","is_byok":true,"cost_details":{"upstream_inference_cost":1}}}`,
		`{"pages":[{"markdown":"x"}],"document_annotation":"{}","usage_info":{"pages_processed":2}}`,
	} {
		for d := range all {
			f.Add(uint8(d), uint8(i), uint8(i), []byte(body), uint16(i))
		}
	}
	f.Fuzz(func(t *testing.T, d, provider, media uint8, b []byte, seed uint16) {
		dialect, contentType := all[int(d)%len(all)], fuzzedTypes[int(media)%len(fuzzedTypes)]
		by := fuzzedProviders[int(provider)%len(fuzzedProviders)]
		whole := observe(dialect, by, contentType, b, chunkings["whole"])
		cut := observe(dialect, by, contentType, b, cuts(seed))
		if !reflect.DeepEqual(whole, cut) {
			t.Fatalf("in pieces %+v\nas a whole %+v", cut, whole)
		}
	})
}
