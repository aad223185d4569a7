package observe

import (
	"slices"
	"strings"

	"github.com/weirhq/weir/plugins"
)

// beside gathers what a provider bills beside the tokens of the model that answers.
type beside struct {
	parts    []part
	searches int64  // by the items of the response
	searched bool   // the items tell searches
	pictures bool   // the items tell pictures
	unstated bool   // something else was billed, and its quantity is not stated
	painter  string // the model that makes pictures, "" if unknown
}

// part is one report of usage beside that of the response.
type part struct {
	kind   string // Anthropic's type of iteration, or pictures
	model  string // "" if the report names none
	report report
}

// pictures is the kind of the part that pictures in a response of OpenAI have used.
const pictures = "pictures"

// maxParts bounds the memory of one answer. Further parts count as unstated.
const maxParts = 64

// billed takes a value that tells what is billed.
func (x *observer) billed(f Field, v value) {
	b := &x.beside
	x.changed = true
	switch f {
	case Items:
		b.searches = 0
	case Item:
		x.outputType(v)
		b.item(string(v.bytes))
	case ItemAction:
		switch string(v.bytes) {
		case "open_page", "find_in_page", "find":
			b.searches--
		}
	case SearchQuery:
		b.searched = true
		b.searches++
	case Unstated:
		b.unstated = true
	case PictureModel:
		set(&b.painter, v)
	case Parts:
		b.parts = b.parts[:0]
		if v.kind == object {
			b.parts = append(b.parts, part{kind: pictures})
		}
	case Part:
		if len(b.parts) == maxParts {
			b.unstated, b.parts = true, b.parts[:maxParts-1]
		}
		b.parts = append(b.parts, part{})
	}
}

// item counts an output item by its type, or at Bedrock the call of a tool by its name. OpenAI and Amazon
// bill the items of their own tools by the piece: https://openai.com/api/pricing#tools,
// https://docs.aws.amazon.com/nova/latest/nova2-userguide/web-grounding.html
func (b *beside) item(kind string) {
	switch kind {
	case "web_search_call", "nova_grounding":
		b.searched = true
		b.searches++
	case "image_generation_call":
		b.pictures = true
	case "file_search_call", "code_interpreter_call", "nova_code_interpreter":
		b.unstated = true
	}
}

// part takes a value of the part under way.
func (x *observer) part(f Field, v value) {
	if len(x.beside.parts) == 0 {
		return
	}
	p := &x.beside.parts[len(x.beside.parts)-1]
	x.changed = true
	switch f {
	case EventType:
		set(&p.kind, v)
	case Model:
		set(&p.model, v)
	default:
		if n, ok := f.count(v); ok {
			p.report.set(f, n)
		}
	}
}

// bill completes the usage by what items tell, and lists what is billed beside it.
//
// Anthropic's usage of a message leaves out a compaction, which the model of the message
// makes, an advisor, and a model that declined after it had begun to answer. A model that
// declined at once is not charged.
// https://platform.claude.com/docs/en/build-with-claude/compaction
// https://platform.claude.com/docs/en/agents-and-tools/tool-use/advisor-tool
// https://platform.claude.com/docs/en/build-with-claude/refusals-and-fallback
func (x *observer) bill() {
	b, u := &x.beside, &x.seen.Usage
	if b.searched && !u.WebSearches.Valid {
		u.WebSearches = plugins.Known(x.chargedSearches(max(b.searches, 0)))
	}
	x.seen.Beside = nil
	if i := slices.IndexFunc(b.parts, func(p part) bool { return p.kind == "fallback_message" && p.model != "" }); i >= 0 {
		x.seen.Model = b.parts[i].model
	}
	unstated, painted := b.unstated, !b.pictures
	for i := range b.parts {
		p := &b.parts[i]
		u := p.report.usage()
		switch p.kind {
		case "message", "fallback_message": // counted in the usage above, unless another model declined
			if p.model != "" && p.model != x.seen.Model && u.Output.N > 0 {
				x.bills(p.model, u)
			}
		case "compaction", "advisor_message":
			x.bills(p.model, u)
		case pictures:
			if u.Input.N == 0 && u.Output.N == 0 {
				break
			}
			if painted = b.painter != ""; painted {
				u.OutputImage = u.OutputImage.Or(u.Output)
				x.bills(b.painter, u)
			}
		default:
			unstated = true
		}
	}
	searches := func(name string) bool { return strings.Contains(x.seen.Model, name) }
	if !u.WebSearches.Valid && slices.ContainsFunc(x.dialect.Searchers, searches) {
		unstated = true
	}
	if unstated || !painted {
		x.bills("", plugins.Usage{})
	}
}

// bills adds a part to the list.
func (x *observer) bills(model string, u plugins.Usage) {
	x.seen.Beside = &plugins.Billed{Model: model, Usage: u, Next: x.seen.Beside}
}

// chargedSearches returns how many of n searches are charged. Gemini 2 charges a call that
// searches, later models each search: https://ai.google.dev/gemini-api/docs/pricing
func (x *observer) chargedSearches(n int64) int64 {
	if strings.Contains(x.seen.Model, "gemini-2") {
		return min(n, 1)
	}
	return n
}
