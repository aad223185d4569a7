package llmotlp

import (
	"encoding/json"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
)

// maxBody is how many bytes of each body are kept, as llm_log does.
const maxBody = 8 << 20

// request is the body of the call, as Chat Completions has it, or Embeddings.
type request struct {
	Model            string            `json:"model,omitempty"`
	Messages         []message         `json:"messages,omitempty"`
	Input            []string          `json:"input,omitempty"`
	Tools            []json.RawMessage `json:"tools,omitempty"`
	MaxTokens        json.RawMessage   `json:"max_tokens,omitempty"`
	Temperature      json.RawMessage   `json:"temperature,omitempty"`
	TopP             json.RawMessage   `json:"top_p,omitempty"`
	FrequencyPenalty json.RawMessage   `json:"frequency_penalty,omitempty"`
	PresencePenalty  json.RawMessage   `json:"presence_penalty,omitempty"`
	Seed             json.RawMessage   `json:"seed,omitempty"`
	Stop             json.RawMessage   `json:"stop,omitempty"`
	N                json.RawMessage   `json:"n,omitempty"`
	Stream           bool              `json:"stream,omitempty"`
}

// response is the answer, as Chat Completions has it.
type response struct {
	ID      string   `json:"id,omitempty"`
	Object  string   `json:"object"`
	Model   string   `json:"model,omitempty"`
	Choices []choice `json:"choices"`
}

type choice struct {
	Index   int     `json:"index"`
	Message message `json:"message"`
	Finish  string  `json:"finish_reason,omitempty"`
}

// content returns what was said. A span may have all of it, a part or nothing. Content that must
// not be kept is not read.
func (c *call) content(r *storage.Record) *storage.Kept {
	content := storage.Content{Inputs: c.inputs}
	if !r.RequestOmitted {
		if content.Request = wholeBody(c.text(requestBody)); content.Request.Data != nil {
			content.Media = c.hasMedia()
		} else {
			content.Request = body(c.request(r, &content.Media))
		}
		r.RequestBytes = int64(len(content.Request.Data))
	}
	if !r.ResponseOmitted {
		if content.Response = wholeBody(c.text(responseBody)); content.Response.Data == nil {
			content.Response = body(c.response())
		}
		r.ResponseBytes = int64(len(content.Response.Data))
	}
	return storage.Keep(r, content, maxBody)
}

// request returns nil if the span does not say what was asked.
func (c *call) request(r *storage.Record, media *bool) any {
	body := &request{Model: r.RequestModel, Stream: r.Stream || c.asksForStream()}
	if c.dialect == plugins.Embeddings {
		body.Input = c.embedded()
	} else {
		body.Messages = c.input()
	}
	if len(body.Messages)+len(body.Input) == 0 {
		return nil
	}
	for _, m := range body.Messages {
		*media = *media || m.media
	}
	body.Tools = c.tools()
	for _, p := range []struct {
		field *json.RawMessage
		name  string
		keys  []string
	}{
		{&body.MaxTokens, "max_tokens", []string{"gen_ai.request.max_tokens"}},
		{&body.Temperature, "temperature", []string{"gen_ai.request.temperature"}},
		{&body.TopP, "top_p", []string{"gen_ai.request.top_p"}},
		{&body.FrequencyPenalty, "frequency_penalty", []string{"gen_ai.request.frequency_penalty", "llm.frequency_penalty"}},
		{&body.PresencePenalty, "presence_penalty", []string{"gen_ai.request.presence_penalty", "llm.presence_penalty"}},
		{&body.Seed, "seed", []string{"gen_ai.request.seed"}},
		{&body.Stop, "stop", []string{"gen_ai.request.stop_sequences", "llm.chat.stop_sequences"}},
		{&body.N, "n", []string{"gen_ai.request.choice.count"}},
	} {
		if *p.field = c.json(p.keys...); *p.field == nil {
			*p.field = json.RawMessage(c.parameter(p.name))
		}
	}
	return body
}

// response returns nil if the span does not have the answer.
func (c *call) response() any {
	messages := c.messages(&answered)
	if len(messages) == 0 {
		return nil
	}
	answered := &response{ID: short(c.text("gen_ai.response.id")), Object: "chat.completion", Model: short(c.responded())}
	reasons := c.finish()
	for i, m := range messages {
		if m.finish == "" && i < len(reasons) {
			m.finish = reasons[i]
		}
		answered.Choices = append(answered.Choices, choice{i, m, m.finish})
	}
	return answered
}

// body is a value as a body, the zero Body for nil.
func body(value any) storage.Body {
	if value == nil {
		return storage.Body{}
	}
	data, err := translate.Encode(value)
	if err != nil { // no value of ours does that
		return storage.Body{}
	}
	return storage.Body{Type: string(jsonText), Data: data}
}
