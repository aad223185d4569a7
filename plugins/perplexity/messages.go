package perplexity

import (
	"encoding/json"
	"strings"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// The items of the input, as Responses has them, but with fewer members.
type (
	message struct {
		Type    string         `json:"type"`
		Role    translate.Role `json:"role"`
		Content any            `json:"content"` // a string, or parts
	}
	part struct {
		Type     string `json:"type"`
		Text     string `json:"text,omitempty"`
		ImageURL string `json:"image_url,omitempty"`
	}
	functionCall struct {
		Type      string `json:"type"`
		CallID    string `json:"call_id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
		Signature string `json:"thought_signature,omitempty"`
	}
	functionOutput struct {
		Type   string `json:"type"`
		CallID string `json:"call_id"`
		Name   string `json:"name"`
		Output string `json:"output"`
	}
)

// sealedReasoning is the encrypted_content of our reasoning items: the signature of the next call, which the model may
// want to see again.
type sealedReasoning struct {
	Signature string `json:"perplexity_signature"`
}

func (r *request) setMessages(p *translate.Request) error {
	signature := ""
	for _, t := range p.Turns {
		err := t.Visit(translate.Visitor{
			Message: func(item *translate.Message) error { return r.addMessage(p, item) },
			Reasoning: func(item *translate.ReasoningItem) error {
				var s sealedReasoning
				if json.Unmarshal([]byte(item.EncryptedContent), &s) != nil || s.Signature == "" {
					return p.DropForeignReasoning(item)
				}
				signature = s.Signature
				return nil
			},
			Call: func(call *translate.ToolCall, arguments json.RawMessage) error {
				r.Input = append(r.Input, functionCall{"function_call", call.CallID, call.Name, string(arguments), signature})
				signature = ""
				return nil
			},
			Output: r.addOutput,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *request) addMessage(p *translate.Request, m *translate.Message) error {
	var parts []part
	for i := range m.Content {
		c := &m.Content[i]
		switch {
		case c.Type != translate.PartImage && c.Text == "":
		case c.Type != translate.PartImage:
			parts = append(parts, part{Type: "input_text", Text: c.Text})
		case c.FileID != "":
			return plugins.Unsupported(c.Param, "The provider keeps no images: send the content in place of a file_id.")
		default:
			if err := p.DropDetail(c); err != nil {
				return err
			}
			parts = append(parts, part{Type: "input_image", ImageURL: c.DataURL()})
		}
	}
	switch {
	case len(parts) == 1 && parts[0].Type == "input_text":
		r.Input = append(r.Input, message{"message", m.Role, parts[0].Text})
	case len(parts) > 0:
		r.Input = append(r.Input, message{"message", m.Role, parts})
	}
	return nil
}

func (r *request) addOutput(o *translate.ToolOutput) error {
	var texts []string
	for _, c := range o.ContentWithFailure() {
		if !c.IsText() {
			return plugins.Unsupported(c.Param, "The provider takes only text that tools put out.")
		}
		texts = append(texts, c.Text)
	}
	r.Input = append(r.Input, functionOutput{"function_call_output", o.CallID, o.Name, strings.Join(texts, "\n")})
	return nil
}
