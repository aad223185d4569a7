package echo

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// chatCompletion is the whole answer.
type chatCompletion struct {
	completionHead
	Choices []chatChoiceWhole `json:"choices"`
	Usage   completionUsage   `json:"usage"`
}

type completionHead struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	Created     int64  `json:"created"`
	Model       string `json:"model"`
	ServiceTier string `json:"service_tier"`
}

type chatChoiceWhole struct {
	Index        int             `json:"index"`
	Message      chatMessage     `json:"message"`
	Logprobs     json.RawMessage `json:"logprobs"`
	FinishReason string          `json:"finish_reason"`
}

type chatMessage struct {
	Role             string     `json:"role"`
	Content          *string    `json:"content"` // null without text
	ReasoningContent string     `json:"reasoning_content,omitempty"`
	Refusal          *string    `json:"refusal"`
	Annotations      []struct{} `json:"annotations"`
	ToolCalls        []chatCall `json:"tool_calls,omitempty"`
}

type chatChoiceDelta struct {
	Index        int             `json:"index"`
	Delta        chatDelta       `json:"delta"`
	Logprobs     json.RawMessage `json:"logprobs"`
	FinishReason *string         `json:"finish_reason"`
}

type chatDelta struct {
	Role             string     `json:"role,omitempty"`
	Content          *string    `json:"content,omitempty"`
	ReasoningContent string     `json:"reasoning_content,omitempty"`
	ToolCalls        []chatCall `json:"tool_calls,omitempty"`
}

// chatCall has an index in a delta only, and an id, a type and a name in all
// but the deltas that follow a call's first.
type chatCall struct {
	Index    *int   `json:"index,omitempty"`
	ID       string `json:"id,omitempty"`
	Type     string `json:"type,omitempty"`
	Function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type completionUsage struct {
	PromptTokens        int64 `json:"prompt_tokens"`
	CompletionTokens    int64 `json:"completion_tokens"`
	TotalTokens         int64 `json:"total_tokens"`
	PromptTokensDetails struct {
		CachedTokens     int64 `json:"cached_tokens"`
		CacheWriteTokens int64 `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionTokensDetails struct {
		ReasoningTokens int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

func TestChatStream(t *testing.T) {
	for _, s := range shapes {
		for _, includeUsage := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, usage %v", s.name, includeUsage), func(t *testing.T) {
				body, err := sjson.Set(s.chat, "stream_options.include_usage", includeUsage)
				if err != nil {
					t.Fatal(err)
				}
				whole := post(t, "/v1/chat/completions", s.chat).Body.String()
				got := accumulateChat(t, stream(t, "/v1/chat/completions", body), includeUsage)
				if !includeUsage {
					whole, _ = sjson.Delete(whole, "usage")
				}
				same(t, got, whole)

				u := gjson.Get(whole, "usage")
				if u.Get("prompt_tokens").Int()+u.Get("completion_tokens").Int() != u.Get("total_tokens").Int() {
					t.Errorf("usage does not sum up: %s", u.Raw)
				}
			})
		}
	}
}

// accumulateChat makes of a stream's chunks what would have come without one.
func accumulateChat(t *testing.T, all []event, includeUsage bool) string {
	t.Helper()
	if last := all[len(all)-1]; last.data != "[DONE]" {
		t.Errorf("ends with %v", last)
	}
	all = all[:len(all)-1]
	var c chatCompletion
	var m chatMessage
	m.Annotations = []struct{}{}
	for i, e := range all {
		var chunk struct {
			completionHead
			Choices []chatChoiceDelta
			Usage   *completionUsage
		}
		if err := json.Unmarshal([]byte(e.data), &chunk); err != nil {
			t.Fatal(err)
		}
		if e.name != "" || chunk.Object != "chat.completion.chunk" {
			t.Errorf("event %d: %v", i, e)
		}
		if i > 0 && chunk.completionHead != c.completionHead {
			t.Errorf("event %d changes the head: %s", i, e.data)
		}
		c.completionHead = chunk.completionHead
		if gjson.Get(e.data, "usage").Exists() != includeUsage {
			t.Errorf("usage in event %d: %s", i, e.data)
		}
		if includeUsage && i == len(all)-1 {
			if len(chunk.Choices) != 0 || chunk.Usage == nil {
				t.Fatalf("the last event is not the usage: %s", e.data)
			}
			c.Usage = *chunk.Usage
			continue
		}
		if len(chunk.Choices) != 1 || chunk.Usage != nil {
			t.Fatalf("event %d: %s", i, e.data)
		}
		choice := chunk.Choices[0]
		if (choice.Delta.Role != "") != (i == 0) {
			t.Errorf("role in event %d: %s", i, e.data)
		}
		m.add(t, choice.Delta)
		if finished := choice.FinishReason != nil; finished {
			if !reflect.DeepEqual(choice.Delta, chatDelta{}) {
				t.Errorf("content beside the finish reason: %s", e.data)
			}
			c.Choices = []chatChoiceWhole{{Message: m, FinishReason: *choice.FinishReason}}
		} else if c.Choices != nil {
			t.Errorf("event %d after the finish reason: %s", i, e.data)
		}
	}
	c.Object = "chat.completion"
	whole, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if !includeUsage {
		whole, _ = sjson.DeleteBytes(whole, "usage")
	}
	return string(whole)
}

func (m *chatMessage) add(t *testing.T, d chatDelta) {
	t.Helper()
	m.Role += d.Role
	m.ReasoningContent += d.ReasoningContent
	if d.Content != nil && *d.Content != "" { // a stream begins with an empty text
		text := *d.Content
		if m.Content != nil {
			text = *m.Content + text
		}
		m.Content = &text
	}
	for _, call := range d.ToolCalls {
		switch {
		case call.Index != nil && *call.Index == len(m.ToolCalls) && call.ID != "":
			call.Index = nil
			m.ToolCalls = append(m.ToolCalls, call)
		case call.Index != nil && *call.Index == len(m.ToolCalls)-1 && call.ID == "":
			m.ToolCalls[*call.Index].Function.Arguments += call.Function.Arguments
		default:
			t.Errorf("a call out of order: %+v", call)
		}
	}
}
