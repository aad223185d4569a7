package agents

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"
)

// Reply answers a request as the call's provider does, in the format that its path asks for.
func (c *Call) Reply(w http.ResponseWriter, path string, body []byte) {
	if c.Status != http.StatusOK {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(c.Status)
		_, _ = w.Write([]byte(`{"type":"error","error":{"type":"server_error","code":500,"message":"An internal error."}}`))
		return
	}
	stream := gjson.GetBytes(body, "stream").Bool() || strings.Contains(path, ":stream")
	var events []object
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		events = []object{c.chat(stream)}
	case strings.HasSuffix(path, "/responses"):
		events = []object{c.responses()}
		if stream {
			events[0] = object{"type": "response.completed", "sequence_number": 0, "response": events[0]}
		}
	case strings.HasSuffix(path, "/messages"):
		events = c.messages(stream)
	default:
		events = []object{c.gemini()}
	}
	if !stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(encode(events[0]))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		if kind, ok := e["type"]; ok {
			fmt.Fprintf(w, "event: %s\n", kind)
		}
		fmt.Fprintf(w, "data: %s\n\n", encode(e))
	}
	if strings.HasSuffix(path, "/chat/completions") {
		fmt.Fprint(w, "data: [DONE]\n\n")
	}
}

// id tells answers from each other.
func (c *Call) id() string { return fmt.Sprint(c.number) }

func (c *Call) chat(stream bool) object {
	message, field, kind := chatMessage(c.Answer), "message", "chat.completion"
	if stream {
		field, kind = "delta", "chat.completion.chunk"
		if calls, ok := message["tool_calls"].([]object); ok {
			for i, call := range calls {
				call["index"] = i
			}
		}
	}
	return object{
		"id": "chatcmpl-" + c.id(), "object": kind, "model": c.Model,
		"choices": []object{{"index": 0, field: message, "finish_reason": "stop"}},
		"usage": object{
			"prompt_tokens": c.Usage.Input, "completion_tokens": c.Usage.Output, "total_tokens": c.Usage.Input + c.Usage.Output,
			"prompt_tokens_details": object{"cached_tokens": c.Usage.Cached},
		},
	}
}

func (c *Call) responses() object {
	items := responsesItems(c.Answer)
	for i, item := range items {
		item["id"], item["status"] = fmt.Sprintf("item_%s_%d", c.id(), i), "completed"
	}
	return object{
		"id": "resp_" + c.id(), "object": "response", "status": "completed", "model": c.Model, "output": items,
		"usage": object{
			"input_tokens": c.Usage.Input, "output_tokens": c.Usage.Output, "total_tokens": c.Usage.Input + c.Usage.Output,
			"input_tokens_details": object{"cached_tokens": c.Usage.Cached},
		},
	}
}

func (c *Call) messages(stream bool) []object {
	usage := object{
		"input_tokens": c.Usage.Input - c.Usage.Cached - c.Usage.Written, "output_tokens": c.Usage.Output,
		"cache_read_input_tokens": c.Usage.Cached, "cache_creation_input_tokens": c.Usage.Written,
	}
	message := object{
		"id": "msg_" + c.id(), "type": "message", "role": "assistant", "model": c.Model, "content": messagesParts(c.Answer),
		"stop_reason": "end_turn", "usage": usage,
	}
	if !stream {
		return []object{message}
	}
	parts := message["content"].([]object)
	message["content"], message["stop_reason"] = []object{}, nil
	events := []object{{"type": "message_start", "message": message}}
	for i, part := range parts {
		delta := object{"type": "text_delta", "text": part["text"]}
		if input, ok := part["input"]; ok {
			delta = object{"type": "input_json_delta", "partial_json": string(encode(input))}
			part["input"] = object{}
		} else {
			part["text"] = ""
		}
		events = append(events, object{"type": "content_block_start", "index": i, "content_block": part},
			object{"type": "content_block_delta", "index": i, "delta": delta}, object{"type": "content_block_stop", "index": i})
	}
	return append(events, object{"type": "message_delta", "delta": object{"stop_reason": "end_turn"}, "usage": object{"output_tokens": c.Usage.Output}},
		object{"type": "message_stop"})
}

func (c *Call) gemini() object {
	return object{
		"responseId": c.id(), "modelVersion": c.Model,
		"candidates": []object{{"index": 0, "content": object{"role": "model", "parts": geminiParts(c.Answer)}, "finishReason": "STOP"}},
		"usageMetadata": object{
			"promptTokenCount": c.Usage.Input, "candidatesTokenCount": c.Usage.Output, "totalTokenCount": c.Usage.Input + c.Usage.Output,
			"cachedContentTokenCount": c.Usage.Cached,
		},
	}
}
