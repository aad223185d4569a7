package chat

import (
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

type reasoningEffortObject struct {
	Effort string `json:"effort"`
}

type thinking struct {
	Type string `json:"type"`
}

type templateOptions struct {
	EnableThinking bool `json:"enable_thinking"`
}

// setReasoning sets how much the model thinks, at the nearest level that it has.
func (r *request) setReasoning(a attempt) error {
	p := a.request
	if p.Reasoning.Effort != "none" && a.vendor.repeatsReasoning && a.isReasoning() && len(r.Tools) > 0 && slices.ContainsFunc(r.Messages, unreasoned) {
		r.Thinking = &thinking{"disabled"}
		return p.DropReasoning("not possible after calls without the reasoning that led to them, left out")
	}
	if p.Reasoning.Effort != "none" && a.vendor.thinksUnforced && r.forced() && (a.isReasoning() || !a.target.Capabilities.Described() && p.Reasoning.Effort != "") {
		r.Thinking = &thinking{"disabled"}
		return p.DropReasoning("not possible where a call is forced, left out")
	}
	if p.Reasoning.Effort == "" {
		return nil
	}
	if a.vendor.effort == thinkingSwitch && (a.isReasoning() || !a.target.Capabilities.Described()) {
		r.Thinking = &thinking{"enabled"}
		if p.Reasoning.Effort == "none" {
			r.Thinking.Type = "disabled"
			return nil
		}
		if a.target.Capabilities == nil || len(a.target.Capabilities.Efforts) == 0 {
			return nil
		}
	}
	if err := p.FitReasoning(a.target.Capabilities, a.vendor.efforts); err != nil {
		return err
	}
	switch effort := p.Reasoning.Effort; {
	case effort == "":
	case a.vendor.effort == reasoningObject:
		r.Reasoning = &reasoningEffortObject{effort}
	case a.vendor.effort == templateThinking && effort == "none":
		r.ChatTemplateKwargs = &templateOptions{EnableThinking: false}
	case a.vendor.effort == templateThinking:
		r.ReasoningEffort = effort
		r.ChatTemplateKwargs = &templateOptions{EnableThinking: true}
	default:
		r.ReasoningEffort = effort
	}
	return nil
}

// unreasoned reports whether a message has calls, but not the reasoning that led to them.
func unreasoned(m Message) bool { return len(m.ToolCalls) > 0 && m.ReasoningContent == "" }

// thoughts are the reasoning of a message, in the vendor's field.
type thoughts struct {
	Reasoning        string   `json:"reasoning,omitempty"`
	ReasoningContent string   `json:"reasoning_content,omitempty"`
	ReasoningDetails []detail `json:"reasoning_details,omitempty"`
}

// detail is a piece of OpenRouter's reasoning, which the provider behind it may
// have signed (https://openrouter.ai/docs/use-cases/reasoning-tokens).
type detail struct {
	Type      string `json:"type"`
	Text      string `json:"text,omitempty"`
	Summary   string `json:"summary,omitempty"`
	Data      string `json:"data,omitempty"`
	Signature string `json:"signature,omitempty"`
	ID        string `json:"id,omitempty"`
	Format    string `json:"format,omitempty"`
	Index     int64  `json:"index"`
}

// sealedReasoning is the encrypted_content of our reasoning items: what the vendor may want back.
type sealedReasoning struct {
	Vendor string `json:"vendor"`
	thoughts
	// Extra is the extra_content of the call that follows. Google signs calls there, and refuses
	// them without (https://ai.google.dev/gemini-api/docs/thought-signatures).
	Extra json.RawMessage `json:"extra_content,omitempty"`
}

// replay adds an earlier reasoning to its message, if the vendor or the model wants it, and returns
// the extra_content of the call that follows.
func (t *thoughts) replay(a attempt, item *translate.ReasoningItem) (extra json.RawMessage, err error) {
	var s sealedReasoning
	if json.Unmarshal([]byte(item.EncryptedContent), &s) != nil || s.Vendor != a.vendor.name {
		return nil, a.request.DropForeignReasoning(item)
	}
	var field string
	if a.target.Capabilities != nil {
		field = a.target.Capabilities.Interleaved
	}
	switch {
	case len(s.ReasoningDetails) > 0:
		t.ReasoningDetails = append(t.ReasoningDetails, s.ReasoningDetails...)
	case a.vendor.replays:
		t.Reasoning += s.Reasoning
		t.ReasoningContent += s.ReasoningContent
	case field == "reasoning_content":
		t.ReasoningContent += s.Reasoning + s.ReasoningContent
	case field == "reasoning":
		t.Reasoning += s.Reasoning + s.ReasoningContent
	}
	return s.Extra, nil
}

// thinker collects the parts of a reasoning that will be sealed.
type thinker struct {
	field   string // the field with the text
	text    []byte
	details []detail
	piece   []byte // the text of the last detail
	extra   json.RawMessage
}

// add adds a piece of a detail. Consecutive pieces of one index are one detail.
func (t *thinker) add(v gjson.Result) {
	d := detail{
		Type:      v.Get("type").Str,
		Data:      v.Get("data").Str,
		Signature: v.Get("signature").Str,
		ID:        v.Get("id").Str,
		Format:    v.Get("format").Str,
		Index:     v.Get("index").Int(),
	}
	n := len(t.details)
	if n > 0 && d.Data == "" && t.details[n-1].Type == d.Type && t.details[n-1].Index == d.Index {
		t.details[n-1].Signature += d.Signature
	} else {
		t.settle()
		t.details = append(t.details, d)
	}
	t.piece = append(t.piece, plugins.Text(v.Get("text"))...)
	t.piece = append(t.piece, plugins.Text(v.Get("summary"))...)
}

// settle ends the last detail.
func (t *thinker) settle() {
	if len(t.piece) == 0 {
		return
	}
	last := &t.details[len(t.details)-1]
	if last.Type == "reasoning.summary" {
		last.Summary = plugins.JoinLastSurrogates(string(t.piece))
	} else {
		last.Text = plugins.JoinLastSurrogates(string(t.piece))
	}
	t.piece = t.piece[:0]
}

func (t *thinker) empty() bool {
	return len(t.text) == 0 && len(t.details) == 0 && t.extra == nil
}

// take returns what was collected, and empties the thinker.
func (t *thinker) take(v *vendor) string {
	t.settle()
	s := sealedReasoning{Vendor: v.name, Extra: t.extra}
	switch {
	case len(t.details) > 0:
		s.ReasoningDetails = t.details
	case t.field == "reasoning":
		s.Reasoning = plugins.JoinLastSurrogates(string(t.text))
	default:
		s.ReasoningContent = plugins.JoinLastSurrogates(string(t.text))
	}
	*t = thinker{}
	b, _ := json.Marshal(s) // strings and numbers
	return string(b)
}
