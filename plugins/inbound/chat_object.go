package inbound

import (
	"cmp"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

type chatMessage struct {
	content, refusal, reasoning  []byte // the insides of strings
	hasContent                   bool   // there is content
	annotations, logprobs, calls []byte // elements
	images                       []byte
}

// Object implements translate.Encoder.
func (*chatEncoder) Object(a *translate.Assembler) json.RawMessage {
	if e := a.Failure(); e != nil {
		return append(e.AppendObject([]byte(`{"error":`)), '}')
	}
	var m chatMessage
	for _, item := range items(a) {
		m.add(item)
	}
	b := append(chatHead(a, "chat.completion"), `,"choices":[{"index":0,"message":{"role":"assistant","content":`...)
	b = appendText(b, m.content, m.hasContent)
	b = appendText(append(b, `,"refusal":`...), m.refusal, len(m.refusal) > 0)
	b = append(append(append(b, `,"annotations":[`...), m.annotations...), ']')
	if len(m.reasoning) > 0 {
		b = appendText(append(b, `,"reasoning_content":`...), m.reasoning, true)
	}
	b = appendList(appendChatCalls(b, m.calls), "images", m.images)
	b = appendChatLogprobs(append(b, `},"logprobs":`...), m.logprobs)
	return append(appendChatUsage(appendChatFinish(b, a), a), '}')
}

func (m *chatMessage) add(item gjson.Result) {
	switch kind := item.Get("type").Str; kind {
	case "message":
		item.Get("content").ForEach(func(_, part gjson.Result) bool {
			if refusal := part.Get("refusal"); refusal.Exists() {
				m.refusal = append(paragraph(m.refusal), text(refusal)...)
				return true
			}
			if m.hasContent {
				m.content = append(m.content, blankLine...)
			}
			m.hasContent = true
			if annotations := part.Get("annotations").Array(); len(annotations) > 0 {
				before := utf8.RuneCountInString(gjson.Parse(`"` + string(m.content) + `"`).Str)
				length := utf8.RuneCountInString(part.Get("text").Str)
				for _, annotation := range annotations {
					m.annotations = chatCitation(element(m.annotations), []byte(annotation.Raw), before, length)
				}
			}
			m.content = append(m.content, text(part.Get("text"))...)
			if list := part.Get("logprobs").Raw; len(list) > len("[]") {
				m.logprobs = append(element(m.logprobs), list[1:len(list)-1]...)
			}
			return true
		})
	case "reasoning":
		m.reasoning = appendThoughts(m.reasoning, item)
	case "function_call":
		m.calls = appendChatCall(append(element(m.calls), '{'), translate.CallOutput,
			item.Get("call_id").Raw, rawString(translate.FlatName(item)), text(item.Get("arguments")))
	case "custom_tool_call":
		m.calls = appendChatCall(append(element(m.calls), '{'), translate.CustomCallOutput,
			item.Get("call_id").Raw, rawString(translate.FlatName(item)), text(item.Get("input")))
	case imageItem:
		m.images = append(element(m.images), chatImage([]byte(item.Raw))...)
	}
}

// appendThoughts appends the summary of a reasoning, and then its texts.
func appendThoughts(b []byte, item gjson.Result) []byte {
	for _, list := range []string{"summary", "content"} {
		item.Get(list).ForEach(func(_, part gjson.Result) bool {
			b = append(paragraph(b), text(part.Get("text"))...)
			return true
		})
	}
	return b
}

// paragraph appends a blank line after what is there.
func paragraph(b []byte) []byte {
	if len(b) > 0 {
		b = append(b, blankLine...)
	}
	return b
}

// appendText appends a string, or null. inside is the string's JSON without its quotes.
func appendText(b, inside []byte, there bool) []byte {
	if !there {
		return append(b, "null"...)
	}
	b = append(append(b, '"'), inside...)
	return append(b, '"')
}

// chatCitation appends an annotation. Chat Completions has those of web pages alone, and
// clients refuse others: a file has the URL "file:" with its id or else its name. before
// and length are the characters of the content before the text that the annotation is
// about, and of this text.
func chatCitation(b, annotation []byte, before, length int) []byte {
	v := gjson.ParseBytes(annotation)
	url, title := v.Get("url").Str, v.Get("title").Str
	if v.Get("type").Str != "url_citation" {
		title = cmp.Or(v.Get("filename").Str, v.Get("file_id").Str, "file")
		url = "file:" + cmp.Or(v.Get("file_id").Str, title)
	}
	start, end := span(v)
	end = min(max(end, 0), int64(length))
	start = min(max(start, 0), end)
	b = plugins.AppendString(append(b, `{"type":"url_citation","url_citation":{"url":`...), url)
	b = plugins.AppendString(plugins.AppendKey(b, "title"), cmp.Or(title, url))
	b = strconv.AppendInt(plugins.AppendKey(b, "start_index"), int64(before)+start, 10)
	b = strconv.AppendInt(plugins.AppendKey(b, "end_index"), int64(before)+end, 10)
	return append(b, `}}`...)
}

// span is the part of its text that an annotation is about, in characters. That of a
// file may have its place alone.
func span(annotation gjson.Result) (start, end int64) {
	if v := annotation.Get("end_index"); v.Exists() {
		return annotation.Get("start_index").Int(), v.Int()
	}
	place := annotation.Get("index").Int()
	return place, place
}

// hasImage reports whether an item that is complete has an image.
func hasImage(o *translate.Output) bool {
	return o.Kind == translate.ImageOutput || o.Kind == translate.HostedOutput && unplacedImage(gjson.ParseBytes(o.JSON)) != ""
}

// chatImage is a generated image as OpenRouter's clients get it.
func chatImage(item []byte) []byte {
	v := gjson.ParseBytes(item)
	b := append([]byte(`{"type":"image_url","image_url":{"url":"data:image/`), text(v.Get("output_format"))...)
	b = append(append(b, `;base64,`...), text(v.Get("result"))...)
	return append(b, `"}}`...)
}

func appendChatLogprobs(b, elements []byte) []byte {
	if len(elements) == 0 {
		return append(b, "null"...)
	}
	b = append(append(b, `{"content":[`...), elements...)
	return append(b, `],"refusal":null}`...)
}

func appendChatUsage(b []byte, a *translate.Assembler) []byte {
	b = append(b, `,"usage":`...)
	t, known := a.Tokens()
	if !known {
		return append(b, "null"...)
	}
	return append(translate.AppendCounts(b,
		translate.Labelled{Label: `{"prompt_tokens":`, N: t.Input},
		translate.Labelled{Label: `,"completion_tokens":`, N: t.Output},
		translate.Labelled{Label: `,"total_tokens":`, N: t.Input + t.Output},
		translate.Labelled{Label: `,"prompt_tokens_details":{"cached_tokens":`, N: t.CacheRead},
		translate.Labelled{Label: `,"cache_write_tokens":`, N: t.CacheWrite},
		translate.Labelled{Label: `},"completion_tokens_details":{"reasoning_tokens":`, N: t.Reasoning},
	), `}}`...)
}
