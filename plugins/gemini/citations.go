package gemini

import (
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/translate"
)

// cite annotates the open message. The provider counts bytes from the beginning of a part. A citation is
// taken only if its text is at its place in the message.
func (d *decoder) cite() {
	v := gjson.ParseBytes(d.grounding)
	chunks := v.Get("groundingChunks").Array()
	v.Get("groundingSupports").ForEach(func(_, support gjson.Result) bool {
		segment := support.Get("segment")
		start, end := segment.Get("startIndex").Int(), segment.Get("endIndex").Int()
		if start < 0 || start >= end || end > int64(len(d.text)) || string(d.text[start:end]) != segment.Get("text").Str {
			return true
		}
		from := utf8.RuneCount(d.text[:start])
		to := from + utf8.RuneCount(d.text[start:end])
		support.Get("groundingChunkIndices").ForEach(func(_, index gjson.Result) bool {
			if i := index.Int(); i >= 0 && i < int64(len(chunks)) {
				web := chunks[i].Get("web")
				d.a.Cite(textKey, translate.Citation{
					Start: int64(from), End: int64(to), URL: web.Get("uri").Str, Title: web.Get("title").Str,
				})
			}
			return true
		})
		return true
	})
}

// search adds all searches to the response as one item: the provider does not
// report which search led to which source.
func (d *decoder) search() {
	v := gjson.ParseBytes(d.grounding)
	var call translate.HostedCall
	queries := d.queries
	if found := v.Get("webSearchQueries").Array(); len(found) > 0 {
		queries = stringsOf(found)
	}
	for _, query := range queries {
		if query != "" {
			call.Queries = append(call.Queries, query)
		}
	}
	if len(call.Queries) == 0 {
		return
	}
	call.Sources = stringsOf(v.Get("groundingChunks.#.web.uri").Array())
	d.a.WebSearch(call)
}

func stringsOf(values []gjson.Result) []string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = v.Str
	}
	return all
}
