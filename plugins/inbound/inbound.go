// Package inbound has the APIs in which clients may call any model, beside the
// Responses API: Chat Completions and Anthropic's Messages.
//
// A request is written as the body of POST /v1/responses that asks for the same
// (chat_request.go, messages_request.go), and translate.ParseRequest reads that: one
// reader decides what is valid, and providers see one request. A response is written
// by an encoder after the Assembler, as a stream (chat_stream.go,
// messages_stream.go) or as an object (chat_object.go, messages_object.go).
package inbound

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// API is how the requests of an API are read, and who writes its responses.
type API struct {
	// Parse reads the body of a request. Errors are *plugins.Error and name the
	// client's field.
	Parse func(body []byte) (*translate.Request, error)
	// Encoder returns the encoder of one response.
	Encoder func(p *translate.Request) translate.Encoder
	// Stream returns the stream that says the same as a response in one piece.
	Stream func(object gjson.Result) []byte
}

// Of returns the API of a dialect. The Encoder of Responses is nil, which is the
// Assembler's own.
func Of(d plugins.Dialect) (api API, ok bool) {
	api, ok = apis[d]
	return api, ok
}

var apis = map[plugins.Dialect]API{
	plugins.Responses: {
		Parse:   translate.ParseRequest,
		Encoder: func(*translate.Request) translate.Encoder { return nil },
		Stream:  streamResponse,
	},
	plugins.Chat:     {Parse: parseChat, Encoder: newChatEncoder, Stream: streamCompletion},
	plugins.Messages: {Parse: parseMessages, Encoder: newMessagesEncoder, Stream: streamMessage},
}

// appendEvent appends an event with its type and other members.
func appendEvent(b []byte, kind, members string) []byte {
	data := `{"type":"` + kind + `",` + members + `}`
	return fmt.Appendf(b, "event: %s\ndata: %s\n\n", kind, compact(data))
}

// compact returns JSON as one line.
func compact(valid string) string {
	var b bytes.Buffer
	_ = json.Compact(&b, []byte(valid)) // which cannot fail
	return b.String()
}

// body is the body of POST /v1/responses that asks for what a client's body asks for.
type body struct {
	fields  []byte // members
	items   []byte // elements of the input
	include []byte // elements
	tools   []byte // elements
	names   translate.Names
	foreign []string

	warnings []string // of what was left out already

	cited map[string]string // titles of the documents that shall be cited, by the client's paths
}

// set adds a field with a value as JSON. from is the name that the client has for the field, "" if there is none.
func (b *body) set(field, value, from string) {
	b.fields = append(b.fields, ',', '"')
	b.fields = append(b.fields, field...)
	b.fields = append(b.fields, '"', ':')
	b.fields = append(b.fields, value...)
	b.name(field, from)
}

func (b *body) name(field, from string) {
	if b.names.Fields == nil {
		b.names.Fields = make(map[string]string)
	}
	if from != "" {
		b.names.Fields[field] = from
	}
}

// item adds an item of the input. open is its JSON without the last brace.
func (b *body) item(path string, first int, open []byte) {
	b.items = append(element(b.items), open...)
	b.items = append(b.items, '}')
	b.name("input", "messages")
	b.names.Items = append(b.names.Items, translate.ItemName{Path: path, First: first})
}

func (b *body) tool(tool []byte) { b.tools = append(element(b.tools), tool...) }

// leaveOut notes the members of an object that Responses has no place for. The client is warned of each.
// known are the members that are read.
func (b *body) leaveOut(path string, object gjson.Result, known ...string) {
	object.ForEach(func(key, v gjson.Result) bool {
		if v.Type != gjson.Null && !slices.Contains(known, key.Str) {
			b.foreign = append(b.foreign, path+"."+key.Str)
		}
		return true
	})
}

func element(list []byte) []byte {
	if len(list) > 0 {
		list = append(list, ',')
	}
	return list
}

// appendList appends a member with a list, unless the list is empty.
func appendList(b []byte, key string, elements []byte) []byte {
	if len(elements) == 0 {
		return b
	}
	b = append(plugins.AppendKey(b, key), '[')
	return append(append(b, elements...), ']')
}

func (b *body) parse() (*translate.Request, error) {
	raw := make([]byte, 0, len(b.fields)+len(b.items)+len(b.include)+len(b.tools)+len(`{"input":[],"include":[],"tools":[]}`))
	raw = append(raw, `{"input":[`...)
	raw = append(raw, b.items...)
	raw = append(raw, ']')
	raw = appendList(appendList(raw, "include", b.include), "tools", b.tools)
	raw = append(raw, b.fields...)
	raw = append(raw, '}')
	p, err := translate.ParseRequest(raw)
	if err != nil {
		return nil, b.names.Error(err)
	}
	for part := range p.Parts {
		path := b.names.Path(part.Param)
		if title, ok := b.cited[path]; ok {
			part.Cited, part.Filename = true, title
			delete(b.cited, path)
		}
	}
	for path := range b.cited { // what a tool put out
		b.foreign = append(b.foreign, path+".citations")
	}
	p.Names, p.Foreign = &b.names, b.foreign
	p.Warnings = append(b.warnings, p.Warnings...)
	return p, nil
}

// showReasoning asks for a summary if the model reasons, because clients show it. There is no warning about a
// summary that the client did not ask for.
func showReasoning(p *translate.Request) {
	if effort := p.Reasoning.Effort; effort != "" && effort != "none" && p.Reasoning.Summary == "" {
		p.Reasoning.Summary = "auto"
		p.Names.Fields["reasoning.summary"] = ""
	}
}

// member appends a member of an object, but not the first one. It appends nothing for null.
func member(b []byte, key string, v gjson.Result) []byte {
	if v.Type == gjson.Null {
		return b
	}
	return append(plugins.AppendKey(b, key), v.Raw...)
}

// openTextPart appends a part of text without its last brace. Responses takes output_text
// from the assistant alone, and input_text from all others
// (https://platform.openai.com/docs/api-reference/responses/create).
func openTextPart(b []byte, role string, v gjson.Result) []byte {
	kind := "input_text"
	if role == "assistant" {
		kind = "output_text"
	}
	b = member(append(append(append(b, `{"type":"`...), kind...), '"'), "text", v.Get("text"))
	if role == "assistant" { // the vendor's types demand them
		b = append(b, `,"annotations":[]`...)
	}
	return b
}

// flat returns an object with a type and the members of nested.
func flat(kind string, nested gjson.Result) []byte {
	b := plugins.AppendString([]byte(`{"type":`), kind)
	if !nested.IsObject() {
		return append(b, '}')
	}
	nested.ForEach(func(key, v gjson.Result) bool {
		if key.Str != "type" {
			b = append(append(append(b, ','), key.Raw...), ':')
			b = append(b, v.Raw...)
		}
		return true
	})
	return append(b, '}')
}

func unsupported(param, message string) error {
	return plugins.Unsupported(param, "Unsupported parameter: '%s': %s", param, message)
}

func rawString(s string) string { return string(plugins.AppendString(nil, s)) }

// text is the inside of a JSON string, without its quotes.
func text(v gjson.Result) string {
	if v.Type != gjson.String {
		return ""
	}
	return v.Raw[1 : len(v.Raw)-1]
}

func items(a *translate.Assembler) []gjson.Result {
	var all []gjson.Result
	for _, o := range a.Outputs() {
		all = append(all, gjson.ParseBytes(o.JSON))
	}
	return all
}

// endings are the names that an API has for why an answer ended. Strict clients lose the whole answer
// if it has another one.
type endings struct{ limit, context, filter, sequence, call, stop string }

// name returns the name of why an answer ended, and the provider's own name where the API has none:
// then it says that the answer is incomplete, as at a limit.
func (e *endings) name(a *translate.Assembler) (name, native string) {
	switch reason := a.StopReason(); reason {
	case translate.ReasonMaxOutputTokens:
		return e.limit, ""
	case translate.ReasonContextFull:
		return e.context, ""
	case translate.ReasonContentFilter:
		return e.filter, ""
	case translate.ReasonStopSequence:
		return e.sequence, ""
	default:
		if native = reason.Own(); native != "" {
			return e.limit, native
		}
	}
	if slices.ContainsFunc(a.Outputs(), (*translate.Output).IsCall) {
		return e.call, ""
	}
	return e.stop, ""
}

// appendNative appends the provider's own name for why an answer ended, as a member that is not an
// object's first. It appends nothing for "".
func appendNative(b []byte, key, native string) []byte {
	if native == "" {
		return b
	}
	return plugins.AppendString(plugins.AppendKey(b, key), native)
}
