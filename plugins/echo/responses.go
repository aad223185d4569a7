package echo

import (
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/tidwall/gjson"
)

// responses is OpenAI's Responses, with every key that Open Responses requires.
var responses = dialect{parse: parseResponses, object: responseObject, stream: streamResponse}

func parseResponses(body gjson.Result) (Request, *failure) {
	r := newRequest(body)
	r.count(body.Get("instructions"))
	input := body.Get("input")
	switch {
	case input.Type == gjson.String:
		r.user(input.Str, 0)
	case input.IsArray():
		for item := range objects(input) {
			r.inputItem(item)
		}
	default:
		return r, invalid("input", "input must be a string or an array of items")
	}

	for t := range objects(body.Get("tools")) {
		if t.Get("type").String() == "function" {
			r.offer(t, "parameters")
		}
	}
	r.SingleCall = body.Get("parallel_tool_calls").Type == gjson.False
	r.Reasoning = thinks(body, "reasoning")
	if f := r.choose(responsesChoice(body.Get("tool_choice"))); f != nil {
		return r, f
	}
	return r, r.limit(body, "max_output_tokens")
}

func (r *Request) inputItem(item gjson.Result) {
	content := item.Get("content")
	switch item.Get("type").String() {
	case "message", "": // the type of a message may be left out
		switch item.Get("role").String() {
		case "user":
			r.user(contentOf(content))
		case "assistant":
			r.assistant(content)
		default:
			r.count(content)
		}
	case "function_call":
		r.assistant(item.Get("arguments"))
	case "function_call_output":
		r.toolResult(item.Get("output"))
	}
}

func responsesChoice(v gjson.Result) choice {
	if !v.IsObject() {
		return choice{mode: v.String()}
	}
	switch v.Get("type").String() {
	case "function":
		return choice{"required", []string{v.Get("name").String()}}
	case "allowed_tools":
		c := choice{mode: v.Get("mode").String()}
		for t := range objects(v.Get("tools")) {
			c.names = append(c.names, t.Get("name").String())
		}
		return c
	}
	return choice{} // a hosted tool, of which there is none
}

// response is the object of the whole answer and of every lifecycle event; its
// keys are the same from the first to the last.
type response struct {
	ID                   string             `json:"id"`
	Object               string             `json:"object"`
	CreatedAt            int64              `json:"created_at"`
	Status               string             `json:"status"`
	AccessPrograms       json.RawMessage    `json:"access_programs"`
	Background           json.RawMessage    `json:"background"`
	CompletedAt          *int64             `json:"completed_at"`
	Error                json.RawMessage    `json:"error"`
	FrequencyPenalty     json.RawMessage    `json:"frequency_penalty"`
	IncompleteDetails    *incompleteDetails `json:"incomplete_details"`
	Instructions         json.RawMessage    `json:"instructions"`
	MaxOutputTokens      json.RawMessage    `json:"max_output_tokens"`
	MaxToolCalls         json.RawMessage    `json:"max_tool_calls"`
	Model                string             `json:"model"`
	Moderation           json.RawMessage    `json:"moderation"`
	Output               []outputItem       `json:"output"`
	ParallelToolCalls    json.RawMessage    `json:"parallel_tool_calls"`
	PresencePenalty      json.RawMessage    `json:"presence_penalty"`
	PreviousResponseID   json.RawMessage    `json:"previous_response_id"`
	PromptCacheKey       json.RawMessage    `json:"prompt_cache_key"`
	PromptCacheRetention json.RawMessage    `json:"prompt_cache_retention"`
	Reasoning            struct {
		Effort  json.RawMessage `json:"effort"`
		Summary json.RawMessage `json:"summary"`
	} `json:"reasoning"`
	SafetyIdentifier json.RawMessage `json:"safety_identifier"`
	ServiceTier      string          `json:"service_tier"`
	Store            json.RawMessage `json:"store"`
	Temperature      json.RawMessage `json:"temperature"`
	Text             struct {
		Format    json.RawMessage `json:"format"`
		Verbosity json.RawMessage `json:"verbosity"`
	} `json:"text"`
	ToolChoice  json.RawMessage `json:"tool_choice"`
	ToolUsage   json.RawMessage `json:"tool_usage"`
	Tools       []any           `json:"tools"`
	TopLogprobs json.RawMessage `json:"top_logprobs"`
	TopP        json.RawMessage `json:"top_p"`
	Truncation  json.RawMessage `json:"truncation"`
	Usage       *responseUsage  `json:"usage"`
	User        json.RawMessage `json:"user"`
	Metadata    json.RawMessage `json:"metadata"`
}

type incompleteDetails struct {
	Reason string `json:"reason"`
}

// functionTool has the keys that Open Responses requires of a tool told back.
type functionTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description json.RawMessage `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      json.RawMessage `json:"strict"`
}

type responseUsage struct {
	InputTokens        int64 `json:"input_tokens"`
	InputTokensDetails struct {
		CachedTokens     int64 `json:"cached_tokens"`
		CacheWriteTokens int64 `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	OutputTokens        int64 `json:"output_tokens"`
	OutputTokensDetails struct {
		ReasoningTokens int64 `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	TotalTokens int64 `json:"total_tokens"`
}

const noToolUsage = `{"image_gen":{"input_tokens":0,"input_tokens_details":{"image_tokens":0,"text_tokens":0},` +
	`"output_tokens":0,"output_tokens_details":{"image_tokens":0,"text_tokens":0},"total_tokens":0},` +
	`"web_search":{"num_requests":0}}`

// newResponse is the response before it has any output: what the client sent,
// or else OpenAI's defaults.
func newResponse(x *exchange, r Request) response {
	b := x.body
	v := response{
		ID:                   x.id("resp_"),
		Object:               "response",
		CreatedAt:            x.created.Unix(),
		Status:               "in_progress",
		Background:           raw(b, "background", "false"),
		FrequencyPenalty:     raw(b, "frequency_penalty", "0.0"),
		Instructions:         raw(b, "instructions", "null"),
		MaxOutputTokens:      raw(b, "max_output_tokens", "null"),
		MaxToolCalls:         raw(b, "max_tool_calls", "null"),
		Model:                r.Model,
		Output:               []outputItem{},
		ParallelToolCalls:    raw(b, "parallel_tool_calls", "true"),
		PresencePenalty:      raw(b, "presence_penalty", "0.0"),
		PreviousResponseID:   raw(b, "previous_response_id", "null"),
		PromptCacheKey:       raw(b, "prompt_cache_key", "null"),
		PromptCacheRetention: raw(b, "prompt_cache_retention", "null"),
		SafetyIdentifier:     raw(b, "safety_identifier", "null"),
		ServiceTier:          "default",
		Store:                raw(b, "store", "true"),
		Temperature:          raw(b, "temperature", "1.0"),
		ToolChoice:           raw(b, "tool_choice", `"auto"`),
		ToolUsage:            json.RawMessage(noToolUsage),
		Tools:                []any{},
		TopLogprobs:          raw(b, "top_logprobs", "0"),
		TopP:                 raw(b, "top_p", "1.0"),
		Truncation:           raw(b, "truncation", `"disabled"`),
		User:                 raw(b, "user", "null"),
		Metadata:             raw(b, "metadata", "{}"),
	}
	v.Reasoning.Effort = raw(b, "reasoning.effort", "null")
	v.Reasoning.Summary = raw(b, "reasoning.summary", "null")
	v.Text.Format = raw(b, "text.format", `{"type":"text"}`)
	v.Text.Verbosity = raw(b, "text.verbosity", `"medium"`)
	for t := range objects(b.Get("tools")) {
		if t.Get("type").String() != "function" {
			v.Tools = append(v.Tools, json.RawMessage(t.Raw))
			continue
		}
		v.Tools = append(v.Tools, functionTool{
			Type:        "function",
			Name:        t.Get("name").String(),
			Description: raw(t, "description", "null"),
			Parameters:  raw(t, "parameters", "null"),
			Strict:      raw(t, "strict", "true"),
		})
	}
	return v
}

// finish turns v into the response that ends the exchange.
func (v *response) finish(items []outputItem, a Answer) {
	v.Output = items
	v.Usage = newResponseUsage(a)
	if a.Finish == FinishLength {
		v.Status = "incomplete"
		v.IncompleteDetails = &incompleteDetails{"max_output_tokens"}
		return
	}
	v.Status = "completed"
	now := time.Now().Unix()
	v.CompletedAt = &now
}

func newResponseUsage(a Answer) *responseUsage {
	u := &responseUsage{
		InputTokens:  a.Usage.Input.N,
		OutputTokens: a.Usage.Output.N,
		TotalTokens:  a.Usage.Total().N,
	}
	u.InputTokensDetails.CachedTokens = a.Usage.CacheRead.N
	u.InputTokensDetails.CacheWriteTokens = a.Usage.CacheWrite.N
	u.OutputTokensDetails.ReasoningTokens = a.Usage.Reasoning.N
	return u
}

func responseObject(x *exchange, r Request, a Answer) any {
	v := newResponse(x, r)
	v.finish(outputItems(x, a), a)
	return v
}

// outputItems are the items of the answer: reasoning, message, calls. The one
// that was cut off is incomplete, and then the last.
func outputItems(x *exchange, a Answer) []outputItem {
	items := []outputItem{}
	if a.Reasoning != "" {
		item := reasoningItem{
			ID:      x.id("rs_"),
			Type:    "reasoning",
			Status:  "completed",
			Summary: []summaryText{{"summary_text", a.Reasoning}},
		}
		if x.body.Get(`include.#(=="reasoning.encrypted_content")`).Exists() {
			item.EncryptedContent = sealed(a.Reasoning)
		}
		if a.Finish == FinishLength && a.Text == "" && len(a.Calls) == 0 {
			item.Status = "incomplete"
		}
		items = append(items, item)
	}
	if a.Text != "" {
		item := messageItem{
			ID:      x.id("msg_"),
			Type:    "message",
			Status:  "completed",
			Role:    "assistant",
			Content: []outputText{newOutputText(a.Text)},
		}
		if a.Finish == FinishLength {
			item.Status = "incomplete"
		}
		items = append(items, item)
	}
	for i, c := range a.Calls {
		items = append(items, callItem{
			ID:        x.itemID("fc_", i),
			Type:      "function_call",
			Status:    "completed",
			CallID:    x.itemID("call_", i),
			Name:      c.Name,
			Arguments: c.Arguments,
		})
	}
	return items
}

// sealed returns reasoning in a form like the encrypted one that only its vendor
// can read.
func sealed(reasoning string) string {
	return base64.StdEncoding.EncodeToString([]byte(reasoning))
}
