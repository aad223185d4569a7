package bedrock

import (
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/anthropic"
	"github.com/weirhq/weir/plugins/translate"
)

type effort struct {
	Effort string `json:"effort"`
}

// reasoningConfig is how much Nova thinks.
type reasoningConfig struct {
	Type               string `json:"type"`
	MaxReasoningEffort string `json:"maxReasoningEffort"`
}

// setReasoning requests reasoning in the format of the model's maker. Only Claude is asked for a summary:
// the others return their thoughts anyway.
func (r *request) setReasoning(p *translate.Request, m *model) error {
	effort := p.Reasoning.Effort
	if m.maker == byAnthropic {
		return r.setThinking(p, m)
	}
	if err := p.CheckEffort(); err != nil {
		return err
	}
	switch {
	case !m.Reasoning:
		return p.DropReasoning(translate.ModelRefuses)
	case effort == "", effort == "none" && m.maker == byAmazon: // which thinks only when told to
		return nil
	case effort == "none" && slices.Contains(m.Efforts, effort):
		r.fields().ReasoningEffort = effort
		return nil
	case effort == "none":
		return p.DropWithWarning("reasoning.effort", "not possible with a model that always thinks, left out")
	}
	err := p.LimitEffort(m.Efforts)
	switch {
	case err != nil || p.Reasoning.Effort == "":
		return err
	case m.maker != byAmazon:
		r.fields().ReasoningEffort = p.Reasoning.Effort
		return nil
	case p.Reasoning.Effort == "high" && p.MaxOutputTokens.Valid:
		if err := p.DropWithWarning("reasoning.effort", "'high' is not possible with max_output_tokens, 'medium' in its place"); err != nil {
			return err
		}
		p.Reasoning.Effort = "medium"
	}
	r.fields().ReasoningConfig = &reasoningConfig{"enabled", p.Reasoning.Effort}
	return nil
}

func (r *request) excludesSampling() bool {
	f := r.ModelFields
	switch {
	case f == nil:
		return false
	case f.Thinking != nil:
		return f.Thinking.Type != "disabled"
	}
	return f.ReasoningConfig != nil && f.ReasoningConfig.MaxReasoningEffort == "high"
}

// setThinking requests reasoning from Claude.
func (r *request) setThinking(p *translate.Request, m *model) error {
	limit := p.MaxOutputTokens.Or(plugins.Known(m.MaxOutput)).N
	thinking, hasEffort, err := anthropic.Thinker{
		Capabilities: &m.Capabilities,
		Always:       m.Has(anthropic.AlwaysThinks),
		Forced:       r.forced(),
		MaxTokens:    limit,
		Own:          func(r *translate.ReasoningItem) bool { return ownReasoning(r.EncryptedContent) != nil },
	}.Think(p)
	if thinking == nil {
		return err
	}
	r.fields().Thinking = thinking
	if thinking.BudgetTokens > 0 {
		r.inference().MaxTokens = limit
	}
	if hasEffort {
		r.fields().OutputConfig = &effort{p.Reasoning.Effort}
	}
	return err
}

// The encrypted_content of our reasoning items is the reasoningContent that the
// model wants back unchanged: {"reasoningText":{"text":...,"signature":...}} or
// {"redactedContent":...}.

type reasoningContent struct {
	ReasoningText   *reasoningText `json:"reasoningText,omitempty"`
	RedactedContent []byte         `json:"redactedContent,omitempty"`
}

type reasoningText struct {
	Text      string `json:"text"`
	Signature string `json:"signature"`
}

func encodeReasoning(c reasoningContent) string {
	b, _ := json.Marshal(c) // strings
	return string(b)
}

// ownReasoning is the reasoningContent in an encrypted_content, nil if another provider made it.
func ownReasoning(encrypted string) json.RawMessage {
	if !plugins.ValidJSON([]byte(encrypted)) {
		return nil
	}
	v := gjson.Parse(encrypted)
	if v.Get("reasoningText.signature").Str == "" && v.Get("redactedContent").Str == "" {
		return nil
	}
	return json.RawMessage(encrypted)
}
