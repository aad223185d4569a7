package llmquery

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/transcript"
	"github.com/weirhq/weir/storage"
)

// preview is what was said in a call, short enough for a line of a list.
type preview struct {
	// Asked is the beginning of what the user said after the model's last answer. It is "" if the
	// request adds only results of tools.
	Asked string `json:"asked"`
	// Results counts the results of tools that the request adds. FailedResults counts the results
	// that report an error.
	Results       int `json:"results"`
	FailedResults int `json:"failed_results"`
	// Answered is the beginning of the model's answer.
	Answered string     `json:"answered"`
	Calls    []toolUses `json:"calls"`
	// Match is the text around the first place that the filter looks for, nil if the
	// filter looks for nothing in the bodies.
	Match *string `json:"match"`
}

// toolUses counts the calls of one tool in an answer.
type toolUses struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

func newPreview(r *storage.Record, content *storage.Content, f storage.Filter) preview {
	format := observe.Transcript(r.Dialect)
	p := preview{Calls: []toolUses{}, Match: matchOf(f, content)}
	turns := format.Request(content.Request.Data)
	for _, turn := range slices.Backward(turns) {
		if turn.Role == "assistant" || turn.Role == "model" {
			break
		}
		p.Results += turn.Results
		p.FailedResults += turn.FailedResults
		if turn.Results == 0 && p.Asked == "" && turn.Role != "system" && turn.Role != "developer" {
			p.Asked = firstWords(joinTexts(turn.Texts))
		}
	}
	for _, turn := range format.Response(content.Response.Data) {
		if p.Answered == "" && len(turn.Texts) > 0 {
			p.Answered = firstWords(turn.Texts[0])
		}
		for _, call := range turn.Calls {
			i := slices.IndexFunc(p.Calls, func(u toolUses) bool { return u.Name == call.Name })
			if i < 0 {
				i, p.Calls = len(p.Calls), append(p.Calls, toolUses{Name: call.Name})
			}
			p.Calls[i].Count++
		}
	}
	return p
}

// joinTexts returns the last text of a message that the user wrote. Coding agents put reminders in
// tags beside the user's text.
func joinTexts(texts []string) string {
	for _, text := range slices.Backward(texts) {
		if !strings.HasPrefix(text, "<") {
			return text
		}
	}
	return strings.Join(texts, " ")
}

// maxPreview bounds the text of a line, in bytes.
const maxPreview = 160

// firstWords is the beginning of a text in one line.
func firstWords(text string) string {
	length := len(text)
	text = strings.ToValidUTF8(text[:min(length, 2*maxPreview)], "")
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= maxPreview && length <= 2*maxPreview {
		return text
	}
	return strings.ToValidUTF8(text[:min(len(text), maxPreview)], "") + "…"
}

// matchOf is the text around the first place in the bodies that contains what a leaf of
// the filter looks for.
func matchOf(f storage.Filter, content *storage.Content) *string {
	var unescaper transcript.Unescaper
	for l := range storage.Leaves(f) {
		if l.Op != storage.Contains || l.Field.Content == 0 {
			continue
		}
		wanted := regexp.MustCompile("(?i)" + regexp.QuoteMeta(l.Text))
		for _, body := range [][]byte{content.Request.Data, content.Response.Data} {
			text := unescaper.SearchText(body)
			if at := wanted.FindIndex(text); at != nil {
				return new(around(text, at[0], at[1]))
			}
		}
	}
	return nil
}

// around returns a part of a text, from begin to end, with a little of the text before it and
// more of the text after it, so that a narrow column shows the part. Of JSON, it returns no more
// than the string that has the part.
func around(text []byte, begin, end int) string {
	from, to := max(0, begin-maxPreview/5), min(len(text), end+maxPreview)
	for from > 0 && !utf8.RuneStart(text[from]) {
		from++
	}
	before, after := text[from:begin], text[end:to]
	cutBefore, cutAfter := from > 0, to < len(text)
	if i := bytes.LastIndex(before, []byte(`":"`)); i >= 0 {
		before, cutBefore = before[i+3:], false
	}
	if i := stringEnd.FindIndex(after); i != nil {
		after, cutAfter = after[:i[0]], false
	}
	part := strings.Join(strings.Fields(strings.ToValidUTF8(string(before)+string(text[begin:end])+string(after), "")), " ")
	if cutBefore {
		part = "…" + part
	}
	if cutAfter {
		part += "…"
	}
	return part
}

// stringEnd is the end of a string in JSON.
var stringEnd = regexp.MustCompile(`"(\}|\]|,")`)
