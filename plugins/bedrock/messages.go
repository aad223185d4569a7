package bedrock

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// message is a turn of the user or the assistant, who alternate.
type message struct {
	Role    translate.Role `json:"role"`
	Content []block        `json:"content"`
}

// block is a block of content: one of its fields.
type block struct {
	Text             string          `json:"text,omitempty"`
	Image            *media          `json:"image,omitempty"`
	Document         *media          `json:"document,omitempty"`
	Audio            *media          `json:"audio,omitempty"`
	Video            *media          `json:"video,omitempty"`
	ToolUse          *toolUse        `json:"toolUse,omitempty"`
	ToolResult       *toolResult     `json:"toolResult,omitempty"`
	ReasoningContent json.RawMessage `json:"reasoningContent,omitempty"`
	CachePoint       *cachePoint     `json:"cachePoint,omitempty"`
}

type toolUse struct {
	ToolUseID string          `json:"toolUseId"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
}

type toolResult struct {
	ToolUseID string  `json:"toolUseId"`
	Content   []block `json:"content"`
	Status    string  `json:"status,omitempty"`
}

// cachePoint marks where a prefix ends that should be cached.
type cachePoint struct {
	Type string `json:"type"`
	TTL  string `json:"ttl,omitempty"`
}

const (
	// opening stands where a conversation does not begin with the user, as the
	// provider demands.
	opening = "(The conversation begins.)"
	// besideDocument stands where a message has a document but no text, which the
	// provider demands.
	besideDocument = "(See the document.)"
	// failure stands where a call failed without a word, which the provider
	// refuses.
	failure = "(The call failed.)"
)

// setMessages translates instructions and turns. What the system says before all
// others is the system prompt; what it says later stays in its place, as text of
// the user in tags.
func (r *request) setMessages(p *translate.Request, m *model) error {
	if strings.TrimSpace(p.Instructions) != "" {
		r.System = append(r.System, block{Text: p.Instructions})
	}
	for _, t := range p.Turns {
		var err error
		switch t.Role {
		case translate.RoleSystem, translate.RoleDeveloper:
			err = r.addSystem(p, m, t)
		case translate.RoleAssistant:
			err = r.addAssistant(p, m, t)
		case translate.RoleTool:
			err = r.addOutputs(p, m, t)
		default:
			err = r.addMessages(p, m, t)
		}
		if err != nil {
			return err
		}
	}
	if len(r.Messages) == 0 || r.Messages[0].Role != translate.RoleUser {
		r.Messages = slices.Insert(r.Messages, 0, message{translate.RoleUser, []block{{Text: opening}}})
	}
	return nil
}

func (r *request) addSystem(p *translate.Request, m *model, t translate.Turn) error {
	for _, item := range t.Items {
		content := item.(*translate.Message).Content
		for i := range content {
			if part := &content[i]; len(r.Messages) == 0 && part.Type != translate.PartText && part.Type != translate.PartRefusal {
				return plugins.Unsupported(part.Param, "The system can only say text before the conversation begins.")
			}
		}
		blocks, err := r.blocks(p, m, content)
		if err != nil {
			return err
		}
		if len(r.Messages) == 0 {
			r.System = append(r.System, blocks...)
			continue
		}
		for i := range blocks {
			if blocks[i].Text != "" {
				blocks[i].Text = "<system>\n" + blocks[i].Text + "\n</system>"
			}
		}
		r.add(translate.RoleUser, blocks...)
	}
	return nil
}

func (r *request) addMessages(p *translate.Request, m *model, t translate.Turn) error {
	var blocks []block
	for _, item := range t.Items {
		more, err := r.blocks(p, m, item.(*translate.Message).Content)
		if err != nil {
			return err
		}
		blocks = append(blocks, more...)
	}
	document := slices.ContainsFunc(blocks, func(b block) bool { return b.Document != nil })
	text := slices.ContainsFunc(blocks, func(b block) bool { return b.Text != "" })
	if document && !text {
		blocks = append(blocks, block{Text: besideDocument})
	}
	r.add(translate.RoleUser, blocks...)
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
			if err := r.addReasoning(p, m, item); err != nil {
				return err
			}
		case *translate.ToolCall:
			input, err := item.Object()
			if err != nil {
				return err
			}
			r.add(translate.RoleAssistant, block{ToolUse: &toolUse{toolUseID(item.CallID), item.Name, input}})
		}
	}
	return nil
}

// addReasoning gives Claude its own thoughts back. No other model wants them, and
// those without a signature are not sealed.
func (r *request) addReasoning(p *translate.Request, m *model, item *translate.ReasoningItem) error {
	if item.EncryptedContent == "" {
		return nil
	}
	reasoning := unseal(item.EncryptedContent)
	if reasoning == nil || m.maker != byAnthropic {
		return drop(p, fmt.Sprintf("input[%d]", item.Index), "reasoning of another model, left out")
	}
	r.add(translate.RoleAssistant, block{ReasoningContent: reasoning})
	return nil
}

func (r *request) addOutputs(p *translate.Request, m *model, t translate.Turn) error {
	for _, item := range t.Items {
		o := item.(*translate.ToolOutput)
		blocks, err := r.blocks(p, m, o.Content)
		if err != nil {
			return err
		}
		result := &toolResult{ToolUseID: toolUseID(o.CallID), Content: []block{}}
		if o.Failed {
			result.Status = "error"
		}
		var cache []block // which stand beside results, not in them
		for _, b := range blocks {
			if b.CachePoint != nil {
				cache = []block{b}
				continue
			}
			result.Content = append(result.Content, b)
		}
		if o.Failed && len(result.Content) == 0 {
			result.Content = []block{{Text: failure}}
		}
		r.add(translate.RoleUser, append([]block{{ToolResult: result}}, cache...)...)
	}
	return nil
}

// add adds to the last message, or a new one when another speaks.
func (r *request) add(role translate.Role, blocks ...block) {
	if len(blocks) == 0 {
		return
	}
	if n := len(r.Messages); n > 0 && r.Messages[n-1].Role == role {
		r.Messages[n-1].Content = append(r.Messages[n-1].Content, blocks...)
		return
	}
	r.Messages = append(r.Messages, message{role, blocks})
}

// blocks are those of a content, without the blank texts that the provider refuses.
func (r *request) blocks(p *translate.Request, m *model, content []translate.Part) ([]block, error) {
	var blocks []block
	for i := range content {
		part := &content[i]
		switch part.Type {
		case translate.PartImage, translate.PartFile, translate.PartAudio:
			b, err := r.media(p, m, part)
			if err != nil {
				return nil, err
			}
			blocks = append(blocks, b)
		default:
			if strings.TrimSpace(part.Text) == "" {
				continue
			}
			blocks = append(blocks, block{Text: part.Text})
		}
		if part.CacheBreakpoint && m.caches() {
			blocks = append(blocks, block{CachePoint: cacheOf(p, m)})
		}
	}
	return blocks, nil
}

// cacheOf lasts five minutes, or an hour where the client asks for longer and the
// model can.
func cacheOf(p *translate.Request, m *model) *cachePoint {
	c := &cachePoint{Type: "default"}
	longer := p.Field("prompt_cache_options.ttl") != nil || string(p.Field("prompt_cache_retention")) == `"24h"`
	if longer && m.maker == byAnthropic {
		c.TTL = "1h"
	}
	return c
}

// toolUseID is the id of a call as the provider takes it, [a-zA-Z0-9_-]{1,64}: the
// client's own where that fits, else one that only it has.
func toolUseID(callID string) string {
	if len(callID) <= 64 && strings.IndexFunc(callID, func(c rune) bool { return !alphanumeric(c) && c != '_' && c != '-' }) < 0 {
		return callID
	}
	sum := sha256.Sum256([]byte(callID))
	return "call_" + hex.EncodeToString(sum[:16])
}
