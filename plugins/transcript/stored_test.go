package transcript

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"github.com/weirhq/weir/plugins"
)

// sseStream makes an event of each line.
func sseStream(events string) []byte {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimSpace(events)) {
		fmt.Fprintf(&b, "data: %s\n\n", strings.TrimSpace(line))
	}
	return []byte(b.String())
}

// awsStream makes a frame of each line: the event's type, then its payload. An
// exception has an exclamation mark before its type.
func awsStream(t testing.TB, events string) []byte {
	t.Helper()
	var b bytes.Buffer
	for line := range strings.Lines(strings.TrimSpace(events)) {
		name, payload, _ := strings.Cut(strings.TrimSpace(line), " ")
		key := ":event-type"
		if exception, ok := strings.CutPrefix(name, "!"); ok {
			key, name = ":exception-type", exception
		}
		m := eventstream.Message{Payload: []byte(payload)}
		m.Headers.Set(key, eventstream.StringValue(name))
		if err := eventstream.NewEncoder().Encode(&b, m); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// invokeStream makes a chunk of each line.
func invokeStream(t testing.TB, chunks string) []byte {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(strings.TrimSpace(chunks)) {
		fmt.Fprintf(&b, "chunk {\"bytes\":%q}\n", base64.StdEncoding.EncodeToString([]byte(strings.TrimSpace(line))))
	}
	return awsStream(t, b.String())
}

type storedCase struct {
	name        string
	dialect     plugins.Dialect
	contentType string
	raw         []byte
	want        string
}

const (
	sseType    = "text/event-stream; charset=utf-8"
	ndjsonType = "application/x-ndjson"
	awsType    = "application/vnd.amazon.eventstream"
	jsonType   = "application/json"
)

func storedCases(t testing.TB) []storedCase {
	return []storedCase{
		{"chat: text, usage, numbers and escapes as they are", plugins.Chat, sseType, sseStream(`
			{"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt-5","service_tier":"default","system_fingerprint":"fp","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"x"}
			{"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt-5","choices":[{"index":0,"delta":{"content":"caf\u00e9 \ud83d"},"finish_reason":null}],"usage":null}
			{"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt-5","choices":[{"index":0,"delta":{"content":"\ude00\n"},"finish_reason":null}],"usage":null}
			{"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt-5","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}
			{"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt-5","choices":[],"usage":{"prompt_tokens":12345678901234567890,"cost":1.50e-3}}
			[DONE]`),
			`{"id":"c1","object":"chat.completion","created":1,"model":"gpt-5","service_tier":"default","system_fingerprint":"fp","choices":[{"index":0,"message":{"role":"assistant","content":"caf\u00e9 \ud83d\ude00\n","refusal":null},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":12345678901234567890,"cost":1.50e-3}}`},
		{"chat: choices that interleave, the second first, and logprobs", plugins.Chat, sseType, sseStream(`
			{"id":"","model":"","created":0,"choices":[],"prompt_filter_results":[1]}
			{"id":"c1","model":"m","created":5,"choices":[{"index":1,"delta":{"content":"b"},"logprobs":{"content":[{"token":"b"}],"refusal":null}}]}
			{"id":"c2","model":"n","created":6,"choices":[{"index":0,"delta":{"content":"a"}}]}
			{"id":"c1","choices":[{"index":1,"delta":{"content":"B"},"logprobs":{"content":[{"token":"B"}]},"finish_reason":"length"}]}
			{"id":"c1","choices":[{"index":0,"delta":{"content":"A"},"finish_reason":"stop"}]}`),
			`{"id":"c1","model":"m","created":5,"choices":[{"index":0,"message":{"content":"aA"},"finish_reason":"stop"},{"index":1,"message":{"content":"bB"},"logprobs":{"content":[{"token":"b"},{"token":"B"}],"refusal":null},"finish_reason":"length"}],"prompt_filter_results":[1],"object":"chat.completion"}`},
		{"chat: parallel tool calls by index, name repeated", plugins.Chat, sseType, sseStream(`
			{"choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}}]}
			{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\""}}]}}]}
			{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":"{"}}]}}]}
			{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}},{"index":1,"function":{"arguments":"}"}}]}}]}`),
			`{"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}},{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]}}],"object":"chat.completion"}`},
		{"chat: tool calls all numbered 0", plugins.Chat, sseType, sseStream(`
			{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"1"}}]}}]}
			{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"f","arguments":"2"}}]}}]}`),
			`{"choices":[{"index":0,"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"1"}},{"id":"b","function":{"name":"f","arguments":"2"}}]}}],"object":"chat.completion"}`},
		{"chat: pieces of tool calls all numbered 0", plugins.Chat, sseType, sseStream(`
			{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}}]}
			{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}}]}
			{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}}]}
			{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"f","arguments":""}}]}}]}
			{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"["}}]}}]}
			{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"]"}}]}}]}`),
			`{"choices":[{"index":0,"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"b","function":{"name":"f","arguments":"[]"}}]}}],"object":"chat.completion"}`},
		{"chat: tool calls by id, then the last one; arguments an object", plugins.Chat, sseType, sseStream(`
			{"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":{"y":2}}},{"id":"b","function":{"name":"g","arguments":"{"}}]}}]}
			{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"}"}}]}}]}
			{"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"arguments":{"y":3}}}]}}]}`),
			`{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":{"y":3}}},{"id":"b","function":{"name":"g","arguments":"{}"}}]}}],"object":"chat.completion"}`},
		{"chat: tool calls with neither index nor id", plugins.Chat, sseType, sseStream(`
			{"choices":[{"delta":{"tool_calls":[{"id":"","function":{"name":"f","arguments":"{"}}]}}]}
			{"choices":[{"delta":{"tool_calls":[{"function":{"name":null,"arguments":"}"}}]}}]}
			{"choices":[{"delta":{"tool_calls":[{"id":"","function":{"name":"f","arguments":"1"}},{"function":{"name":"g","arguments":"2"}}]}}]}`),
			`{"choices":[{"message":{"tool_calls":[{"id":"","function":{"name":"f","arguments":"{}"}},{"id":"","function":{"name":"f","arguments":"1"}},{"function":{"name":"g","arguments":"2"}}]}}],"object":"chat.completion"}`},
		{"chat: calls without an id at one index", plugins.Chat, sseType, sseStream(`
			{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"","function":{"name":"f","arguments":"{\"x\":1}"}}]}}]}
			{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"","function":{"name":"f","arguments":" {}\n"}}]}}]}
			{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"","function":{"name":"g","arguments":{"y":2}}}]}}]}
			{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"g","arguments":"{}"}}]}}]}`),
			`{"choices":[{"message":{"tool_calls":[{"id":"","function":{"name":"f","arguments":"{\"x\":1}"}},{"id":"","function":{"name":"f","arguments":" {}\n"}},{"id":"","function":{"name":"g","arguments":{"y":2}}},{"id":"c","function":{"name":"g","arguments":"{}"}}]}}],"object":"chat.completion"}`},
		{"chat: a call without an id whose pieces repeat its name", plugins.Chat, sseType, sseStream(`
			{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{\"x\":"}}]}}]}
			{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{\"y\":"}}]}}]}
			{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}}]}}]}
			{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"}}"}}]}}]}`),
			`{"choices":[{"message":{"tool_calls":[{"function":{"name":"f","arguments":"{\"x\":{\"y\":{}}}"}}]}}],"object":"chat.completion"}`},
		{"chat: arguments at another index, and a call that begins twice", plugins.Chat, sseType, sseStream(`
			{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}}]}
			{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"f","arguments":""}}]}}]}
			{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{"}}]}}]}
			{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"arguments":"}"}}]}}]}`),
			`{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}}],"object":"chat.completion"}`},
		{"chat: lines that are declared as events", plugins.Chat, sseType, []byte(`{"choices":[{"index":0,"delta":{"content":"a"}}]}
{"choices":[{"index":0,"delta":{"content":"b"}}]}
`),
			`{"choices":[{"index":0,"message":{"content":"ab"}}],"object":"chat.completion"}`},
		{"responses: no event that opens an item, fewer deltas, arguments at another index", plugins.Responses, sseType, sseStream(`
			{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"a"}
			{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"b"}
			{"type":"response.output_text.done","output_index":0,"content_index":0,"text":"abc"}
			{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"c","name":"f","arguments":""}}
			{"type":"response.function_call_arguments.delta","output_index":4,"delta":"{"}
			{"type":"response.function_call_arguments.delta","output_index":4,"delta":"}"}
			{"type":"response.function_call_arguments.done","output_index":4,"arguments":"{}"}
			{"type":"response.completed","response":{"id":"r","output":[]}}`),
			`{"id":"r","output":[{"type":"message","content":[{"type":"output_text","text":"abc"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]}`},
		{"responses: a done without the text, arguments of no call", plugins.Responses, sseType, sseStream(`
			{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"a"}
			{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"b"}
			{"type":"response.output_text.done","output_index":0,"content_index":0,"text":""}
			{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{"}
			{"type":"response.function_call_arguments.done","output_index":1}
			{"type":"response.completed","response":{"id":"r","output":[]}}`),
			`{"id":"r","output":[{"type":"message","content":[{"type":"output_text","text":"ab"}]},{"type":"function_call","arguments":"{"}]}`},
		{"messages: arguments of no call", plugins.Messages, sseType, sseStream(`
			{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}
			{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}
			{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{}"}}`),
			`{"content":[{"type":"text","text":"Hi"},{"input":{}}]}`},
		{"messages: no event that opens the message, arguments at another index", plugins.Messages, sseType, sseStream(`
			{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}
			{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{"}}
			{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"}"}}
			{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":3}}`),
			`{"content":[{"type":"tool_use","id":"a","name":"f","input":{}}],"stop_reason":"tool_use","usage":{"output_tokens":3}}`},
		{"chat: reasoning, details, refusal, audio, legacy function call, x_groq", plugins.Chat, sseType, sseStream(`
			{"x_groq":{"id":"r1"},"choices":[{"index":0,"delta":{"reasoning":"a","reasoning_content":"p","channel":"analysis","reasoning_details":[{"type":"reasoning.text","text":"a","index":0}]}}]}
			{"choices":[{"index":0,"delta":{"reasoning":"b","reasoning_content":"q","channel":"analysis","reasoning_details":[{"type":"reasoning.text","text":"b","index":0},{"type":"reasoning.encrypted","data":"zz","index":0}]}}]}
			{"choices":[{"index":0,"delta":{"refusal":"no","audio":{"id":"u","data":"AA","transcript":"hi"},"function_call":{"name":"f","arguments":"{"}}}]}
			{"choices":[{"index":0,"delta":{"refusal":"pe","audio":{"data":"BB","expires_at":9},"function_call":{"arguments":"}"}},"finish_reason":"stop"}],"x_groq":{"id":"r1","usage":{"total_tokens":3}}}`),
			`{"x_groq":{"id":"r1","usage":{"total_tokens":3}},"choices":[{"index":0,"message":{"reasoning":"ab","reasoning_content":"pq","channel":"analysis","reasoning_details":[{"type":"reasoning.text","text":"ab","index":0},{"type":"reasoning.encrypted","data":"zz","index":0}],"refusal":"nope","audio":{"id":"u","data":"AABB","transcript":"hi","expires_at":9},"function_call":{"name":"f","arguments":"{}"}},"finish_reason":"stop"}],"object":"chat.completion","usage":{"total_tokens":3}}`},
		{"chat: Perplexity's whole message beside each delta", plugins.Chat, sseType, sseStream(`
			{"object":"chat.completion.chunk","citations":["u"],"search_results":[{"url":"u"}],"usage":{"total_tokens":1},"choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"delta":{"role":"assistant","content":"Hi"}}]}
			{"object":"chat.completion.done","citations":["u"],"search_results":[{"url":"u"}],"usage":{"total_tokens":2},"choices":[{"index":0,"message":{"role":"assistant","content":"Hi you"},"delta":{"role":"assistant","content":" you"},"finish_reason":"stop"}]}`),
			`{"object":"chat.completion","citations":["u"],"search_results":[{"url":"u"}],"usage":{"total_tokens":2},"choices":[{"index":0,"message":{"role":"assistant","content":"Hi you"},"finish_reason":"stop"}]}`},
		{"chat: Mistral's content parts, then text", plugins.Chat, sseType, sseStream(`
			{"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}}]}
			{"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"m"}]}]}}]}
			{"choices":[{"index":0,"delta":{"content":"Yes"}}]}
			{"choices":[{"index":0,"delta":{"content":"."}}]}`),
			`{"choices":[{"index":0,"message":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hmm"}]},{"type":"text","text":"Yes."}]}}],"object":"chat.completion"}`},
		{"chat: an error in the stream stays", plugins.Chat, sseType, []byte("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\r\n\r\n: comment\r\nevent: error\r\ndata: {\"error\":\r\ndata: {\"message\":\"over\"}}"),
			`{"choices":[{"index":0,"message":{"content":"a"}}],"error":{"message":"over"},"object":"chat.completion"}`},
		{"chat: nothing but an error", plugins.Chat, sseType, sseStream(`{"error":{"message":"x"}}`), `{"error":{"message":"x"}}`},
		{"completions", plugins.Completions, sseType, sseStream(`
			{"id":"x","object":"text_completion","choices":[{"text":"a","index":0,"logprobs":{"tokens":["a"],"token_logprobs":[-1.0],"text_offset":[0]},"finish_reason":null}]}
			{"id":"x","object":"text_completion","choices":[{"text":"b","index":0,"logprobs":{"tokens":["b"],"token_logprobs":[-2.0],"text_offset":[1]},"finish_reason":"stop"}],"usage":{"total_tokens":3}}`),
			`{"id":"x","object":"text_completion","choices":[{"text":"ab","index":0,"logprobs":{"tokens":["a","b"],"token_logprobs":[-1.0,-2.0],"text_offset":[0,1]},"finish_reason":"stop"}],"usage":{"total_tokens":3}}`},
		{"responses: the terminal event's", plugins.Responses, sseType, sseStream(`
			{"type":"response.created","response":{"id":"r","status":"in_progress","output":[]}}
			{"type":"response.output_item.done","output_index":0,"item":{"id":"other"}}
			{"type":"response.completed","response":{"id":"r","status":"completed","output":[{"id":"m"}],"usage":{"total_tokens":1.0}}}`),
			`{"id":"r","status":"completed","output":[{"id":"m"}],"usage":{"total_tokens":1.0}}`},
		{"responses: a terminal event without its output", plugins.Responses, sseType, sseStream(`
			{"type":"response.output_item.done","output_index":0,"item":{"id":"m"}}
			{"type":"response.completed","response":{"id":"r","output":[],"status":"completed"}}`),
			`{"id":"r","output":[{"id":"m"}],"status":"completed"}`},
		{"responses: broken off", plugins.Responses, sseType, sseStream(`
			{"type":"response.created","response":{"id":"r","status":"in_progress","error":null,"output":[]}}
			{"type":"response.output_item.added","output_index":0,"item":{"id":"rs","type":"reasoning","summary":[]}}
			{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}
			{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"think"}
			{"type":"response.output_item.done","output_index":0,"item":{"id":"rs","type":"reasoning","summary":[{"type":"summary_text","text":"thinking"}]}}
			{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"late"}
			{"type":"response.output_item.added","output_index":2,"item":{"id":"fc","type":"function_call","name":"f","arguments":""}}
			{"type":"response.output_item.added","output_index":1,"item":{"id":"m","type":"message","content":[]}}
			{"type":"response.content_part.added","output_index":1,"content_index":0,"part":{"type":"output_text","annotations":[],"text":""}}
			{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"Hel"}
			{"type":"response.function_call_arguments.delta","output_index":2,"delta":"{\"a"}
			{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"lo"}
			{"type":"response.output_text.annotation.added","output_index":1,"content_index":0,"annotation":{"url":"u"}}
			{"type":"error","code":"server_error","message":"gone","sequence_number":9}`),
			`{"id":"r","status":"in_progress","error":{"code":"server_error","message":"gone"},"output":[{"id":"rs","type":"reasoning","summary":[{"type":"summary_text","text":"thinking"}]},{"id":"m","type":"message","content":[{"type":"output_text","annotations":[{"url":"u"}],"text":"Hello"}]},{"id":"fc","type":"function_call","name":"f","arguments":"{\"a"}]}`},
		{"messages: thinking, text with citations, tools, merged usage", plugins.Messages, sseType, sseStream(`
			{"type":"message_start","message":{"id":"msg","type":"message","role":"assistant","model":"claude","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":9,"cache_read_input_tokens":4,"output_tokens":1}}}
			{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}
			{"type":"ping"}
			{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"h"}}
			{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"m"}}
			{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig"}}
			{"type":"content_block_stop","index":0}
			{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"zz"}}
			{"type":"content_block_start","index":2,"content_block":{"citations":[],"type":"text","text":""}}
			{"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"url":"u"}}}
			{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Hi"}}
			{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}
			{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}
			{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"q\": 1.0,"}}
			{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"\"s\":\"\\n\"}"}}
			{"type":"content_block_start","index":4,"content_block":{"type":"server_tool_use","id":"s","name":"g","input":{}}}
			{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":""}}
			{"type":"content_block_start","index":5,"content_block":{"type":"web_search_tool_result","tool_use_id":"s","content":[{"url":"u"}]}}
			{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null,"stop_details":null},"usage":{"input_tokens":10,"cache_read_input_tokens":null,"output_tokens":20},"context_management":{"applied_edits":[]}}
			{"type":"message_stop"}`),
			`{"id":"msg","type":"message","role":"assistant","model":"claude","content":[{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"redacted_thinking","data":"zz"},{"citations":[{"url":"u"}],"type":"text","text":"Hi"},{"type":"tool_use","id":"t","name":"f","input":{"q": 1.0,"s":"\n"}},{"type":"server_tool_use","id":"s","name":"g","input":{}},{"type":"web_search_tool_result","tool_use_id":"s","content":[{"url":"u"}]}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":10,"cache_read_input_tokens":4,"output_tokens":20},"stop_details":null,"context_management":{"applied_edits":[]}}`},
		{"messages: cut in a tool's input, then an error", plugins.Messages, sseType, sseStream(`
			{"type":"message_start","message":{"id":"msg","type":"message","content":[],"usage":{"input_tokens":9}}}
			{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}
			{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"q\":"}}
			{"type":"error","error":{"type":"overloaded_error","message":"x"}}`),
			`{"id":"msg","type":"message","content":[{"type":"tool_use","id":"t","name":"f","input":"{\"q\":"}],"usage":{"input_tokens":9},"error":{"type":"overloaded_error","message":"x"}}`},
		{"messages: nothing but an error", plugins.Messages, sseType, sseStream(`{"type":"error","error":{"type":"overloaded_error"},"request_id":"q"}`),
			`{"type":"error","error":{"type":"overloaded_error"},"request_id":"q"}`},
		{"generate_content: parts, merged usage", plugins.GenerateContent, sseType, sseStream(`
			{"candidates":[{"content":{"parts":[{"text":"th","thought":true}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":5,"thoughtsTokenCount":2},"modelVersion":"g","responseId":"r"}
			{"candidates":[{"content":{"parts":[{"text":"ink","thought":true},{"text":"He"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":1},"modelVersion":"g","responseId":"r"}
			{"candidates":[{"content":{"parts":[{"text":"llo"},{"functionCall":{"name":"f","args":{}},"thoughtSignature":"s"}],"role":"model"},"index":0}]}
			{"candidates":[{"content":{"parts":[{"text":"!"}]},"finishReason":"STOP","index":0,"groundingMetadata":{"webSearchQueries":["q"]}}],"usageMetadata":{"trafficType":"ON_DEMAND"}}`),
			`{"candidates":[{"content":{"parts":[{"text":"think","thought":true},{"text":"Hello"},{"functionCall":{"name":"f","args":{}},"thoughtSignature":"s"},{"text":"!"}],"role":"model"},"index":0,"finishReason":"STOP","groundingMetadata":{"webSearchQueries":["q"]}}],"usageMetadata":{"promptTokenCount":5,"thoughtsTokenCount":2,"candidatesTokenCount":1,"trafficType":"ON_DEMAND"},"modelVersion":"g","responseId":"r"}`},
		{"generate_content: an array, cut", plugins.GenerateContent, jsonType, []byte("[{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]}}]}\n,\r\n{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"b\"}]}}]},\n{\"candidates\":[{\"con"),
			`{"candidates":[{"content":{"parts":[{"text":"ab"}]}}]}`},
		{"generate_content: arguments in pieces", plugins.GenerateContent, sseType, sseStream(`
			{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","willContinue":true}}]}}]}
			{"candidates":[{"content":{"parts":[{"functionCall":{"partialArgs":[{"jsonPath":"$.city","stringValue":"New ","willContinue":true}],"willContinue":true}}]}}]}
			{"candidates":[{"content":{"parts":[{"functionCall":{"partialArgs":[{"jsonPath":"$.city","stringValue":"York"},{"jsonPath":"$.days[1].n","numberValue":1.0},{"jsonPath":"$.days[0]","boolValue":true}],"willContinue":true}}]}}]}
			{"candidates":[{"content":{"parts":[{"functionCall":{}}]}}]}
			{"candidates":[{"content":{"parts":[{"functionCall":{"name":"g","args":{}}}]},"finishReason":"STOP"}]}`),
			`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"city":"New York","days":[true,{"n":1.0}]}}},{"functionCall":{"name":"g","args":{}}}]},"finishReason":"STOP"}]}`},
		{"generate_content: blocked", plugins.GenerateContent, sseType, sseStream(`{"promptFeedback":{"blockReason":"SAFETY"}}`),
			`{"promptFeedback":{"blockReason":"SAFETY"}}`},
		{"converse: reasoning, text, tools, usage after the stop", plugins.Converse, awsType, awsStream(t, `
			messageStart {"p":"ab","role":"assistant"}
			contentBlockDelta {"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"h"}},"p":"a"}
			contentBlockDelta {"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"m"}}}
			contentBlockDelta {"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"s"}}}
			contentBlockStop {"contentBlockIndex":0}
			contentBlockDelta {"contentBlockIndex":1,"delta":{"text":"Hi"}}
			contentBlockDelta {"contentBlockIndex":1,"delta":{"text":"!"}}
			contentBlockStart {"contentBlockIndex":2,"start":{"toolUse":{"name":"f","toolUseId":"t"}}}
			contentBlockDelta {"contentBlockIndex":2,"delta":{"toolUse":{"input":"{\"a\":"}}}
			contentBlockDelta {"contentBlockIndex":2,"delta":{"toolUse":{"input":"1}"}}}
			contentBlockStart {"contentBlockIndex":3,"start":{"toolUse":{"name":"g","toolUseId":"u"}}}
			contentBlockStart {"contentBlockIndex":4,"start":{"toolResult":{"toolUseId":"u","status":"success"}}}
			contentBlockDelta {"contentBlockIndex":4,"delta":{"toolResult":[{"json":{"x":1}}]}}
			contentBlockDelta {"contentBlockIndex":5,"delta":{"text":"cited"}}
			contentBlockDelta {"contentBlockIndex":5,"delta":{"citation":{"title":"d"}}}
			contentBlockDelta {"contentBlockIndex":6,"delta":{"reasoningContent":{"redactedContent":"zz"}}}
			messageStop {"stopReason":"tool_use","p":"abc"}
			metadata {"metrics":{"latencyMs":7},"usage":{"inputTokens":1,"outputTokens":2},"p":"x"}`),
			`{"output":{"message":{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"hm","signature":"s"}}},{"text":"Hi!"},{"toolUse":{"name":"f","toolUseId":"t","input":{"a":1}}},{"toolUse":{"name":"g","toolUseId":"u","input":{}}},{"toolResult":{"toolUseId":"u","status":"success","content":[{"json":{"x":1}}]}},{"citationsContent":{"content":[{"text":"cited"}],"citations":[{"title":"d"}]}},{"reasoningContent":{"redactedContent":"zz"}}]}},"stopReason":"tool_use","metrics":{"latencyMs":7},"usage":{"inputTokens":1,"outputTokens":2}}`},
		{"converse: an exception", plugins.Converse, awsType, awsStream(t, `
			messageStart {"role":"assistant"}
			!throttlingException {"message":"slow down"}`),
			`{"output":{"message":{"role":"assistant"}},"throttlingException":{"message":"slow down"}}`},
		{"invoke: Anthropic", plugins.Invoke, awsType, invokeStream(t, `
			{"type":"message_start","message":{"id":"m","content":[],"usage":{"input_tokens":3,"output_tokens":1}}}
			{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}
			{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}
			{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4}}
			{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":3}}`),
			`{"id":"m","content":[{"type":"text","text":"Hi"}],"usage":{"input_tokens":3,"output_tokens":4},"stop_reason":"end_turn","amazon-bedrock-invocationMetrics":{"inputTokenCount":3}}`},
		{"invoke: Nova", plugins.Invoke, awsType, invokeStream(t, `
			{"messageStart":{"role":"assistant"}}
			{"contentBlockDelta":{"delta":{"text":"H"},"contentBlockIndex":0}}
			{"contentBlockDelta":{"delta":{"text":"i"},"contentBlockIndex":0}}
			{"messageStop":{"stopReason":"end_turn"}}
			{"metadata":{"usage":{"inputTokens":1}},"amazon-bedrock-invocationMetrics":{"inputTokenCount":1}}`),
			`{"output":{"message":{"role":"assistant","content":[{"text":"Hi"}]}},"stopReason":"end_turn","usage":{"inputTokens":1},"amazon-bedrock-invocationMetrics":{"inputTokenCount":1}}`},
		{"invoke: Llama", plugins.Invoke, awsType, invokeStream(t, `
			{"generation":"H","prompt_token_count":5,"generation_token_count":1,"stop_reason":null}
			{"generation":"i","prompt_token_count":null,"generation_token_count":2,"stop_reason":"stop"}`),
			`{"generation":"Hi","prompt_token_count":5,"generation_token_count":2,"stop_reason":"stop"}`},
		{"invoke: Titan", plugins.Invoke, awsType, invokeStream(t, `
			{"outputText":"H","index":0,"totalOutputTextTokenCount":null,"completionReason":null,"inputTextTokenCount":5}
			{"outputText":"i","index":0,"totalOutputTextTokenCount":2,"completionReason":"FINISH","inputTextTokenCount":null}`),
			`{"inputTextTokenCount":5,"results":[{"tokenCount":2,"outputText":"Hi","completionReason":"FINISH"}]}`},
		{"invoke: Mistral", plugins.Invoke, awsType, invokeStream(t, `
			{"outputs":[{"text":"H","stop_reason":null}]}
			{"outputs":[{"text":"i","stop_reason":"stop"}]}`),
			`{"outputs":[{"text":"Hi","stop_reason":"stop"}]}`},
		{"invoke: Chat", plugins.Invoke, awsType, invokeStream(t, `
			{"choices":[{"index":0,"delta":{"content":"H"}}]}
			{"choices":[{"index":0,"delta":{"content":"i"}}]}`),
			`{"choices":[{"index":0,"message":{"content":"Hi"}}],"object":"chat.completion"}`},
		{"cohere_chat", plugins.CohereChat, sseType, sseStream(`
			{"type":"message-start","id":"i","delta":{"message":{"role":"assistant","content":[],"tool_plan":"","tool_calls":[],"citations":[]}}}
			{"type":"tool-plan-delta","delta":{"message":{"tool_plan":"I "}}}
			{"type":"tool-plan-delta","delta":{"message":{"tool_plan":"will"}}}
			{"type":"tool-call-start","index":0,"delta":{"message":{"tool_calls":{"id":"t","type":"function","function":{"name":"f","arguments":""}}}}}
			{"type":"tool-call-delta","index":0,"delta":{"message":{"tool_calls":{"function":{"arguments":"{}"}}}}}
			{"type":"tool-call-end","index":0}
			{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"thinking","thinking":""}}}}
			{"type":"content-delta","index":0,"delta":{"message":{"content":{"thinking":"hm"}}}}
			{"type":"content-start","index":1,"delta":{"message":{"content":{"type":"text","text":""}}}}
			{"type":"content-delta","index":1,"delta":{"message":{"content":{"text":"a"}}}}
			{"type":"content-delta","index":1,"delta":{"message":{"content":{"text":"b"}}}}
			{"type":"citation-start","index":0,"delta":{"message":{"citations":{"start":0,"end":1,"text":"a"}}}}
			{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"billed_units":{"input_tokens":1.0}}}}
			[DONE]`),
			`{"id":"i","message":{"role":"assistant","tool_plan":"I will","tool_calls":[{"id":"t","type":"function","function":{"name":"f","arguments":"{}"}}],"content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"ab"}],"citations":[{"start":0,"end":1,"text":"a"}]},"finish_reason":"COMPLETE","usage":{"billed_units":{"input_tokens":1.0}}}`},
		{"ollama_chat", plugins.OllamaChat, ndjsonType, []byte(`{"model":"m","created_at":"1","message":{"role":"assistant","content":"","thinking":"h"},"done":false}
{"model":"m","created_at":"2","message":{"role":"assistant","content":"H","thinking":"m"},"done":false}
{"model":"m","created_at":"3","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{}}}]},"done":false}
{"model":"m","created_at":"4","message":{"role":"assistant","content":"i"},"done":true,"done_reason":"stop","eval_count":2}
`),
			`{"model":"m","created_at":"4","message":{"role":"assistant","content":"Hi","thinking":"hm","tool_calls":[{"function":{"name":"f","arguments":{}}}]},"done":true,"done_reason":"stop","eval_count":2}`},
		{"interactions", plugins.Interactions, sseType, sseStream(`
			{"event_type":"interaction.created","interaction":{"id":"v1","object":"interaction","model":"g","status":"in_progress"}}
			{"event_type":"interaction.status_update","interaction_id":"v1","status":"in_progress"}
			{"event_type":"step.start","index":0,"step":{"type":"thought"}}
			{"event_type":"step.delta","index":0,"delta":{"type":"thought_summary","content":{"type":"text","text":"Look"}}}
			{"event_type":"step.delta","index":0,"delta":{"type":"thought_summary","content":{"type":"text","text":" first."}}}
			{"event_type":"step.delta","index":0,"delta":{"type":"thought_signature","signature":"c2ln"}}
			{"event_type":"step.stop","index":0}
			{"event_type":"step.start","index":1,"step":{"type":"function_call","id":"c1","name":"look","arguments":{}}}
			{"event_type":"step.delta","index":1,"delta":{"type":"arguments_delta","arguments":"{\"x\""}}
			{"event_type":"step.delta","index":1,"delta":{"type":"arguments_delta","arguments":":1}"}}
			{"event_type":"step.start","index":2,"step":{"type":"model_output"}}
			{"event_type":"step.delta","index":2,"event_id":"a","delta":{"type":"text","text":"The "}}
			{"event_type":"step.delta","index":2,"event_id":"b","delta":{"type":"text","text":"pale "}}
			{"event_type":"step.delta","index":2,"event_id":"c","delta":{"type":"text","text":"fox"}}
			{"event_type":"step.delta","index":2,"delta":{"type":"text_annotation_delta","annotations":[{"type":"url_citation"}]}}
			{"event_type":"step.delta","index":2,"delta":{"type":"image","mime_type":"image/png","data":"AAAA"}}
			{"event_type":"interaction.completed","interaction":{"id":"v1","status":"completed","steps":[],"usage":{"total_tokens":9}}}`),
			`{"id":"v1","object":"interaction","model":"g","status":"completed","steps":[` +
				`{"type":"thought","summary":[{"type":"text","text":"Look first."}],"signature":"c2ln"},` +
				`{"type":"function_call","id":"c1","name":"look","arguments":{"x":1}},` +
				`{"type":"model_output","content":[{"type":"text","text":"The pale fox","annotations":[{"type":"url_citation"}]},{"type":"image","mime_type":"image/png","data":"AAAA"}]}` +
				`],"usage":{"total_tokens":9}}`},
		{"interactions with outputs", plugins.Interactions, sseType, sseStream(`
			{"event_type":"interaction.start","interaction":{"id":"v1","model":"g","status":"in_progress"}}
			{"event_type":"content.start","index":0,"content":{"type":"text"}}
			{"event_type":"content.delta","index":0,"delta":{"type":"text","text":"The pale "}}
			{"event_type":"content.delta","index":0,"delta":{"type":"text","text":"fox"}}
			{"event_type":"content.start","index":1,"content":{"type":"function_call"}}
			{"event_type":"content.delta","index":1,"delta":{"type":"function_call","id":"c1","name":"look","arguments":{"x":1}}}
			{"event_type":"error","error":{"code":"broken","message":"lost"}}`),
			`{"id":"v1","model":"g","status":"in_progress","error":{"code":"broken","message":"lost"},"outputs":[` +
				`{"type":"text","text":"The pale fox"},{"type":"function_call","id":"c1","name":"look","arguments":{"x":1}}]}`},
		{"a run of an assistant", plugins.Runs, sseType, sseStream(`
			{"id":"r1","object":"thread.run","status":"queued","model":"m"}
			{"id":"s1","object":"thread.run.step","type":"message_creation","step_details":{"type":"message_creation","message_creation":{"message_id":"m1"}}}
			{"id":"m1","object":"thread.message","role":"assistant","status":"in_progress","content":[]}
			{"id":"m1","object":"thread.message.delta","delta":{"content":[{"index":0,"type":"text","text":{"value":"The ","annotations":[]}}]}}
			{"id":"m1","object":"thread.message.delta","delta":{"content":[{"index":0,"type":"text","text":{"value":"pale "}}]}}
			{"id":"m1","object":"thread.message.delta","delta":{"content":[{"index":0,"type":"text","text":{"value":"fox"}}]}}
			{"id":"s2","object":"thread.run.step","type":"tool_calls","step_details":{"type":"tool_calls","tool_calls":[]}}
			{"id":"s2","object":"thread.run.step.delta","delta":{"step_details":{"type":"tool_calls","tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"look","arguments":""}}]}}}
			{"id":"s2","object":"thread.run.step.delta","delta":{"step_details":{"type":"tool_calls","tool_calls":[{"index":0,"type":"function","function":{"arguments":"{}"}}]}}}
			{"id":"r1","object":"thread.run","status":"requires_action","usage":null}
			[DONE]`),
			`{"id":"r1","object":"thread.run","status":"requires_action","model":"m",` +
				`"steps":[{"id":"s1","object":"thread.run.step","type":"message_creation","step_details":{"type":"message_creation","message_creation":{"message_id":"m1"}}},` +
				`{"id":"s2","object":"thread.run.step","type":"tool_calls","step_details":{"type":"tool_calls","tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"look","arguments":"{}"}}]}}],` +
				`"messages":[{"id":"m1","object":"thread.message","role":"assistant","status":"in_progress","content":[{"index":0,"type":"text","text":{"value":"The pale fox","annotations":[]}}]}],"usage":null}`},
		{"watsonx", plugins.Completions, sseType, sseStream(`
			{"model_id":"g","created_at":"1","results":[{"generated_text":"The pale ","generated_token_count":2,"input_token_count":7,"stop_reason":"not_finished"}]}
			{"model_id":"g","created_at":"2","results":[{"generated_text":"fox","generated_token_count":3,"input_token_count":0,"stop_reason":"eos_token"}]}`),
			`{"model_id":"g","created_at":"2","results":[{"generated_text":"The pale fox","generated_token_count":3,"input_token_count":7,"stop_reason":"eos_token"}]}`},
		{"lines under another media type", plugins.OllamaGenerate, "application/jsonlines", []byte(`{"model":"m","response":"H","done":false}
{"model":"m","response":"i","done":true}`),
			`{"model":"m","response":"Hi","done":true}`},
		{"ollama_generate", plugins.OllamaGenerate, ndjsonType, []byte(`{"model":"m","created_at":"1","response":"H","done":false}
{"model":"m","created_at":"2","response":"i","done":true,"context":[1,2],"eval_count":2}`),
			`{"model":"m","created_at":"2","response":"Hi","done":true,"context":[1,2],"eval_count":2}`},
	}
}

func TestStoredAssemblesStreams(t *testing.T) {
	for _, c := range storedCases(t) {
		t.Run(c.name, func(t *testing.T) {
			stored, storedType := formats[c.dialect].Stored(c.contentType, c.raw)
			if string(stored) != c.want {
				t.Errorf("stored\n%s\nwant\n%s", stored, c.want)
			}
			if storedType != jsonType {
				t.Errorf("content type %q", storedType)
			}
		})
	}
}

func TestStoredKeepsEverythingElse(t *testing.T) {
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	for name, c := range map[string]storedCase{
		"an answer in one piece":      {dialect: plugins.Chat, contentType: jsonType, raw: []byte(`{"choices": [ ]}`)},
		"an unknown dialect":          {dialect: plugins.Unknown, contentType: sseType, raw: sseStream(`{"choices":[{"delta":{}}]}`)},
		"embeddings":                  {dialect: plugins.Embeddings, contentType: jsonType, raw: []byte(`{"data":[]}`)},
		"an empty stream":             {dialect: plugins.Chat, contentType: sseType},
		"a stream of another dialect": {dialect: plugins.Chat, contentType: sseType, raw: sseStream(`{"type":"message_start","message":{}}`)},
		"another dialect's, chat's":   {dialect: plugins.Messages, contentType: sseType, raw: sseStream(`{"choices":[{"delta":{"content":"a"}}]}`)},
		"JSON under a stream's type":  {dialect: plugins.Messages, contentType: sseType, raw: []byte(`{"type":"error"}`)},
		"a stream cut in its first":   {dialect: plugins.Chat, contentType: sseType, raw: []byte(`data: {"choices":[{"del`)},
		"damaged frames":              {dialect: plugins.Converse, contentType: awsType, raw: []byte("\x00\x00\x00\x20\x00\x00\x00\x10")},
		"nesting without end":         {dialect: plugins.Chat, contentType: sseType, raw: sseStream(`{"choices":` + deep + `}`)},
	} {
		t.Run(name, func(t *testing.T) {
			stored, storedType := formats[c.dialect].Stored(c.contentType, c.raw)
			if !bytes.Equal(stored, c.raw) || storedType != c.contentType {
				t.Errorf("stored %.200s as %q", stored, storedType)
			}
		})
	}
}

func TestStoredOfManyCalls(t *testing.T) {
	var events, calls []string
	for i := range 40 {
		events = append(events, fmt.Sprintf(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"id":"%[1]d","function":{"arguments":"{"}}]}}]}`, 39-i))
		calls = append(calls, fmt.Sprintf(`{"id":"%d","function":{"arguments":"{}"}}`, i))
	}
	for i := range 40 {
		events = append(events, fmt.Sprintf(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"function":{"arguments":"}"}}]}}]}`, i))
	}
	stored, _ := formats[plugins.Chat].Stored(sseType, sseStream(strings.Join(events, "\n")))
	want := `{"choices":[{"index":0,"message":{"tool_calls":[` + strings.Join(calls, ",") + `]}}],"object":"chat.completion"}`
	if string(stored) != want {
		t.Errorf("stored\n%s\nwant\n%s", stored, want)
	}
}

func TestStoredOfEndlessPath(t *testing.T) {
	path := strings.Repeat(".a", 1<<20)
	raw := sseStream(`{"candidates":[{"content":{"parts":[{"functionCall":{"partialArgs":[{"jsonPath":"$` + path + `","boolValue":true}]}}]}}]}`)
	checkStored(t, plugins.GenerateContent, sseType, raw)
}

func TestStoredOfTextInPlaceOfAList(t *testing.T) {
	raw := sseStream(`{"candidates":[{"content":{"parts":[{"functionCall":{"partialArgs":[{"jsonPath":"$.a[0]","stringValue":"x"},{"jsonPath":"$.a","stringValue":"y"}]}}]}}]}`)
	checkStored(t, plugins.GenerateContent, sseType, raw)
}

// checkStored fails unless what is stored is JSON, or the body as it came, and
// the same without templates.
func checkStored(t *testing.T, d plugins.Dialect, contentType string, raw []byte) {
	t.Helper()
	stored, storedType := formats[d].Stored(contentType, raw)
	if want := storedWithoutTemplates(d, contentType, raw); !bytes.Equal(stored, want) {
		t.Fatalf("%s of %q: stored\n%q, without templates\n%q", d, raw, stored, want)
	}
	if bytes.Equal(stored, raw) && storedType == contentType {
		return
	}
	if storedType != jsonType || !json.Valid(stored) {
		t.Fatalf("%s of %q: stored %q as %q", d, raw, stored, storedType)
	}
}

func TestStoredOfCutStreams(t *testing.T) {
	for _, c := range storedCases(t) {
		for i := range c.raw {
			checkStored(t, c.dialect, c.contentType, c.raw[:i])
		}
	}
}

func FuzzStored(f *testing.F) {
	types := []string{sseType, ndjsonType, awsType, jsonType}
	dialects := []plugins.Dialect{
		plugins.Chat, plugins.Responses, plugins.Completions, plugins.Messages, plugins.GenerateContent,
		plugins.Converse, plugins.Invoke, plugins.CohereChat, plugins.OllamaChat, plugins.OllamaGenerate,
	}
	index := make(map[any]byte)
	for i, d := range dialects {
		index[d] = byte(i)
	}
	for i, t := range types {
		index[t] = byte(i)
	}
	for _, c := range storedCases(f) {
		f.Add(index[c.dialect], index[c.contentType], c.raw)
	}
	f.Fuzz(func(t *testing.T, dialect, contentType byte, raw []byte) {
		d := dialects[int(dialect)%len(dialects)]
		checkStored(t, d, types[int(contentType)%len(types)], raw)
		formats[d].InputText(raw)
		formats[d].OutputText(raw)
	})
}

func BenchmarkStored(b *testing.B) {
	var events strings.Builder
	for range 200 {
		events.WriteString(`{"id":"chatcmpl-C1KMEUDb1vVwsROQUCZTgG6A6vtWo","object":"chat.completion.chunk","created":1754000000,"model":"gpt-4o-2024-08-06","service_tier":"default","system_fingerprint":"fp_07871e2ad8","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"abcdef"}` + "\n")
	}
	raw := sseStream(events.String())
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		formats[plugins.Chat].Stored(sseType, raw)
	}
}

// Any line ending ends a line, and a server's error line is data.
func TestStoredOfUncommonLines(t *testing.T) {
	raw := "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\r\rerror: {\"code\":500}\r\r"
	stored, _ := Chat.Stored(sseType, []byte(raw))
	if want := `{"id":"c","choices":[{"index":0,"message":{"content":"a"}}],"code":500,"object":"chat.completion"}`; string(stored) != want {
		t.Errorf("got %s, want %s", stored, want)
	}
}
