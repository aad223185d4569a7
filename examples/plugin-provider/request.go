package acme

import (
	"encoding/json"
	"strings"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// policy says what Acme has no equivalent for, where that differs from what most
// providers have: a form that the client asked for is no hint, and its lack an
// error.
var policy = translate.DefaultPolicy.With(translate.Policy{
	"text.format": translate.Reject,
	"top_p":       translate.Warn,
})

// request is the body of POST /generate.
type request struct {
	Model       string        `json:"model"`
	Turns       []turn        `json:"turns"`
	Tools       []tool        `json:"tools,omitempty"`
	Choice      string        `json:"choice,omitempty"` // auto, none or required
	Limit       plugins.Count `json:"limit,omitzero"`   // tokens
	Temperature *float64      `json:"temperature,omitempty"`
	Stream      bool          `json:"stream,omitempty"`
}

type turn struct {
	From    string   `json:"from"` // user, system, model or tools
	Text    string   `json:"text,omitempty"`
	Calls   []call   `json:"calls,omitempty"`
	Results []result `json:"results,omitempty"`
}

// call is a call of a tool by the model, or in a stream a piece of a call. The pieces of an
// index belong together, and the first piece has the ID and the tool.
type call struct {
	Index int    `json:"index"`
	ID    string `json:"id"`
	Tool  string `json:"tool"`
	Input string `json:"input"` // JSON
}

type result struct {
	Call string `json:"call"`
	Text string `json:"text"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Input       json.RawMessage `json:"input,omitempty"` // JSON Schema
}

// newRequest translates p. An error that the client caused is a *plugins.Error.
func newRequest(p *translate.Request, model string) (*request, error) {
	if err := p.Apply(policy); err != nil {
		return nil, err
	}
	r := &request{
		Model: model, Stream: p.Stream,
		Choice: p.ToolChoice.Mode, Limit: p.MaxOutputTokens, Temperature: p.Temperature,
	}
	if p.Instructions != "" {
		r.Turns = append(r.Turns, turn{From: "system", Text: p.Instructions})
	}
	for _, t := range p.Turns {
		if err := r.addTurn(p, t); err != nil {
			return nil, err
		}
	}
	return r, r.setTools(p)
}

// speakers are Acme's names for roles.
var speakers = map[translate.Role]string{
	translate.RoleUser:      "user",
	translate.RoleSystem:    "system",
	translate.RoleDeveloper: "system",
	translate.RoleAssistant: "model",
	translate.RoleTool:      "tools",
}

func (r *request) addTurn(p *translate.Request, t translate.Turn) error {
	said := turn{From: speakers[t.Role]}
	for _, item := range t.Items {
		switch item := item.(type) {
		case *translate.Message:
			said.Text += text(item.Content)
		case *translate.ToolCall:
			said.Calls = append(said.Calls, call{len(said.Calls), item.CallID, item.Name, string(item.Object())})
		case *translate.ToolOutput:
			said.Results = append(said.Results, result{item.CallID, text(item.Content)})
		case *translate.ReasoningItem:
			if err := p.DropForeignReasoning(item); err != nil {
				return err
			}
		}
	}
	if said.Text != "" || said.Calls != nil || said.Results != nil {
		r.Turns = append(r.Turns, said)
	}
	return nil
}

// text is what the parts say: the policy lets nothing but text pass.
func text(parts []translate.Part) string {
	var b strings.Builder
	for _, part := range parts {
		b.WriteString(part.Text)
	}
	return b.String()
}

// setTools offers the tools that the choice is about. Of the function that a
// custom tool becomes, the Assembler gives the client the input again.
func (r *request) setTools(p *translate.Request) error {
	c := p.ToolChoice
	for _, t := range p.Tools {
		if c.Name != "" && c.Name != t.Name || !c.Allows(&t) {
			continue
		}
		description, parameters := t.AsFunction()
		r.Tools = append(r.Tools, tool{t.Name, description, parameters})
	}
	return nil
}
