package gemini

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/translate"
)

type thinkingConfig struct {
	ThinkingLevel   string `json:"thinkingLevel,omitempty"`
	ThinkingBudget  *int64 `json:"thinkingBudget,omitempty"`
	IncludeThoughts bool   `json:"includeThoughts,omitempty"`
}

// budgets are the tokens for thinking that Google itself gives to an effort
// (https://ai.google.dev/gemini-api/docs/openai).
var budgets = map[string]int64{
	"minimal": 1024, "low": 1024, "medium": 8192, "high": 24576, "xhigh": 1 << 40, "max": 1 << 40, // the model's own limit
}

// setReasoning requests a thinking level, from minimal to high, or a budget from
// models that limit their thoughts in tokens.
func (r *request) setReasoning() error {
	p, m := r.request, r.model
	if err := p.CheckEffort(); err != nil {
		return err
	}
	switch {
	case p.Reasoning.Effort == "" && p.Reasoning.Summary == "":
		return nil
	case !m.Reasoning || !m.hasLevels() && m.Budget.Max == 0:
		return p.DropReasoning(translate.ModelRefuses)
	}
	c := &thinkingConfig{IncludeThoughts: p.Reasoning.Summary != ""}
	r.GenerationConfig.ThinkingConfig = c
	switch {
	case p.Reasoning.Effort == "":
		return nil
	case m.hasLevels():
		err := p.LimitEffort(m.Efforts)
		c.ThinkingLevel = strings.ToUpper(p.Reasoning.Effort)
		return err
	}
	return r.setBudget(c)
}

// setBudget requests reasoning from models that count it in tokens.
func (r *request) setBudget(c *thinkingConfig) error {
	m := r.model
	budget := min(max(budgets[r.request.Reasoning.Effort], m.Budget.Min), m.Budget.Max)
	if r.request.Reasoning.Effort == "none" {
		switch {
		case m.thinksIfTold:
			budget = 0
		case budget > 0:
			if err := r.request.DropWithWarning("reasoning.effort", "not possible with a model that always thinks, the least in its place"); err != nil {
				return err
			}
		}
		c.IncludeThoughts = c.IncludeThoughts && budget > 0
	}
	c.ThinkingBudget = &budget
	return nil
}

// reasoningSeal is the encrypted_content of our reasoning items: what the provider wants back and no other item
// holds.
type reasoningSeal struct {
	// Parts go back as they are, in their place.
	Parts []json.RawMessage `json:"parts,omitempty"`
	// Call is the thought signature of the call that follows.
	Call string `json:"call,omitempty"`
}

// ownReasoning reads an encrypted_content. It is false if another provider made it. An empty one has nothing
// to bring back.
func ownReasoning(encrypted string) (reasoningSeal, bool) {
	var s reasoningSeal
	if encrypted == "" {
		return s, true
	}
	if json.Unmarshal([]byte(encrypted), &s) != nil || len(s.Parts) == 0 && s.Call == "" {
		return reasoningSeal{}, false
	}
	for _, part := range s.Parts {
		if !gjson.ParseBytes(part).IsObject() {
			return reasoningSeal{}, false
		}
	}
	return s, true
}

// signedText is a part with the signature of the text before it.
func signedText(signature string) json.RawMessage {
	b, _ := json.Marshal(textPart{ThoughtSignature: signature}) // strings
	return b
}

// textSignature is the signature in a part of signedText, "" in other parts.
func textSignature(part json.RawMessage) string {
	v := gjson.ParseBytes(part)
	if text := v.Get("text"); text.Type != gjson.String || text.Str != "" {
		return ""
	}
	return v.Get("thoughtSignature").Str
}
