package transcript

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// InputText returns the input text of a request: instructions and the texts of all messages
// in their order, joined by newlines. Results of tools are text, calls of tools and reasoning
// that a client sends back are not.
func (f *Format) InputText(request []byte) string { return texts(f.Input, request) }

// OutputText returns the output text of a stored response: the text parts of all choices in
// their order, joined by newlines, without reasoning and refusals.
func (f *Format) OutputText(response []byte) string { return texts(f.Output, response) }

func texts(paths []string, body []byte) string {
	var found []string
	for _, path := range paths {
		eachPart(gjson.GetBytes(body, path), 0, func(part gjson.Result) {
			part = textOf(part)
			if part.Str != "" {
				found = append(found, part.Str)
			}
		})
	}
	return strings.Join(found, "\n")
}

// textOf returns the text that a part is or has: for audio, the transcript.
func textOf(part gjson.Result) gjson.Result {
	if part.Type != gjson.JSON {
		return part
	}
	if text := part.Get("text"); text.Exists() {
		return text
	}
	return part.Get("transcript")
}

// containers are the keys of messages and parts that hold further parts: a tool's
// result has parts of its own.
var containers = map[string]bool{
	"content":          true,
	"parts":            true,
	"output":           true,
	"toolResult":       true, // Converse
	"citationsContent": true, // Converse
	"functionResponse": true, // Gemini
}

// deepestPart is how many containers a part may be nested in. The known dialects
// need six: message, content, tool result, content, part.
const deepestPart = 16

// eachPart calls do with each string and each object among the messages and parts in v, in
// document order, but not with reasoning.
func eachPart(v gjson.Result, depth int, do func(part gjson.Result)) {
	switch {
	case depth > deepestPart:
	case v.Type == gjson.String:
		do(v)
	case v.IsArray():
		v.ForEach(func(_, element gjson.Result) bool {
			eachPart(element, depth+1, do)
			return true
		})
	case v.IsObject() && !isReasoning(v):
		do(v)
		v.ForEach(func(key, value gjson.Result) bool {
			if containers[key.Str] {
				eachPart(value, depth+1, do)
			}
			return true
		})
	}
}

func isReasoning(part gjson.Result) bool {
	switch part.Get("type").Str {
	case "reasoning", "reasoning_text", "thinking":
		return true
	}
	return part.Get("thought").Bool()
}

// Unescaper decodes bodies, and keeps its memory between them.
type Unescaper struct{ decoded []byte }

// SearchText returns body with its JSON escapes decoded, so that people find substrings as
// they write them. Invalid escapes and lone surrogates stay. A body without escapes, or that
// is no JSON, is returned itself; otherwise the text holds until the next call.
func (u *Unescaper) SearchText(body []byte) []byte {
	if !StartsJSON(body) {
		return body
	}
	return u.Unescape(body)
}

// Unescape is SearchText for a piece of JSON.
func (u *Unescaper) Unescape(piece []byte) []byte {
	next := bytes.IndexByte(piece, '\\')
	if next < 0 {
		return piece
	}
	decoded := slices.Grow(u.decoded[:0], len(piece))
	for next >= 0 {
		decoded = append(decoded, piece[:next]...)
		piece = piece[next:]
		if r, n, valid := plugins.Unescape(piece); valid {
			decoded = utf8.AppendRune(decoded, r)
			piece = piece[n:]
		} else {
			decoded = append(decoded, '\\')
			piece = piece[1:]
		}
		next = bytes.IndexByte(piece, '\\')
	}
	u.decoded = append(decoded, piece...)
	return u.decoded
}

// StartsJSON reports whether body, which may be cut, may be JSON with a string in it.
func StartsJSON(body []byte) bool {
	body = bytes.TrimLeft(body, " \t\r\n")
	return len(body) > 0 && (body[0] == '{' || body[0] == '[' || body[0] == '"')
}
