package observe

import (
	"net/http"
	"testing"
	"time"

	"github.com/weirhq/weir/plugins"
)

// TestEndpoints reads what each endpoint of a provider answers, from the path to
// the usage.
func TestEndpoints(t *testing.T) {
	type usage = plugins.Usage
	cost := plugins.KnownCost
	for _, c := range []struct {
		name, provider, path string
		header               http.Header
		body                 string
		want                 plugins.ResponseInfo
	}{{
		"cohere's embeddings", "cohere", "/v2/embed", typed(jsonType),
		`{"id":"e","embeddings":{"float":[[0.1,0.2]]},"texts":["x"],"meta":{"api_version":{"version":"2"},"billed_units":{"input_tokens":4}},"response_type":"embeddings_by_type"}`,
		plugins.ResponseInfo{Dialect: plugins.CohereEmbed, ResponseID: "e", Usage: usage{Input: known(4), Output: known(0), BilledInput: known(4)}},
	}, {
		"cohere's rerank", "cohere", "/v2/rerank", typed(jsonType),
		`{"id":"r","results":[{"index":0,"relevance_score":0.9}],"meta":{"billed_units":{"search_units":2}}}`,
		plugins.ResponseInfo{Dialect: plugins.Rerank, ResponseID: "r", Usage: usage{SearchUnits: known(2)}},
	}, {
		"anthropic's text completions", "anthropic", "/v1/complete", typed(sseType),
		events(`{"type":"completion","completion":" Hi","stop_reason":null,"model":"claude-2.1"}`, `{"type":"completion","completion":"","stop_reason":"max_tokens","model":"claude-2.1"}`),
		plugins.ResponseInfo{Stream: true, Dialect: plugins.TextCompletions, Model: "claude-2.1", Finish: "max_tokens", Content: true},
	}, {
		"usage that ends in zeros", "", "/v1/chat/completions", typed(sseType),
		events(`{"id":"c","choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"prompt_tokens_details":{"cached_tokens":4}}}`,
			`{"id":"c","choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0,"prompt_tokens_details":{"cached_tokens":0}}}`, `[DONE]`),
		plugins.ResponseInfo{Stream: true, Dialect: plugins.Chat, ResponseID: "c", Finish: "stop", Content: true, Usage: usage{Input: known(9), Output: known(2), CacheRead: known(4)}},
	}, {
		"gemini's usage that ends in zeros", "gemini", "/v1beta/models/g:streamGenerateContent", typed(sseType),
		events(`{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":2,"totalTokenCount":11}}`,
			`{"usageMetadata":{"promptTokenCount":0,"candidatesTokenCount":0,"totalTokenCount":0}}`),
		plugins.ResponseInfo{Stream: true, Dialect: plugins.GenerateContent, Finish: "STOP", Content: true, Usage: usage{Input: known(9), Output: known(2)}},
	}, {
		"xai's reasoning without a total", "xai", "/v1/chat/completions", typed(jsonType),
		`{"id":"c","model":"grok-x","choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2,"completion_tokens_details":{"reasoning_tokens":70}}}`,
		plugins.ResponseInfo{Dialect: plugins.Chat, ResponseID: "c", Model: "grok-x", Finish: "stop", Content: true, Usage: usage{Input: known(9), Output: known(72), Reasoning: known(70)}},
	}, {
		"venice's cost", "venice", "/api/v1/chat/completions", typed(jsonType),
		`{"id":"c","choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}],"cost":0.002,"usage":{"prompt_tokens":9,"completion_tokens":2}}`,
		plugins.ResponseInfo{Dialect: plugins.Chat, ResponseID: "c", Finish: "stop", Content: true, Usage: usage{Input: known(9), Output: known(2), ReportedCost: cost(2_000_000)}},
	}, {
		"hyper's cost", "", "/v1/chat/completions", typed(jsonType),
		`{"id":"c","choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2,"cost":{"usd":"0.002","hypercredits":0.04}}}`,
		plugins.ResponseInfo{Dialect: plugins.Chat, ResponseID: "c", Finish: "stop", Content: true, Usage: usage{Input: known(9), Output: known(2), ReportedCost: cost(2_000_000)}},
	}, {
		"avian's cost", "avian", "/v1/chat/completions", typed(jsonType),
		`{"id":"c","choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2,"cost":0.002}}`,
		plugins.ResponseInfo{Dialect: plugins.Chat, ResponseID: "c", Finish: "stop", Content: true, Usage: usage{Input: known(9), Output: known(2), ReportedCost: cost(2_000_000)}},
	}, {
		"hugging face's cost", "huggingface", "/v1/chat/completions", typed(jsonType),
		`{"id":"c","choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2,"estimated_cost":0.002}}`,
		plugins.ResponseInfo{Dialect: plugins.Chat, ResponseID: "c", Finish: "stop", Content: true, Usage: usage{Input: known(9), Output: known(2), ReportedCost: cost(2_000_000)}},
	}, {
		"voyage's rerank", "", "/v1/rerank", typed(jsonType),
		`{"object":"list","data":[{"relevance_score":0.4,"index":0}],"model":"rerank-x","usage":{"total_tokens":26}}`,
		plugins.ResponseInfo{Dialect: plugins.Rerank, Model: "rerank-x", Usage: usage{Input: known(26), Output: known(0)}},
	}, {
		"openrouter's rerank", "openrouter", "/api/v1/rerank", typed(jsonType),
		`{"id":"g","model":"cohere/rerank-x","results":[],"usage":{"cost":0.002,"search_units":1}}`,
		plugins.ResponseInfo{Dialect: plugins.Rerank, ResponseID: "g", Model: "cohere/rerank-x", Usage: usage{SearchUnits: known(1), ReportedCost: cost(2_000_000)}},
	}, {
		"cohere's first chat", "cohere", "/v1/chat", typed(jsonType),
		`{"response_id":"r","text":"hi","generation_id":"g","chat_history":[],"finish_reason":"COMPLETE","meta":{"billed_units":{"input_tokens":3,"output_tokens":2},"tokens":{"input_tokens":66,"output_tokens":5}}}`,
		plugins.ResponseInfo{Dialect: plugins.CohereText, ResponseID: "r", Finish: "COMPLETE", Content: true,
			Usage: usage{Input: known(66), Output: known(5), BilledInput: known(3), BilledOutput: known(2)}},
	}, {
		"cohere's first chat as a stream", "cohere", "/v1/chat", typed("application/stream+json"),
		`{"is_finished":false,"event_type":"stream-start","generation_id":"g"}` + "\n" +
			`{"is_finished":false,"event_type":"text-generation","text":"hi"}` + "\n" +
			`{"is_finished":true,"event_type":"stream-end","response":{"response_id":"r","text":"hi","generation_id":"g","meta":{"billed_units":{"input_tokens":3,"output_tokens":2}}},"finish_reason":"COMPLETE"}` + "\n",
		plugins.ResponseInfo{Stream: true, Dialect: plugins.CohereText, ResponseID: "r", Finish: "COMPLETE", Content: true,
			Usage: usage{Input: known(3), Output: known(2), BilledInput: known(3), BilledOutput: known(2)}},
	}, {
		"cohere's generate", "cohere", "/v1/generate", typed(jsonType),
		`{"id":"i","generations":[{"id":"g","text":"x","finish_reason":"MAX_TOKENS"}],"prompt":"p","meta":{"billed_units":{"input_tokens":1,"output_tokens":9}}}`,
		plugins.ResponseInfo{Dialect: plugins.CohereText, ResponseID: "i", Finish: "MAX_TOKENS", Content: true,
			Usage: usage{Input: known(1), Output: known(9), BilledInput: known(1), BilledOutput: known(9)}},
	}, {
		"images", "openai", "/v1/images/generations", typed(jsonType),
		`{"created":1,"data":[{"b64_json":"AAAA"}],"usage":{"total_tokens":1610,"input_tokens":50,"output_tokens":1560,"input_tokens_details":{"text_tokens":40,"image_tokens":10}}}`,
		plugins.ResponseInfo{Dialect: plugins.Images, Content: true, Usage: usage{Input: known(50), Output: known(1560), InputImage: known(10)}},
	}, {
		"images that cost by the piece", "openai", "/v1/images/generations", typed(jsonType),
		`{"created":1,"data":[{"url":"https://a.example"},{"url":"https://b.example"}]}`,
		plugins.ResponseInfo{Dialect: plugins.Images, Content: true, Usage: usage{Images: known(2)}},
	}, {
		"an edit of an image as a stream", "azure", "/openai/deployments/paint/images/edits", typed(sseType),
		"event: image_edit.partial_image\n" + events(`{"type":"image_edit.partial_image","b64_json":"AA"}`) +
			"event: image_edit.completed\n" + events(`{"type":"image_edit.completed","b64_json":"AAAA","usage":{"input_tokens":5,"output_tokens":100,"total_tokens":105}}`),
		plugins.ResponseInfo{Stream: true, Dialect: plugins.Images, Content: true, Usage: usage{Input: known(5), Output: known(100)}},
	}, {
		"xai's images", "xai", "/v1/images/generations", typed(jsonType),
		`{"data":[{"url":"https://a.example"}],"usage":{"cost_in_usd_ticks":200000000}}`,
		plugins.ResponseInfo{Dialect: plugins.Images, Content: true, Usage: usage{Images: known(1), ReportedCost: cost(20_000_000)}},
	}, {
		"openrouter's images", "openrouter", "/api/v1/images/generations", typed(jsonType),
		`{"data":[{"b64_json":"AA"}],"usage":{"cost":0.04}}`,
		plugins.ResponseInfo{Dialect: plugins.Images, Content: true, Usage: usage{Images: known(1), ReportedCost: cost(40_000_000)}},
	}, {
		"a transcription in tokens", "openai", "/v1/audio/transcriptions", typed(jsonType),
		`{"text":"hello","usage":{"type":"tokens","total_tokens":101,"input_tokens":14,"input_token_details":{"text_tokens":0,"audio_tokens":14},"output_tokens":87}}`,
		plugins.ResponseInfo{Dialect: plugins.Transcription, Content: true, Usage: usage{Input: known(14), InputAudio: known(14), Output: known(87)}},
	}, {
		"a transcription by its length", "openai", "/v1/audio/translations", typed(jsonType),
		`{"text":"hello","usage":{"type":"duration","seconds":3}}`,
		plugins.ResponseInfo{Dialect: plugins.Transcription, Content: true, Usage: usage{AudioDuration: plugins.KnownDuration(3 * time.Second)}},
	}, {
		"a transcription's own length", "groq", "/openai/v1/audio/transcriptions", typed(jsonType),
		`{"task":"transcribe","duration":"8.47","text":"hello","segments":[{"text":"hello"}],"x_groq":{"id":"q"}}`,
		plugins.ResponseInfo{Dialect: plugins.Transcription, Content: true, Usage: usage{AudioDuration: plugins.KnownDuration(8470 * time.Millisecond)}},
	}, {
		"a transcription as a stream", "openai", "/v1/audio/transcriptions", typed(sseType),
		events(`{"type":"transcript.text.delta","delta":"hel"}`,
			`{"type":"transcript.text.done","text":"hello","usage":{"type":"tokens","input_tokens":14,"output_tokens":5,"total_tokens":19}}`),
		plugins.ResponseInfo{Stream: true, Dialect: plugins.Transcription, Content: true, Usage: usage{Input: known(14), Output: known(5)}},
	}, {
		"openrouter's transcription", "openrouter", "/api/v1/audio/transcriptions", typed(jsonType),
		`{"text":"hello","usage":{"seconds":9.2,"total_tokens":113,"input_tokens":83,"output_tokens":30,"cost":0.000508}}`,
		plugins.ResponseInfo{Dialect: plugins.Transcription, Content: true, Usage: usage{Input: known(83), Output: known(30),
			AudioDuration: plugins.KnownDuration(9200 * time.Millisecond), ReportedCost: cost(508_000)}},
	}, {
		"mistral's transcription", "mistral", "/v1/audio/transcriptions", typed(jsonType),
		`{"model":"voxtral-x","text":"hello","language":null,"segments":[],"usage":{"prompt_audio_seconds":203,"prompt_tokens":4,"total_tokens":3264,"completion_tokens":635}}`,
		plugins.ResponseInfo{Dialect: plugins.Transcription, Model: "voxtral-x", Content: true,
			Usage: usage{Input: known(2629), InputAudio: known(2625), Output: known(635), AudioDuration: plugins.KnownDuration(203 * time.Second)}},
	}, {
		"speech as a stream", "openai", "/v1/audio/speech", typed(sseType),
		events(`{"type":"speech.audio.delta","audio":"AAAA"}`, `{"type":"speech.audio.done","usage":{"input_tokens":14,"output_tokens":101,"total_tokens":115}}`),
		plugins.ResponseInfo{Stream: true, Dialect: plugins.Speech, Content: true, Usage: usage{Input: known(14), Output: known(101), OutputAudio: known(101)}},
	}, {
		"mistral's speech", "mistral", "/v1/audio/speech", typed(jsonType), `{"audio_data":"AAAA"}`,
		plugins.ResponseInfo{Dialect: plugins.Speech, Content: true},
	}, {
		"openrouter's images", "openrouter", "/api/v1/images/generations", typed(jsonType),
		`{"created":1,"data":[{"b64_json":"AA"}],"usage":{"prompt_tokens":3,"completion_tokens":1290,"total_tokens":1293,"cost":0.04}}`,
		plugins.ResponseInfo{Dialect: plugins.Images, Content: true, Usage: usage{Input: known(3), Output: known(1290), ReportedCost: cost(40_000_000)}},
	}, {
		"moderations", "openai", "/v1/moderations", typed(jsonType),
		`{"id":"modr","model":"omni-moderation-latest","results":[{"flagged":false,"category_scores":{"hate":0.1}}]}`,
		plugins.ResponseInfo{Dialect: plugins.Moderations, ResponseID: "modr", Model: "omni-moderation-latest"},
	}, {
		"mistral's moderations", "mistral", "/v1/chat/moderations", typed(jsonType),
		`{"id":"modr","model":"mistral-moderation-x","results":[],"usage":{"prompt_tokens":5,"completion_tokens":0,"total_tokens":74}}`,
		plugins.ResponseInfo{Dialect: plugins.Moderations, ResponseID: "modr", Model: "mistral-moderation-x", Usage: usage{Input: known(5), Output: known(0)}},
	}, {
		"mistral's OCR", "mistral", "/v1/ocr", typed(jsonType),
		`{"pages":[{"index":0,"markdown":"# A","images":[{"id":"i","image_annotation":null}]}],"model":"ocr-x","document_annotation":null,"usage_info":{"pages_processed":29,"doc_size_bytes":1}}`,
		plugins.ResponseInfo{Dialect: plugins.OCR, Model: "ocr-x", Content: true, Usage: usage{Pages: known(29)}},
	}, {
		"mistral's OCR with annotations", "mistral", "/v1/ocr", typed(jsonType),
		`{"pages":[{"index":0,"markdown":"# A","images":[]}],"model":"ocr-x","document_annotation":"{}","usage_info":{"pages_processed":29}}`,
		plugins.ResponseInfo{Dialect: plugins.OCR, Model: "ocr-x", Content: true},
	}, {
		"a compaction", "openai", "/v1/responses/compact", typed(jsonType),
		`{"id":"r","object":"response.compaction","created_at":1,"output":[{"type":"compaction","encrypted_content":"AA"}],"usage":{"input_tokens":139,"output_tokens":438,"output_tokens_details":{"reasoning_tokens":64},"total_tokens":577}}`,
		plugins.ResponseInfo{Dialect: plugins.Compaction, ResponseID: "r", Content: true, Usage: usage{Input: known(139), Output: known(438), Reasoning: known(64)}},
	}, {
		"an assistant's run", "openai", "/v1/threads/t/runs", typed(sseType),
		"event: thread.run.created\n" + events(`{"id":"run","object":"thread.run","status":"queued","model":"gpt","usage":null}`) +
			"event: thread.message.delta\n" + events(`{"id":"msg","object":"thread.message.delta","delta":{"content":[{"index":0,"type":"text","text":{"value":"hi"}}]}}`) +
			"event: thread.run.completed\n" + events(`{"id":"run","object":"thread.run","status":"completed","model":"gpt","usage":{"prompt_tokens":20,"completion_tokens":11,"total_tokens":31}}`) +
			"event: done\n" + events(`[DONE]`),
		plugins.ResponseInfo{Stream: true, Dialect: plugins.Runs, ResponseID: "run", Model: "gpt", Finish: "completed", Content: true, Usage: usage{Input: known(20), Output: known(11)}},
	}, {
		"a session of OpenAI's agents", "openai", "/v1/agents/sessions", typed(jsonType),
		`{"id":"s","object":"agent.session","agent":{"id":"a","model":"gpt-x","multi_agent":{"enabled":true}},"status":"idle","usage":{"input_tokens":20,"input_tokens_details":{"cached_tokens":8},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":3},"total_tokens":25}}`,
		plugins.ResponseInfo{Dialect: plugins.Runs, ResponseID: "s", Model: "gpt-x", Finish: "idle", Usage: usage{Input: known(20), CacheRead: known(8), Output: known(5), Reasoning: known(3)}},
	}, {
		"a session of OpenAI's agents as a stream", "openai", "/v1/agents/sessions", typed(sseType),
		events(`{"event_id":"e1","type":"agent.session.created","session":{"id":"s","object":"agent.session","agent":{"model":"gpt-x"},"status":"in_progress","usage":null}}`,
			`{"event_id":"e2","type":"agent.session.turn.completed","session_id":"s","turn_id":"t","turn":{"id":"t"},"usage":{"input_tokens":10,"output_tokens":1,"total_tokens":11}}`,
			`{"event_id":"e3","type":"agent.session.idle","session":{"id":"s","object":"agent.session","agent":{"model":"gpt-x"},"status":"idle","usage":{"input_tokens":20,"output_tokens":5,"total_tokens":25}}}`,
			`{"event_id":"e4","type":"agent.session.turn.completed","session_id":"s","turn_id":"t","turn":{"id":"t"},"usage":{"input_tokens":50,"input_tokens_details":{"cached_tokens":40},"output_tokens":1,"output_tokens_details":{"reasoning_tokens":1},"total_tokens":51}}`),
		plugins.ResponseInfo{Stream: true, Dialect: plugins.Runs, ResponseID: "s", Model: "gpt-x", Finish: "idle", Usage: usage{Input: known(20), Output: known(5)}},
	}, {
		"a session of Anthropic's agents", "anthropic", "/v1/sessions", typed(jsonType),
		`{"id":"s","type":"session","agent":{"id":"a","model":{"id":"claude-x","speed":"standard"}},"status":"idle","usage":{"active_seconds":1.5,"cache_creation":{"ephemeral_1h_input_tokens":0,"ephemeral_5m_input_tokens":2},"cache_read_input_tokens":8,"input_tokens":10,"output_tokens":5,"list_cost":{"amount":"125","currency":"USD"},"server_tool_use":{"web_search_requests":1}}}`,
		plugins.ResponseInfo{Dialect: plugins.Runs, ResponseID: "s", Model: "claude-x", Finish: "idle", Usage: usage{
			Input: known(20), CacheRead: known(8), CacheWrite: known(2), CacheWrite1h: known(0), Output: known(5), WebSearches: known(1), ReportedCost: plugins.KnownCost(1_250_000_000),
		}},
	}, {
		"a session that costs other money", "anthropic", "/v1/sessions", typed(jsonType),
		`{"id":"s","usage":{"list_cost":{"amount":"125","currency":"EUR"},"input_tokens":1,"output_tokens":1}}`,
		plugins.ResponseInfo{Dialect: plugins.Runs, ResponseID: "s", Usage: usage{Input: known(1), Output: known(1)}},
	}, {
		"a session whose cost changes to other money", "anthropic", "/v1/sessions", typed(sseType),
		events(`{"id":"e1","type":"session.usage","usage":{"list_cost":{"amount":"125","currency":"USD"},"input_tokens":1,"output_tokens":1}}`,
			`{"id":"e2","type":"session.usage","usage":{"list_cost":{"amount":"250","currency":"EUR"},"input_tokens":2,"output_tokens":2}}`),
		plugins.ResponseInfo{Stream: true, Dialect: plugins.Runs, ResponseID: "e1", Usage: usage{Input: known(2), Output: known(2)}},
	}, {
		"a session that has cost less than a cent", "anthropic", "/v1/sessions", typed(jsonType),
		`{"id":"s","usage":{"list_cost":{"amount":"0","currency":"USD"},"input_tokens":1,"output_tokens":1}}`,
		plugins.ResponseInfo{Dialect: plugins.Runs, ResponseID: "s", Usage: usage{Input: known(1), Output: known(1)}},
	}, {
		"decisions", "openai", "/v1/decisions", typed(jsonType),
		`{"answers":[{"name":"spam","type":"predicate","probability":0.98}],"model":"gpt-6-luna","usage":{"input_tokens":40,"input_tokens_details":{"cache_write_tokens":1,"cached_tokens":30},"output_tokens":4,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":44}}`,
		plugins.ResponseInfo{Dialect: plugins.Decisions, Model: "gpt-6-luna", Content: true,
			Usage: usage{Input: known(40), CacheRead: known(30), CacheWrite: known(1), Output: known(4), Reasoning: known(2)}},
	}, {
		"openrouter's decisions", "openrouter", "/api/alpha/decisions", typed(jsonType),
		`{"id":"d","answers":{"spam":{"type":"noul","noul":0.98}},"model":"typesafe/jev-1.13","usage":{"input_tokens":40,"output_tokens":4,"cost":0.002}}`,
		plugins.ResponseInfo{Dialect: plugins.Decisions, ResponseID: "d", Model: "typesafe/jev-1.13", Content: true, Usage: usage{Input: known(40), Output: known(4), ReportedCost: cost(2_000_000)}},
	}, {
		"decisions that are refused", "openai", "/v1/decisions", typed(jsonType), `{"error":{"type":"invalid_request_error","code":"too_many_questions","message":"no"}}`,
		plugins.ResponseInfo{Dialect: plugins.Decisions, ErrorType: "invalid_request_error", ErrorMessage: "no"},
	}, {
		"a live session over WebRTC", "openai", "/v1/live/sessions", typed(jsonType), `{"session":{"id":"sess_1"},"transport":{"type":"webrtc","sdp":"v=0"}}`,
		plugins.ResponseInfo{Dialect: plugins.LiveSessions, ResponseID: "sess_1"},
	}, {
		"gemini's interaction", "gemini", "/v1beta/interactions", typed(jsonType),
		`{"id":"i","object":"interaction","model":"gemini-x","status":"completed","outputs":[{"type":"text","text":"hi"}],"usage":{"total_input_tokens":7,"input_tokens_by_modality":[{"modality":"audio","tokens":3}],"total_cached_tokens":2,"total_output_tokens":20,"total_tool_use_tokens":0,"total_thought_tokens":22,"total_tokens":49}}`,
		plugins.ResponseInfo{Dialect: plugins.Interactions, ResponseID: "i", Model: "gemini-x", Finish: "completed", Content: true,
			Usage: usage{Input: known(7), InputAudio: known(3), CacheRead: known(2), Output: known(42), Reasoning: known(22)}},
	}, {
		"gemini's interaction as a stream", "gemini", "/v1beta/interactions", typed(sseType),
		events(`{"event_type":"interaction.created","interaction":{"id":"i","object":"interaction","model":"gemini-x","status":"in_progress"}}`,
			`{"event_type":"content.delta","index":0,"delta":{"type":"text","text":"hi"}}`,
			`{"event_type":"interaction.completed","interaction":{"id":"i","status":"completed","usage":{"total_input_tokens":7,"total_output_tokens":1,"total_tokens":8}}}`),
		plugins.ResponseInfo{Stream: true, Dialect: plugins.Interactions, ResponseID: "i", Model: "gemini-x", Finish: "completed", Content: true, Usage: usage{Input: known(7), Output: known(1)}},
	}, {
		"watsonx's chat", "", "/ml/v1/text/chat_stream", typed(sseType),
		events(`{"id":"c","model_id":"ibm/g","model":"ibm/g","choices":[{"index":0,"finish_reason":null,"delta":{"role":"assistant","content":"hi"}}]}`,
			`{"id":"c","model_id":"ibm/g","choices":[{"index":0,"finish_reason":"stop","delta":{"content":""}}]}`,
			`{"id":"c","model_id":"ibm/g","choices":[],"usage":{"completion_tokens":2,"prompt_tokens":9,"total_tokens":11}}`),
		plugins.ResponseInfo{Stream: true, Dialect: plugins.Chat, ResponseID: "c", Model: "ibm/g", Finish: "stop", Content: true, Usage: usage{Input: known(9), Output: known(2)}},
	}, {
		"watsonx's text", "", "/ml/v1/text/generation", typed(jsonType),
		`{"model_id":"ibm/g","created_at":"x","results":[{"generated_text":"hi","generated_token_count":3,"input_token_count":11,"stop_reason":"max_tokens"}]}`,
		plugins.ResponseInfo{Dialect: plugins.Completions, Model: "ibm/g", Finish: "max_tokens", Content: true, Usage: usage{Input: known(11), Output: known(3)}},
	}, {
		"watsonx's embeddings", "", "/ml/v1/text/embeddings", typed(jsonType),
		`{"model_id":"ibm/e","results":[{"embedding":[0.1]}],"created_at":"x","input_token_count":10}`,
		plugins.ResponseInfo{Dialect: plugins.Embeddings, Model: "ibm/e", Usage: usage{Input: known(10), Output: known(0)}},
	}, {
		"watsonx's rerank", "", "/ml/v1/text/rerank", typed(jsonType),
		`{"model_id":"ibm/r","results":[{"index":0,"score":0.7}],"created_at":"x","input_token_count":20}`,
		plugins.ResponseInfo{Dialect: plugins.Rerank, Model: "ibm/r", Usage: usage{Input: known(20), Output: known(0)}},
	}, {
		"imagen", "gemini", "/v1beta/models/imagen-x:predict", typed(jsonType),
		`{"predictions":[{"mimeType":"image/png","bytesBase64Encoded":"AA"},{"mimeType":"image/png","bytesBase64Encoded":"AA"}]}`,
		plugins.ResponseInfo{Dialect: plugins.Predict, Content: true, Usage: usage{Images: known(2)}},
	}, {
		"vertex's embeddings", "vertex", "/v1/projects/p/locations/l/publishers/google/models/e:predict", typed(jsonType),
		`{"predictions":[{"embeddings":{"values":[0.1],"statistics":{"truncated":false,"token_count":4}}},{"embeddings":{"statistics":{"token_count":3}}}],"metadata":{"billableCharacterCount":19}}`,
		plugins.ResponseInfo{Dialect: plugins.Predict, Usage: usage{Input: known(7)}},
	}, {
		"gemini's embeddings", "gemini", "/v1beta/models/e:batchEmbedContents", typed(jsonType),
		`{"embeddings":[{"values":[0.1]}],"usageMetadata":{"promptTokenCount":5,"totalTokenCount":5}}`,
		plugins.ResponseInfo{Dialect: plugins.EmbedContent, Usage: usage{Input: known(5), Output: known(0)}},
	}, {
		"ollama's embeddings", "ollama", "/api/embed", typed(jsonType),
		`{"model":"e","embeddings":[[0.1]],"total_duration":1,"prompt_eval_count":8}`,
		plugins.ResponseInfo{Dialect: plugins.OllamaEmbed, Model: "e", Usage: usage{Input: known(8), Output: known(0)}},
	}, {
		"voyage's embeddings", "", "/v1/multimodalembeddings", typed(jsonType),
		`{"object":"list","data":[{"object":"embedding","embedding":[0.1],"index":0}],"model":"voyage-x","usage":{"text_tokens":5,"image_pixels":2000000,"total_tokens":3576}}`,
		plugins.ResponseInfo{Dialect: plugins.Embeddings, Model: "voyage-x", Usage: usage{Input: known(3576), Output: known(0)}},
	}, {
		"perplexity's embeddings", "perplexity", "/v1/embeddings", typed(jsonType),
		`{"object":"list","data":[{"embedding":"AA"}],"model":"e","usage":{"prompt_tokens":9,"total_tokens":9,"cost":{"input_cost":0.0000001,"total_cost":0.0000001,"currency":"USD"}}}`,
		plugins.ResponseInfo{Dialect: plugins.Embeddings, Model: "e", Usage: usage{Input: known(9), Output: known(0), ReportedCost: cost(100)}},
	}, {
		"openrouter's embeddings", "openrouter", "/api/v1/embeddings", typed(jsonType),
		`{"object":"list","data":[{"embedding":[0.1]}],"model":"e","usage":{"prompt_tokens":9,"total_tokens":9,"cost":1.8e-07}}`,
		plugins.ResponseInfo{Dialect: plugins.Embeddings, Model: "e", Usage: usage{Input: known(9), Output: known(0), ReportedCost: cost(180)}},
	}, {
		"vercel's chat", "vercel", "/v1/chat/completions", typed(jsonType),
		`{"id":"c","model":"m","choices":[{"message":{"content":"x","provider_metadata":{"gateway":{"cost":"0.0012"}}},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":75,"completion_tokens_details":{"reasoning_tokens":60}}}`,
		plugins.ResponseInfo{Dialect: plugins.Chat, ResponseID: "c", Model: "m", Finish: "stop", Content: true,
			Usage: usage{Input: known(10), Output: known(65), Reasoning: known(60), ReportedCost: cost(1_200_000)}},
	}, {
		"vercel's chat, without a total that counts reasoning", "vercel", "/v1/chat/completions", typed(jsonType),
		`{"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"completion_tokens_details":{"reasoning_tokens":60},"cost":0.002}}`,
		plugins.ResponseInfo{Dialect: plugins.Chat, Usage: usage{Input: known(10), Output: known(65), Reasoning: known(60), ReportedCost: cost(2_000_000)}},
	}, {
		"vercel's messages", "vercel", "/v1/messages", typed(jsonType),
		`{"id":"m","type":"message","model":"claude","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":2},"provider_metadata":{"gateway":{"cost":"0.5"}}}`,
		plugins.ResponseInfo{Dialect: plugins.Messages, ResponseID: "m", Model: "claude", Finish: "end_turn", Content: true,
			Usage: usage{Input: known(1), Output: known(2), ReportedCost: cost(500_000_000)}},
	}, {
		"more cached than prompted, which the total denies", "azure", "/chat/completions", typed(jsonType),
		`{"usage":{"prompt_tokens":249,"completion_tokens":40,"total_tokens":289,"prompt_tokens_details":{"cached_tokens":416}}}`,
		plugins.ResponseInfo{Dialect: plugins.Chat, Usage: usage{Input: known(249), Output: known(40), CacheRead: known(416)}},
	}, {
		"more cached than prompted, which the total says", "xai", "/v1/chat/completions", typed(jsonType),
		`{"usage":{"prompt_tokens":10,"completion_tokens":1,"total_tokens":41,"prompt_tokens_details":{"cached_tokens":30}}}`,
		plugins.ResponseInfo{Dialect: plugins.Chat, Usage: usage{Input: known(40), Output: known(1), CacheRead: known(30)}},
	}, {
		"no cost in ticks", "xai", "/v1/chat/completions", typed(jsonType),
		`{"usage":{"prompt_tokens":10,"completion_tokens":1,"cost_in_usd_ticks":0}}`,
		plugins.ResponseInfo{Dialect: plugins.Chat, Usage: usage{Input: known(10), Output: known(1)}},
	}, {
		"openrouter with the caller's own account", "openrouter", "/api/v1/chat/completions", typed(jsonType),
		`{"usage":{"prompt_tokens":10,"completion_tokens":1,"cost":0,"is_byok":true,"cost_details":{"upstream_inference_cost":0.03}}}`,
		plugins.ResponseInfo{Dialect: plugins.Chat, Usage: usage{Input: known(10), Output: known(1), ReportedCost: cost(30_000_000)}},
	}, {
		"openrouter's fee for the caller's own account", "openrouter", "/api/v1/responses", typed(jsonType),
		`{"usage":{"input_tokens":10,"output_tokens":1,"cost":0.0015,"is_byok":true,"cost_details":{"upstream_inference_cost":0.03}}}`,
		plugins.ResponseInfo{Dialect: plugins.Responses, Usage: usage{Input: known(10), Output: known(1), ReportedCost: cost(31_500_000)}},
	}, {
		"openrouter's cost told twice", "openrouter", "/api/v1/chat/completions", typed(jsonType),
		`{"usage":{"prompt_tokens":10,"completion_tokens":1,"cost":0.03,"is_byok":false,"cost_details":{"upstream_inference_cost":0.03}}}`,
		plugins.ResponseInfo{Dialect: plugins.Chat, Usage: usage{Input: known(10), Output: known(1), ReportedCost: cost(30_000_000)}},
	}, {
		"perplexity's agent", "perplexity", "/v1/agent", typed(jsonType),
		`{"usage":{"input_tokens":10,"output_tokens":1,"input_tokens_details":{"cached_tokens":4,"cache_creation_input_tokens":2,"cache_read_input_tokens":4},` +
			`"tool_calls_details":{"search_web":{"invocation":3}},"cost":{"currency":"USD","input_cost":0.001,"total_cost":0.0015}}}`,
		plugins.ResponseInfo{Dialect: plugins.Responses, Usage: usage{
			Input: known(10), CacheRead: known(4), CacheWrite: known(2), Output: known(1), WebSearches: known(3), ReportedCost: cost(1_500_000),
		}},
	}, {
		"titan's embeddings", "bedrock", "/model/amazon.titan-embed/invoke", http.Header{"Content-Type": {jsonType}, "X-Amzn-Bedrock-Input-Token-Count": {"4"}},
		`{"embedding":[0.1],"embeddingsByType":{"float":[0.1]}}`,
		plugins.ResponseInfo{Dialect: plugins.Invoke, Usage: usage{Input: known(4)}},
	}, {
		"mistral on bedrock", "bedrock", "/model/mistral.m/invoke", http.Header{"Content-Type": {jsonType}, "X-Amzn-Bedrock-Input-Token-Count": {"15"}, "X-Amzn-Bedrock-Output-Token-Count": {"7"}},
		`{"outputs":[{"text":"x","stop_reason":"stop"}]}`,
		plugins.ResponseInfo{Dialect: plugins.Invoke, Finish: "stop", Content: true, Usage: usage{Input: known(15), Output: known(7)}},
	}, {
		"claude on bedrock, who counts by itself", "bedrock", "/model/anthropic.c/invoke", http.Header{"Content-Type": {jsonType}, "X-Amzn-Bedrock-Input-Token-Count": {"15"}, "X-Amzn-Bedrock-Output-Token-Count": {"7"}},
		`{"id":"m","type":"message","model":"c","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn","usage":{"input_tokens":30,"output_tokens":8}}`,
		plugins.ResponseInfo{Dialect: plugins.Invoke, ResponseID: "m", Model: "c", Finish: "end_turn", Content: true, Usage: usage{Input: known(30), Output: known(8)}},
	}, {
		"bedrock's error", "bedrock", "/model/m/converse", http.Header{"Content-Type": {jsonType}, "X-Amzn-Errortype": {"ValidationException:http://internal.amazon.com/coral/"}},
		`{"message":"The model is not known."}`,
		plugins.ResponseInfo{Dialect: plugins.Converse, ErrorType: "ValidationException", ErrorMessage: "The model is not known."},
	}, {
		"bedrock's error without a type", "bedrock", "/model/m/invoke", typed(jsonType),
		`{"message":"The model is not known."}`,
		plugins.ResponseInfo{Dialect: plugins.Invoke, ErrorType: "error", ErrorMessage: "The model is not known."},
	}, {
		"cohere's error", "cohere", "/v2/chat", typed(jsonType),
		`{"id":"e","message":"invalid api token"}`,
		plugins.ResponseInfo{Dialect: plugins.CohereChat, ResponseID: "e", ErrorType: "error", ErrorMessage: "invalid api token"},
	}, {
		"an error in a line of its own", "together", "/v1/chat/completions", typed(sseType),
		events(`{"id":"c","choices":[{"delta":{"content":"x"}}]}`) + `error: {"error":{"type":"overloaded","message":"x"}}` + "\n\n",
		plugins.ResponseInfo{Stream: true, Dialect: plugins.Chat, ResponseID: "c", Content: true, ErrorType: "overloaded", ErrorMessage: "x"},
	}, {
		"an error in words, in a line of its own", "together", "/v1/chat/completions", typed(sseType),
		`error: out of memory` + "\n\n",
		plugins.ResponseInfo{Stream: true, Dialect: plugins.Chat, ErrorType: "error"},
	}} {
		t.Run(c.name, func(t *testing.T) {
			d := Detect(c.provider, c.path)
			for name, size := range chunkings {
				x := New(d, c.provider, c.header)
				feed(x.Write, []byte(c.body), size)
				x.Close()
				got := *x.Info()
				got.Phase = 0 // in TestPhaseIsSeenAtOnce
				if got != c.want {
					t.Fatalf("%s:\n got %+v\nwant %+v", name, got, c.want)
				}
			}
		})
	}
}

// A two-way stream comes event by event, each of them whole.
func TestEventsOfTwoWayStreams(t *testing.T) {
	for _, c := range []struct {
		path   string
		events []string
		want   plugins.ResponseInfo
	}{{
		"/v1/realtime", []string{
			`{"type":"session.created","session":{"id":"s","model":"gpt-realtime"}}`,
			`{"type":"response.output_audio.delta","response_id":"r","delta":"AAAA"}`,
			`{"type":"response.done","response":{"object":"realtime.response","id":"r","status":"completed","output":[{"type":"message","content":[{"type":"output_audio","transcript":"hi"}]}],"usage":{"total_tokens":253,"input_tokens":132,"output_tokens":121,"input_token_details":{"text_tokens":119,"audio_tokens":13,"image_tokens":0,"cached_tokens":64,"cached_tokens_details":{"text_tokens":60,"audio_tokens":4,"image_tokens":0}},"output_token_details":{"text_tokens":30,"audio_tokens":91}}}}`,
		},
		plugins.ResponseInfo{Stream: true, Dialect: plugins.Realtime, Model: "gpt-realtime", ResponseID: "r", Finish: "completed", Content: true, Phase: plugins.Ended,
			Usage: plugins.Usage{Input: known(132), Output: known(121), InputAudio: known(13), InputImage: known(0), CacheRead: known(64), CacheReadAudio: known(4), OutputAudio: known(91)}},
	}, {
		"/v1/realtime", []string{
			"{\n \"type\": \"response.done\",\n \"response\": {\"id\":\"r\",\"status\":\"failed\",\"status_details\":{\"type\":\"failed\",\"error\":{\"type\":\"insufficient_quota\",\"code\":null}}}}",
		},
		plugins.ResponseInfo{Dialect: plugins.Realtime, ResponseID: "r", Finish: "failed", ErrorType: "insufficient_quota", Phase: plugins.Ended},
	}, {
		"/v1/realtime", []string{
			`{"type":"conversation.item.input_audio_transcription.completed","transcript":"hello","usage":{"type":"duration","seconds":2.5}}`,
		},
		plugins.ResponseInfo{Dialect: plugins.Realtime, Content: true, Usage: plugins.Usage{AudioDuration: plugins.KnownDuration(2500 * time.Millisecond)}},
	}, {
		"/v1/responses", []string{
			`{"type":"response.created","response":{"id":"r","status":"in_progress","model":"gpt"}}`,
			`{"type":"response.output_text.delta","delta":"x"}`,
			`{"type":"response.completed","response":{"id":"r","status":"completed","model":"gpt","usage":{"input_tokens":20,"output_tokens":6,"total_tokens":26}}}`,
		},
		plugins.ResponseInfo{Stream: true, Dialect: plugins.Responses, Model: "gpt", ResponseID: "r", Finish: "completed", Content: true, Phase: plugins.Ended,
			Usage: plugins.Usage{Input: known(20), Output: known(6)}},
	}} {
		x := NewEvents(Detect("openai", c.path), "openai")
		for i, event := range c.events {
			if last := i == len(c.events)-1; !last && x.Info().Phase == plugins.Ended {
				t.Errorf("%s has ended before %s", c.path, event)
			}
			x.Write([]byte(event))
		}
		x.Close()
		if got := *x.Info(); got != c.want {
			t.Errorf("%s:\n got %+v\nwant %+v", c.path, got, c.want)
		}
	}
}

// A stream is stored as the object that the call returns without streaming.
func TestStreamsOfEndpointsAreStoredAsObjects(t *testing.T) {
	for _, c := range []struct {
		dialect                 plugins.Dialect
		contentType, raw        string
		want, wantType, wantOut string
	}{
		{
			plugins.CohereText, "application/stream+json",
			`{"event_type":"text-generation","text":"Hel"}` + "\n" + `{"event_type":"text-generation","text":"lo"}` + "\n" +
				`{"event_type":"stream-end","finish_reason":"COMPLETE"}` + "\n",
			`{"event_type":"stream-end","text":"Hello","finish_reason":"COMPLETE"}`, "application/json", "Hello",
		},
		{
			plugins.Transcription, sseType,
			events(`{"type":"transcript.text.delta","delta":"Hel"}`, `{"type":"transcript.text.done","text":"Hello","usage":{"seconds":1}}`),
			`{"text":"Hello","usage":{"seconds":1}}`, "application/json", "Hello",
		},
		{
			plugins.Speech, sseType,
			events(`{"type":"speech.audio.delta","audio":"AAAA"}`, `{"type":"speech.audio.delta","audio":"BBBB"}`, `{"type":"speech.audio.done","usage":{"total_tokens":9}}`),
			`{"audio":"AAAABBBB","usage":{"total_tokens":9}}`, "application/json", "",
		},
		{
			plugins.TextCompletions, sseType,
			events(`{"type":"completion","completion":" The pale","stop_reason":null,"model":"c"}`, `{"type":"completion","completion":" fox","stop_reason":"stop_sequence","model":"c"}`),
			`{"type":"completion","completion":" The pale fox","stop_reason":"stop_sequence","model":"c"}`, "application/json", " The pale fox",
		},
		{
			plugins.Transcription, sseType, events(`{"type":"transcript.text.delta","delta":"Hel"}`),
			events(`{"type":"transcript.text.delta","delta":"Hel"}`), sseType, "",
		},
	} {
		f := Transcript(c.dialect)
		stored, storedType := f.Stored(c.contentType, []byte(c.raw))
		if out := f.OutputText(stored); string(stored) != c.want || storedType != c.wantType || out != c.wantOut {
			t.Errorf("stored as %s of type %s, with the text %q", stored, storedType, out)
		}
	}
}
