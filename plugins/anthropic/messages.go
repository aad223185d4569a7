package anthropic

import (
	"encoding/json"
	"strings"

	"github.com/weirhq/weir/plugins/translate"
)

// Messages are turns of the user and the assistant, who alternate. Bedrock has
// them in the same form.
type Messages[Block any] []Message[Block]

// Message is a turn of the user or the assistant.
type Message[Block any] struct {
	Role    translate.Role `json:"role"`
	Content []Block        `json:"content"`
}

// Add adds blocks to the last message, or to a new one when another speaks.
func (m *Messages[Block]) Add(role translate.Role, blocks ...Block) {
	if len(blocks) == 0 {
		return
	}
	if n := len(*m); n > 0 && (*m)[n-1].Role == role {
		last := &(*m)[n-1]
		last.Content = append(last.Content, blocks...)
		return
	}
	*m = append(*m, Message[Block]{role, blocks})
}

type textBlock struct {
	Type         string        `json:"type"`
	Text         string        `json:"text"`
	CacheControl *cacheControl `json:"cache_control,omitempty"`
}

type toolUseBlock struct {
	Type  string          `json:"type"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

type toolResultBlock struct {
	Type      string `json:"type"`
	ToolUseID string `json:"tool_use_id"`
	Content   []any  `json:"content,omitempty"`
	IsError   bool   `json:"is_error,omitempty"`
}

// failure is the output of a call that failed without any: the provider refuses an
// empty one.
const failure = "(The call failed.)"

// setMessages translates instructions and turns.
func (r *request) setMessages(p *translate.Request, m *model) error {
	system, turns, err := p.Alternate()
	for i := range system {
		r.System = append(r.System, textOf(p, &system[i]))
	}
	for _, t := range turns {
		if err != nil {
			return err
		}
		switch t.Role {
		case translate.RoleAssistant:
			err = r.addAssistant(p, m, t)
		case translate.RoleTool:
			err = r.addOutputs(p, m, t)
		default:
			err = r.addUser(p, m, t)
		}
	}
	return err
}

func (r *request) addUser(p *translate.Request, m *model, t translate.Turn) error {
	for _, item := range t.Items {
		blocks, err := r.blocks(p, m, item.(*translate.Message).Content)
		if err != nil {
			return err
		}
		r.Messages.Add(translate.RoleUser, blocks...)
	}
	return nil
}

func (r *request) addAssistant(p *translate.Request, m *model, t translate.Turn) error {
	for _, item := range t.Items {
		switch item := item.(type) {
		case *translate.Message:
			blocks, err := r.blocks(p, m, item.Content)
			if err != nil {
				return err
			}
			r.Messages.Add(translate.RoleAssistant, blocks...)
		case *translate.ReasoningItem:
			block := ownReasoning(item.EncryptedContent)
			if block == nil {
				if err := p.DropForeignReasoning(item); err != nil {
					return err
				}
				continue
			}
			r.Messages.Add(translate.RoleAssistant, block)
		case *translate.ToolCall:
			input, err := item.Object()
			if err != nil {
				return err
			}
			r.Messages.Add(translate.RoleAssistant, toolUseBlock{"tool_use", translate.WordCallID(item.CallID), item.Name, input})
		}
	}
	return nil
}

func (r *request) addOutputs(p *translate.Request, m *model, t translate.Turn) error {
	for _, item := range t.Items {
		o := item.(*translate.ToolOutput)
		content, err := r.blocks(p, m, o.Content)
		if err != nil {
			return err
		}
		if o.Failed && len(content) == 0 {
			content = []any{&textBlock{Type: "text", Text: failure}}
		}
		r.Messages.Add(translate.RoleUser, toolResultBlock{"tool_result", translate.WordCallID(o.CallID), content, o.Failed})
	}
	return nil
}

// blocks are those of a content.
func (r *request) blocks(p *translate.Request, m *model, content []translate.Part) ([]any, error) {
	var blocks []any
	for i := range content {
		part := &content[i]
		switch part.Type {
		case translate.PartImage, translate.PartFile:
			block, err := r.media(p, m, part)
			if err != nil {
				return nil, err
			}
			blocks = append(blocks, block)
		default:
			if block := textOf(p, part); block != nil {
				blocks = append(blocks, block)
			}
		}
	}
	return blocks, nil
}

// textOf is nil for the blank texts that the provider refuses.
func textOf(p *translate.Request, part *translate.Part) *textBlock {
	if strings.TrimSpace(part.Text) == "" {
		return nil
	}
	b := &textBlock{Type: "text", Text: part.Text}
	if part.CacheBreakpoint {
		b.CacheControl = cacheOf(p)
	}
	return b
}
