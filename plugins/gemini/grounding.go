package gemini

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// urlCitation is the annotation of a text with its source in the web.
type urlCitation struct {
	Type       string `json:"type"`
	StartIndex int    `json:"start_index"`
	EndIndex   int    `json:"end_index"`
	URL        string `json:"url"`
	Title      string `json:"title"`
}

// cite annotates the message that is open. The provider counts bytes, and from
// the beginning of a part: what it says is believed where the text is the one
// that it says it is.
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
				d.citeChunk(chunks[i].Get("web"), from, to)
			}
			return true
		})
		return true
	})
}

func (d *decoder) citeChunk(web gjson.Result, from, to int) {
	url := web.Get("uri").Str
	if url == "" {
		return
	}
	annotation, _ := json.Marshal(urlCitation{"url_citation", from, to, url, web.Get("title").Str}) // strings and numbers
	d.a.Annotation(textKey, annotation)
}

// webSearchCall is the item of a search.
type webSearchCall struct {
	Type   string       `json:"type"`
	Status string       `json:"status"`
	Action searchAction `json:"action"`
}

type searchAction struct {
	Type    string         `json:"type"`
	Query   string         `json:"query"`
	Queries []string       `json:"queries"`
	Sources []searchSource `json:"sources"`
}

type searchSource struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

// tellSearch tells the searches as one item: which of them led to which source
// the provider does not say.
func (d *decoder) tellSearch() {
	v := gjson.ParseBytes(d.grounding)
	action := searchAction{Type: "search", Sources: []searchSource{}}
	if queries := v.Get("webSearchQueries").Array(); len(queries) > 0 {
		d.queries = d.queries[:0]
		for _, query := range queries {
			d.queries = append(d.queries, query.Str)
		}
	}
	for _, query := range d.queries {
		if query != "" {
			action.Queries = append(action.Queries, query)
		}
	}
	if len(action.Queries) == 0 {
		return
	}
	action.Query = action.Queries[0]
	for _, url := range v.Get("groundingChunks.#.web.uri").Array() {
		action.Sources = append(action.Sources, searchSource{"url", url.Str})
	}
	item, _ := json.Marshal(webSearchCall{"web_search_call", "completed", action}) // strings and lists of them
	d.a.Item(item)
}
