package chat

import (
	"encoding/json"

	"github.com/tidwall/gjson"
)

// urlCitation is the annotation of a text with its source in the web.
type urlCitation struct {
	Type       string `json:"type"`
	StartIndex int64  `json:"start_index"`
	EndIndex   int64  `json:"end_index"`
	URL        string `json:"url"`
	Title      string `json:"title"`
}

// annotate reads an annotation. Of those that are no web page there is nothing
// the Responses API could say.
func (d *decoder) annotate(v gjson.Result) {
	if c := v.Get("url_citation"); c.Get("url").Str != "" {
		d.addCitation(urlCitation{
			StartIndex: c.Get("start_index").Int(),
			EndIndex:   c.Get("end_index").Int(),
			URL:        c.Get("url").Str,
			Title:      c.Get("title").Str,
		})
	}
}

// cite annotates the text with the sources that Perplexity and xAI tell beside
// it, of the text as a whole.
func (d *decoder) cite() {
	if d.cited || d.sources == "" {
		return
	}
	for _, v := range gjson.Parse(d.sources).Array() {
		c := urlCitation{EndIndex: int64(d.runes), URL: v.Get("url").Str, Title: v.Get("title").Str}
		if v.Type == gjson.String {
			c.URL = v.Str
		}
		if c.URL != "" {
			d.addCitation(c)
		}
	}
}

func (d *decoder) addCitation(c urlCitation) {
	c.Type = "url_citation"
	if c.Title == "" {
		c.Title = c.URL // clients demand one
	}
	raw, _ := json.Marshal(c) // strings and numbers
	d.a.Annotation(textKey, raw)
	d.cited = true
}

// logprobs reads those of the text that comes with them, in the same form that
// the Responses API has.
func (d *decoder) logprobs(v gjson.Result) {
	if list := v.Get("content"); len(list.Raw) > len("[]") {
		d.a.Logprobs(textKey, json.RawMessage(list.Raw))
	}
}
