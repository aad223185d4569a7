package cohere

import (
	"encoding/json"
	"strings"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/chat"
	"github.com/weirhq/weir/plugins/translate"
)

type message struct {
	Role       string `json:"role"`
	ToolCallID string `json:"tool_call_id,omitempty"`
	Content    []any  `json:"content,omitempty"`
	ToolPlan   string `json:"tool_plan,omitempty"`
	chat.Calls[chat.ToolCall]
}

type textContent struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type thinkingContent struct {
	Type     string `json:"type"`
	Thinking string `json:"thinking"`
}

func (r *request) setMessages(p *translate.Request, c *plugins.Capabilities) error {
	if strings.TrimSpace(p.Instructions) != "" {
		r.Messages = append(r.Messages, message{Role: "system", Content: []any{textContent{"text", p.Instructions}}})
	}
	for _, t := range p.Turns {
		var err error
		switch t.Role {
		case translate.RoleAssistant:
			err = r.addAssistant(p, t)
		case translate.RoleTool:
			err = r.addOutputs(t)
		case translate.RoleUser:
			err = r.addMessage("user", c, t)
		default:
			err = r.addMessage("system", c, t)
		}
		if err != nil {
			return err
		}
	}
	if len(r.Messages) == 0 {
		return plugins.Invalid("input", "The input has no text: the provider takes no empty messages.")
	}
	return nil
}

func (r *request) addMessage(role string, c *plugins.Capabilities, t translate.Turn) error {
	m := message{Role: role}
	for _, item := range t.Items {
		for _, part := range item.(*translate.Message).Content {
			if part.Type != translate.PartImage {
				m.addText(part.Text)
				continue
			}
			image, err := newImage(c, part)
			if err != nil {
				return err
			}
			m.Content = append(m.Content, image)
		}
	}
	if len(m.Content) > 0 {
		r.Messages = append(r.Messages, m)
	}
	return nil
}

func newImage(c *plugins.Capabilities, part translate.Part) (chat.Part, error) {
	switch {
	case part.FileID != "":
		return chat.Part{}, plugins.Unsupported(part.Param, "The provider takes images by URL or inline, not by file_id.")
	case !c.Takes("image"):
		return chat.Part{}, plugins.Unsupported(part.Param, "The model does not take images.")
	}
	image := chat.Part{Type: "image_url", ImageURL: &chat.ImageURL{URL: part.DataURL(), Detail: part.Detail}}
	if part.Detail == "original" { // the most there is
		image.ImageURL.Detail = "high"
	}
	return image, nil
}

func (r *request) addAssistant(p *translate.Request, t translate.Turn) error {
	m := message{Role: "assistant"}
	err := t.Visit(translate.Visitor{
		Message: func(item *translate.Message) error {
			for _, part := range item.Content {
				if part.Type == translate.PartImage {
					return plugins.Unsupported(part.Param, "The provider takes no images of the assistant's.")
				}
				m.addText(part.Text)
			}
			return nil
		},
		Reasoning: func(item *translate.ReasoningItem) error {
			switch th := ownReasoning(item.EncryptedContent); {
			case th.Thinking != "":
				m.Content = append(m.Content, thinkingContent{"thinking", th.Thinking})
			case th.ToolPlan != "":
				m.ToolPlan += th.ToolPlan
			default:
				return p.DropForeignReasoning(item)
			}
			return nil
		},
		Call: func(call *translate.ToolCall, arguments json.RawMessage) error {
			m.ToolCalls = append(m.ToolCalls, chat.CallFunction(call.CallID, call.Name, string(arguments)))
			return nil
		},
	})
	if err != nil {
		return err
	}
	if len(m.Content) > 0 || len(m.ToolCalls) > 0 {
		r.Messages = append(r.Messages, m)
	}
	return nil
}

func (r *request) addOutputs(t translate.Turn) error {
	for _, item := range t.Items {
		o := item.(*translate.ToolOutput)
		m := message{Role: "tool", ToolCallID: o.CallID}
		for _, part := range o.ContentWithFailure() {
			if part.Type == translate.PartImage {
				return plugins.Unsupported(part.Param, "The provider takes no images that tools put out.")
			}
			m.Content = append(m.Content, textContent{"text", part.Text})
		}
		if len(m.Content) == 0 {
			m.Content = []any{textContent{Type: "text"}}
		}
		r.Messages = append(r.Messages, m)
	}
	return nil
}

// addText adds a text, unless it is blank: the provider refuses blank texts.
func (m *message) addText(text string) {
	if strings.TrimSpace(text) != "" {
		m.Content = append(m.Content, textContent{"text", text})
	}
}
