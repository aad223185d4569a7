package cut

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/modules/internal/money/bound"
)

// set returns an object with another value in a field.
func set(object, path string, value any) string {
	changed, err := sjson.Set(object, path, value)
	if err != nil { // the object is a provider's: its event passes as it is
		return object
	}
	return changed
}

func appendEvent(b []byte, name, data string) []byte {
	if name != "" {
		b = fmt.Appendf(b, "event: %s\n", name)
	}
	return fmt.Appendf(b, "data: %s\n\n", data)
}

// choices are the answers in a stream that have not ended.
type choices struct {
	chunk string           // the latest with one of them
	open  map[int64]string // by their index, as the end has them
}

func (c *choices) size() int { return len(c.open) * choiceSize }

// begin opens a choice.
func (c *choices) begin(index int64, end string) {
	if c.open == nil {
		c.open = make(map[int64]string)
	}
	c.open[index] = end
}

// ends returns the ends of the open choices, by their index.
func (c *choices) ends() (ends []string) {
	for _, index := range slices.Sorted(maps.Keys(c.open)) {
		ends = append(ends, c.open[index])
	}
	return ends
}

// chat ends streams of Chat Completions and of Completions.
type chat struct{ choices }

func (*chat) read(e gjson.Result) int64 { return bound.TextLength(e.Get("choices")) }

func (c *chat) keep(e gjson.Result) {
	choices := e.Get("choices").Array()
	if len(choices) > 0 {
		c.chunk = strings.Clone(e.Raw)
	}
	for _, choice := range choices {
		c.begin(choice, "{}")
		if choice.Get("finish_reason").Str != "" {
			delete(c.open, choice.Get("index").Int())
		}
	}
}

// begin opens a choice, with what its last chunk adds.
func (c *chat) begin(choice gjson.Result, delta string) {
	what, index := `"delta":`+delta, choice.Get("index").Int()
	if choice.Get("text").Exists() {
		what = `"text":""`
	}
	c.choices.begin(index, fmt.Sprintf(`{"index":%d,%s,"logprobs":null,"finish_reason":"length"}`, index, what))
}

func (c *chat) end(b []byte, unsent gjson.Result) []byte {
	for _, choice := range unsent.Get("choices").Array() {
		if c.open[choice.Get("index").Int()] == "" { // it is the first of its choice
			c.begin(choice, `{"role":"assistant","content":""}`)
		}
	}
	if c.chunk == "" {
		c.chunk = unsent.Raw
	}
	without := set(c.chunk, "choices", []any{})
	for _, choice := range c.ends() {
		if chunk, err := sjson.SetRaw(without, "choices", "["+choice+"]"); err == nil {
			b = appendEvent(b, "", chunk)
		}
	}
	return append(b, "data: [DONE]\n\n"...)
}

// messages ends streams of Anthropic's Messages.
type messages struct {
	usage   string        // as it was stated first
	written int64         // bytes that the client has
	open    *gjson.Result // index of the block that is open
}

func (*messages) read(e gjson.Result) int64 {
	return bound.TextLength(e.Get("delta")) + bound.TextLength(e.Get("content_block"))
}

func (m *messages) keep(e gjson.Result) {
	m.written += m.read(e)
	switch e.Get("type").Str {
	case "message_start":
		m.usage = strings.Clone(e.Get("message.usage").Raw)
	case "content_block_start":
		index := e.Get("index")
		m.open = &index
	case "content_block_stop":
		m.open = nil
	}
}

func (m *messages) size() int { return len(m.usage) }

func (m *messages) end(b []byte, _ gjson.Result) []byte {
	if m.open != nil {
		b = appendEvent(b, "content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, m.open.Int()))
	}
	usage := m.usage
	if usage == "" {
		usage = "{}"
	}
	usage = set(usage, "output_tokens", bound.Likely.Text(m.written)) // which clients rely on
	b = appendEvent(b, "message_delta", `{"type":"message_delta","delta":{"stop_reason":"max_tokens","stop_sequence":null},"usage":`+usage+`}`)
	return appendEvent(b, "message_stop", `{"type":"message_stop"}`)
}

// gemini ends streams of Gemini's generateContent.
type gemini struct{ choices }

func (*gemini) read(e gjson.Result) (written int64) {
	for _, candidate := range e.Get("candidates").Array() {
		for _, part := range candidate.Get("content.parts").Array() {
			written += int64(len(part.Raw)) // calls have arguments of any name
		}
	}
	return written
}

func (g *gemini) keep(e gjson.Result) {
	candidates := e.Get("candidates").Array()
	if len(candidates) > 0 {
		g.chunk = strings.Clone(e.Raw)
	}
	for _, candidate := range candidates {
		g.begin(candidate)
		if candidate.Get("finishReason").Str != "" {
			delete(g.open, candidate.Get("index").Int())
		}
	}
}

func (g *gemini) begin(candidate gjson.Result) {
	index := candidate.Get("index").Int()
	g.choices.begin(index, fmt.Sprintf(`{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"MAX_TOKENS","index":%d}`, index))
}

func (g *gemini) end(b []byte, unsent gjson.Result) []byte {
	if g.chunk == "" {
		g.chunk = unsent.Raw
		for _, candidate := range unsent.Get("candidates").Array() {
			g.begin(candidate)
		}
	}
	chunk, err := sjson.SetRaw(g.chunk, "candidates", "["+strings.Join(g.ends(), ",")+"]")
	if err != nil {
		return b
	}
	return appendEvent(b, "", chunk)
}
