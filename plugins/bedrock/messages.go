package bedrock

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/weirhq/weir/plugins/anthropic"
	"github.com/weirhq/weir/plugins/translate"
)

// block is a block of content. One of its fields is set.
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

// cachePoint marks the end of a prefix to be cached.
type cachePoint struct {
	Type string `json:"type"`
	TTL  string `json:"ttl,omitempty"`
}

// besideDocument is the text of a message that has a document and no text. The provider
// requires a text.
const besideDocument = "(See the document.)"

func (r *request) setMessages(p *translate.Request, m *model) error {
	system, turns, err := p.Alternate()
	if err != nil {
		return err
	}
	if r.System, err = r.blocks(p, m, system); err != nil {
		return err
	}
	for _, t := range turns {
		err := t.Visit(translate.Visitor{
			Message: func(item *translate.Message) error {
				blocks, err := r.blocks(p, m, item.Content)
				r.Messages.Add(t.Role, blocks...)
				return err
			},
			Reasoning: func(item *translate.ReasoningItem) error { return r.addReasoning(p, m, item) },
			Call: func(call *translate.ToolCall, input json.RawMessage) error {
				r.Messages.Add(t.Role, block{ToolUse: &toolUse{call.CallID, call.Name, input}})
				return nil
			},
			Output: func(o *translate.ToolOutput) error { return r.addOutput(p, m, o) },
		})
		if err != nil {
			return err
		}
		r.besideDocuments()
	}
	if err := r.endWithUser(p, m); err != nil {
		return err
	}
	return nil
}

// endWithUser does what it does for Anthropic's own API.
func (r *request) endWithUser(p *translate.Request, m *model) error {
	last := r.Messages[len(r.Messages)-1]
	if last.Role != translate.RoleAssistant || m.maker != byAnthropic {
		return nil
	}
	if !m.Has(anthropic.Prefills) {
		r.Messages.Add(translate.RoleUser, block{Text: translate.GoOn})
		return p.DropWithWarning("input", translate.WithGoOn)
	}
	end := len(last.Content) - 1
	for end > 0 && last.Content[end].CachePoint != nil { // stands after the text
		end--
	}
	text := &last.Content[end].Text
	*text = strings.TrimRight(*text, " \t\r\n")
	return nil
}

// limitCachePoints leaves out the cache points that are too many.
func (r *request) limitCachePoints(p *translate.Request) error {
	n := 0
	count := func(blocks []block) {
		for _, b := range blocks {
			if b.CachePoint != nil {
				n++
			}
		}
	}
	var tools []tool
	if r.ToolConfig != nil {
		tools = r.ToolConfig.Tools
	}
	for _, t := range tools {
		if t.CachePoint != nil {
			n++
		}
	}
	count(r.System)
	for _, m := range r.Messages {
		count(m.Content)
	}
	from, to := anthropic.Surplus(n, anthropic.MaxMarks)
	if from == to {
		return nil
	}
	n = 0
	isSurplus := func(point *cachePoint) bool {
		if point == nil {
			return false
		}
		n++
		return from < n && n <= to
	}
	if r.ToolConfig != nil {
		r.ToolConfig.Tools = slices.DeleteFunc(tools, func(t tool) bool { return isSurplus(t.CachePoint) })
	}
	surplus := func(b block) bool { return isSurplus(b.CachePoint) }
	r.System = slices.DeleteFunc(r.System, surplus)
	for i := range r.Messages {
		m := &r.Messages[i]
		m.Content = slices.DeleteFunc(m.Content, surplus)
	}
	return p.DropWithWarning("input", anthropic.TooManyMarks)
}

// besideDocuments adds a text to the last message if it has a document and no text.
func (r *request) besideDocuments() {
	if len(r.Messages) == 0 {
		return
	}
	last := r.Messages[len(r.Messages)-1]
	document := slices.ContainsFunc(last.Content, func(b block) bool { return b.Document != nil })
	text := slices.ContainsFunc(last.Content, func(b block) bool { return b.Text != "" })
	if document && !text {
		r.Messages.Add(last.Role, block{Text: besideDocument})
	}
}

// addReasoning gives Claude its own thoughts back. No other model wants them, and
// those without a signature are not sealed.
func (r *request) addReasoning(p *translate.Request, m *model, item *translate.ReasoningItem) error {
	if item.EncryptedContent == "" {
		return nil
	}
	reasoning := ownReasoning(item.EncryptedContent)
	if reasoning == nil || m.maker != byAnthropic {
		return p.DropForeignReasoning(item)
	}
	r.Messages.Add(translate.RoleAssistant, block{ReasoningContent: reasoning})
	return nil
}

func (r *request) addOutput(p *translate.Request, m *model, o *translate.ToolOutput) error {
	blocks, err := r.blocks(p, m, o.Content)
	if err != nil {
		return err
	}
	result := &toolResult{ToolUseID: o.CallID, Content: []block{}}
	if o.Failed {
		result.Status = "error"
	}
	var cache []block // beside results, not in them
	for _, b := range blocks {
		if b.CachePoint != nil {
			cache = []block{b}
			continue
		}
		result.Content = append(result.Content, b)
	}
	if o.Failed && len(result.Content) == 0 {
		result.Content = []block{{Text: translate.FailedCall}}
	}
	r.Messages.Add(translate.RoleUser, append([]block{{ToolResult: result}}, cache...)...)
	return nil
}

// blocks are those of a content, without the blank texts that the provider refuses.
func (r *request) blocks(p *translate.Request, m *model, content []translate.Part) ([]block, error) {
	var blocks []block
	for i := range content {
		part := &content[i]
		cited := part.Cited && m.maker == byAnthropic
		if part.Cited && !cited {
			if err := p.DropCitations(part); err != nil {
				return nil, err
			}
		}
		switch part.Type {
		case translate.PartImage, translate.PartFile, translate.PartAudio:
			b, err := r.media(p, m, part, cited)
			if err != nil {
				return nil, err
			}
			blocks = append(blocks, b)
		default:
			if strings.TrimSpace(part.Text) == "" {
				continue
			}
			if cited {
				blocks = append(blocks, block{Document: r.citedText(part)})
				break
			}
			blocks = append(blocks, block{Text: part.Text})
		}
		if part.CacheBreakpoint && m.caches() {
			blocks = append(blocks, block{CachePoint: cacheOf(p, m, part.CachesLonger)})
		}
	}
	return blocks, nil
}

// cacheOf lasts five minutes, or an hour where the client asks for longer, everywhere or at a part, and
// the model can.
func cacheOf(p *translate.Request, m *model, longer bool) *cachePoint {
	c := &cachePoint{Type: "default"}
	if (longer || p.CachesLonger()) && m.maker == byAnthropic {
		c.TTL = "1h"
	}
	return c
}
