package anthropic

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// message is a turn of the user or the assistant, who alternate. Its content
// are blocks.
type message struct {
	Role    translate.Role `json:"role"`
	Content []any          `json:"content"`
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

const (
	// opening stands where a conversation does not begin with the user, as the
	// provider demands.
	opening = "(The conversation begins.)"
	// failure stands where a call failed without a word, which the provider
	// refuses.
	failure = "(The call failed.)"
)

// setMessages translates instructions and turns. What the system says before
// all others is the system prompt; what it says later stays in its place, as
// text of the user in tags.
func (r *request) setMessages(p *translate.Request, m *model) error {
	r.addSystem(p, []translate.Part{{Type: translate.PartText, Text: p.Instructions}})
	for _, t := range p.Turns {
		var err error
		switch t.Role {
		case translate.RoleSystem, translate.RoleDeveloper:
			err = r.addSystemTurn(p, m, t)
		case translate.RoleAssistant:
			err = r.addAssistant(p, m, t)
		case translate.RoleTool:
			err = r.addOutputs(p, m, t)
		default:
			err = r.addMessages(p, m, t, "", "")
		}
		if err != nil {
			return err
		}
	}
	if len(r.Messages) == 0 || r.Messages[0].Role != translate.RoleUser {
		begin := message{translate.RoleUser, []any{textBlock{Type: "text", Text: opening}}}
		r.Messages = append([]message{begin}, r.Messages...)
	}
	return nil
}

func (r *request) addSystem(p *translate.Request, content []translate.Part) {
	for i := range content {
		if block := textOf(p, &content[i]); block != nil {
			r.System = append(r.System, block)
		}
	}
}

func (r *request) addSystemTurn(p *translate.Request, m *model, t translate.Turn) error {
	if len(r.Messages) > 0 {
		return r.addMessages(p, m, t, "<system>\n", "\n</system>")
	}
	for _, item := range t.Items {
		content := item.(*translate.Message).Content
		for i := range content {
			if part := &content[i]; part.Type == translate.PartImage || part.Type == translate.PartFile {
				return plugins.Unsupported(part.Param, "The system can only say text before the conversation begins.")
			}
		}
		r.addSystem(p, content)
	}
	return nil
}

// addMessages adds a turn of messages of the user, each text between before and
// after.
func (r *request) addMessages(p *translate.Request, m *model, t translate.Turn, before, after string) error {
	for _, item := range t.Items {
		blocks, err := r.blocks(p, m, item.(*translate.Message).Content)
		if err != nil {
			return err
		}
		for _, b := range blocks {
			if text, ok := b.(*textBlock); ok {
				text.Text = before + text.Text + after
			}
		}
		r.add(translate.RoleUser, blocks...)
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
			r.add(translate.RoleAssistant, blocks...)
		case *translate.ReasoningItem:
			block := unseal(item.EncryptedContent)
			if block == nil {
				if err := drop(p, fmt.Sprintf("input[%d]", item.Index), "reasoning of another provider, left out"); err != nil {
					return err
				}
				continue
			}
			r.add(translate.RoleAssistant, block)
		case *translate.ToolCall:
			input, err := item.Object()
			if err != nil {
				return err
			}
			r.add(translate.RoleAssistant, toolUseBlock{"tool_use", toolUseID(item.CallID), item.Name, input})
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
		r.add(translate.RoleUser, toolResultBlock{"tool_result", toolUseID(o.CallID), content, o.Failed})
	}
	return nil
}

// add adds to the last message, or a new one when another speaks.
func (r *request) add(role translate.Role, blocks ...any) {
	if len(blocks) == 0 {
		return
	}
	if n := len(r.Messages); n > 0 && r.Messages[n-1].Role == role {
		r.Messages[n-1].Content = append(r.Messages[n-1].Content, blocks...)
		return
	}
	r.Messages = append(r.Messages, message{role, blocks})
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

// toolUseID is the id of a call as the provider takes it, ^[a-zA-Z0-9_-]+$: the
// client's own where that fits, else one that only it has.
func toolUseID(callID string) string {
	fits := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
	}
	if strings.IndexFunc(callID, func(c rune) bool { return !fits(c) }) < 0 {
		return callID
	}
	sum := sha256.Sum256([]byte(callID))
	return "call_" + hex.EncodeToString(sum[:16])
}
