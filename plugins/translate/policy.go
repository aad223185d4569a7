package translate

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// Action is what becomes of a field that a provider has no equivalent for.
type Action uint8

const (
	// Reject refuses the request: the field changes what the answer means.
	Reject Action = iota
	// Warn leaves the field out with a warning: the field is a hint to quality.
	Warn
	// Ignore leaves the field out: it is a hint to accounting, or has no effect.
	Ignore
	// Translate is for a field that the plugin has an equivalent for.
	Translate
)

// Policy says by path what becomes of the fields of a request: top-level fields
// ("truncation"), fields of text, reasoning and stream_options ("text.verbosity"),
// hosted tools by type ("tools.web_search"), content parts by type
// ("input.input_image"), citations of documents ("input.citations") and values of include
// ("include.message.output_text.logprobs"). Fields, hosted tools and values of include
// that are in no Policy are left out with a warning; parts are refused.
type Policy map[string]Action

// DefaultPolicy is for a provider that takes text, functions, a JSON schema, a limit and the
// two sampling parameters. Plugins add what they translate beside.
var DefaultPolicy = Policy{
	"model":             Translate,
	"input":             Translate,
	"input.input_text":  Translate,
	"input.refusal":     Translate,
	"instructions":      Translate,
	"stream":            Translate,
	"tools":             Translate,
	"tool_choice":       Translate,
	"text.format":       Translate,
	"max_output_tokens": Translate,
	"temperature":       Translate,
	"top_p":             Translate,
	"stop":              Translate, // of other APIs; the Assembler ends the text where a provider does not
	"include":           Translate,

	"background":           Reject,
	"conversation":         Reject,
	"moderation":           Reject,
	"previous_response_id": Reject,
	"prompt":               Reject,

	"context_management":  Warn,
	"frequency_penalty":   Warn,
	"parallel_tool_calls": Warn,
	"presence_penalty":    Warn,
	"reasoning.effort":    Warn,
	"reasoning.summary":   Warn,
	"service_tier":        Warn,
	"top_k":               Warn,
	"text.verbosity":      Warn,
	"top_logprobs":        Warn,
	"truncation":          Warn,

	"max_tool_calls":         Ignore, // of hosted tools
	"metadata":               Ignore,
	"prompt_cache_key":       Ignore,
	"prompt_cache_options":   Ignore,
	"prompt_cache_retention": Ignore,
	"safety_identifier":      Ignore,
	"store":                  Ignore,
	"user":                   Ignore,

	"stream_options.include_obfuscation": Ignore,
	"stream_options.include_usage":       Ignore, // of Chat Completions, whose encoder reads it

	"include.message.output_text.logprobs": Warn,
	"include.reasoning.encrypted_content":  Translate,
}

// With is the policy with some entries replaced or added.
func (p Policy) With(other Policy) Policy {
	all := maps.Clone(p)
	maps.Copy(all, other)
	return all
}

// Translating returns the policy of a provider that has equivalents for the fields too.
func (p Policy) Translating(fields ...string) Policy {
	all := p.With(nil)
	for _, field := range fields {
		all[field] = Translate
	}
	return all
}

func (p Policy) action(path string, unlisted Action) Action {
	if a, ok := p[path]; ok {
		return a
	}
	return unlisted
}

var defaults = map[string][]string{
	"background":          {"false"},
	"frequency_penalty":   {"0"},
	"parallel_tool_calls": {"true"},
	"presence_penalty":    {"0"},
	"temperature":         {"1"},
	"top_logprobs":        {"0"},
	"top_p":               {"1"},
	"truncation":          {"disabled"},
	"service_tier":        {"auto", "default"},
	"text.verbosity":      {"medium"},
}

// Apply treats every field of the request as the policy says, in the order of
// the body. The error is an *Error.
func (p *Request) Apply(policy Policy) error {
	if len(p.Turns) == 0 && p.Instructions == "" {
		return EmptyInput()
	}
	if err := p.applyFields(policy, "", gjson.Parse(plugins.View(p.Raw))); err != nil {
		return err
	}
	if err := p.DropForeign(p.Foreign...); err != nil {
		return err
	}
	if err := p.DropTools(func(t *Tool) bool { return policy["tools."+t.Type] != Translate || t.Offline() }); err != nil {
		return err
	}
	for _, value := range p.Include {
		path := "include." + value
		if err := p.Drop(policy.action(path, Warn), path, NotSupported); err != nil {
			return err
		}
	}
	for part := range p.Parts {
		if policy.action("input."+string(part.Type), Reject) == Reject {
			return plugins.Unsupported(part.Param, "The model does not take parts of type '%s'.", part.Type)
		}
		if part.Cited && policy["input.citations"] != Translate {
			if err := p.DropCitations(part); err != nil {
				return err
			}
		}
	}
	return nil
}

// EmptyInput is the error for a request without anything left to send.
func EmptyInput() *plugins.Error {
	return plugins.Invalid("input", "The input is empty: the provider answers at least one message.")
}

// What was done with a field that the provider, or the model, does not take.
const (
	NotSupported = "not supported by the provider, left out"
	ModelRefuses = "not supported by the model, left out"
)

func (p *Request) applyFields(policy Policy, prefix string, fields gjson.Result) error {
	var err error
	fields.ForEach(func(key, v gjson.Result) bool {
		path := prefix + key.Str
		switch {
		case v.Type == gjson.Null || slices.Contains(defaults[path], v.String()):
		case path == "text.format" && v.Get("type").Str == "text": // any text
		case path == "text" || path == "reasoning" || path == "stream_options":
			err = p.applyFields(policy, path+".", v)
		default:
			err = p.Drop(policy.action(path, Warn), path, NotSupported)
		}
		return err == nil
	})
	return err
}

// DropTools leaves out, with a warning, the hosted tools that the provider or the model
// lacks. A search of tools that the client runs stays, as a function. The error is a 400 if the
// request is strict, or if its choice demands one of the tools.
func (p *Request) DropTools(lacks func(hosted *Tool) bool) error {
	var tools []Tool
	for _, t := range p.Tools {
		switch {
		case p.runsSearch(&t):
			tools = append(tools, t.searchFunction())
			if p.ToolChoice.Type == t.Type {
				p.ToolChoice.Type, p.ToolChoice.Name = "function", t.Type
			}
		case !t.Hosted() || !lacks(&t):
			tools = append(tools, t)
		case p.Strict:
			return plugins.Unsupported(t.Param, "There is no tool of type '%s' here.", t.Type)
		default:
			p.Warnings = append(p.Warnings, t.Param+": there is no tool of type '"+t.word()+"' here, left out")
			markLast(tools, t.CacheMark)
		}
	}
	asked := p.Tools
	p.Tools = tools
	if c := p.ToolChoice; c.Type != "" && !slices.ContainsFunc(tools, c.takes) {
		if i := slices.IndexFunc(asked, c.takes); i >= 0 {
			return plugins.Unsupported("tool_choice", "The provider does not run tools of type '%s', and 'tool_choice' demands one.", asked[i].word())
		}
		return plugins.Invalid("tool_choice", "Tool choice '%s' not found in 'tools' parameter.", cmp.Or(c.Name, c.Type))
	}
	return nil
}

// word is the beginning of the type that may stand in a header.
func (t *Tool) word() string {
	end := strings.IndexFunc(t.Type, func(c rune) bool { return !IsAlphanumeric(c) && c != '_' && c != '-' && c != '.' })
	if end < 0 {
		end = len(t.Type)
	}
	return t.Type[:min(end, 64)]
}

// Offline reports whether a search may only read the provider's index. Providers without an
// index read the web.
func (t *Tool) Offline() bool { return string(t.Field("external_web_access")) == "false" }

func (c ToolChoice) takes(t Tool) bool {
	const webSearch = "web_search" // under which all its versions begin
	switch {
	case !t.Hosted():
		return t.Name == c.Name
	case strings.HasPrefix(c.Type, webSearch):
		return strings.HasPrefix(t.Type, webSearch)
	}
	return t.Type == c.Type
}

// Parts ranges over the content of messages and outputs.
func (p *Request) Parts(yield func(*Part) bool) {
	for _, t := range p.Turns {
		for _, item := range t.Items {
			var content []Part
			switch item := item.(type) {
			case *Message:
				content = item.Content
			case *ToolOutput:
				content = item.Content
			}
			for i := range content {
				if !yield(&content[i]) {
					return
				}
			}
		}
	}
}

// Drop handles a field that cannot be honoured. Reject is an error. Warn is the warning
// "<field>: <done>", or an error if the request is strict. A warning unsets the field, so
// that the response reports the value that was used.
func (p *Request) Drop(a Action, field, done string) error {
	if a == Warn && p.Strict {
		a = Reject
	}
	switch a {
	case Reject:
		return plugins.Unsupported(field, "Unsupported parameter: '%s' is %s.", field, strings.TrimSuffix(done, ", left out"))
	case Warn:
		p.Warnings = append(p.Warnings, field+": "+done)
		if field == "text.format" {
			p.Format = Format{}
		}
		p.change(field, "null")
	}
	return nil
}

// DropWithWarning leaves out what is a hint to quality, as [Request.Drop] does.
func (p *Request) DropWithWarning(field, done string) error { return p.Drop(Warn, field, done) }

// DropCitations warns that the answer will not cite a document, which the client asked for.
func (p *Request) DropCitations(part *Part) error {
	return p.DropWithWarning(part.Param, "without citations, which the model does not have")
}

// DropForeign leaves out fields that only clients of another API have.
func (p *Request) DropForeign(fields ...string) error {
	for _, field := range fields {
		if err := p.DropWithWarning(field, NotSupported); err != nil {
			return err
		}
	}
	return nil
}
