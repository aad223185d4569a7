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
	Type         string        `json:"type"`
	ToolUseID    string        `json:"tool_use_id"`
	Content      []any         `json:"content,omitempty"`
	IsError      bool          `json:"is_error,omitempty"`
	CacheControl *cacheControl `json:"cache_control,omitempty"`
}

func (r *request) setMessages(p *translate.Request, m *model) error {
	system, turns, err := p.Alternate()
	if err != nil {
		return err
	}
	for i := range system {
		r.System = append(r.System, textOf(p, &system[i]))
	}
	for _, t := range turns {
		role := t.Role
		if role == translate.RoleTool {
			role = translate.RoleUser
		}
		err := t.Visit(translate.Visitor{
			Message: func(item *translate.Message) error {
				blocks, err := r.blocks(p, m, item.Content)
				r.Messages.Add(role, blocks...)
				return err
			},
			Reasoning: func(item *translate.ReasoningItem) error {
				block := ownReasoning(item.EncryptedContent)
				if block == nil {
					return p.DropForeignReasoning(item)
				}
				r.Messages.Add(role, block)
				return nil
			},
			Call: func(call *translate.ToolCall, input json.RawMessage) error {
				r.Messages.Add(role, toolUseBlock{"tool_use", call.CallID, call.Name, input})
				return nil
			},
			Output: func(o *translate.ToolOutput) error {
				content, err := r.blocks(p, m, o.Content)
				if o.Failed && len(content) == 0 {
					content = []any{&textBlock{Type: "text", Text: translate.FailedCall}}
				}
				result := &toolResultBlock{Type: "tool_result", ToolUseID: o.CallID, Content: content, IsError: o.Failed}
				for _, block := range content { // the provider takes no mark within a result
					if mark := markOf(block); *mark != nil {
						result.CacheControl, *mark = *mark, nil
					}
				}
				r.Messages.Add(role, result)
				return err
			},
		})
		if err != nil {
			return err
		}
	}
	return r.endWithUser(p, m)
}

// endWithUser lets a Claude that does not continue the assistant's text go on after it. The others
// refuse white space at its end. What another vendor's model does is not known.
func (r *request) endWithUser(p *translate.Request, m *model) error {
	last := r.Messages[len(r.Messages)-1]
	if last.Role != translate.RoleAssistant || !m.claude {
		return nil
	}
	if !m.Has(Prefills) {
		r.Messages.Add(translate.RoleUser, &textBlock{Type: "text", Text: translate.GoOn})
		return p.DropWithWarning("input", translate.WithGoOn)
	}
	if text, ok := last.Content[len(last.Content)-1].(*textBlock); ok {
		text.Text = strings.TrimRight(text.Text, " \t\r\n")
	}
	return nil
}

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

// textOf is the block of a text, nil for a blank one, which the provider refuses.
func textOf(p *translate.Request, part *translate.Part) *textBlock {
	if strings.TrimSpace(part.Text) == "" {
		return nil
	}
	b := &textBlock{Type: "text", Text: part.Text}
	if part.CacheBreakpoint {
		b.CacheControl = cacheOf(p, part.CachesLonger)
	}
	return b
}
