package cohere

import (
	"cmp"
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

// cite annotates the text with those sources that have a URL, as the results of
// tools may. Of others there is nothing the Responses API could say.
func (d *decoder) cite(v gjson.Result) {
	if t := v.Get("type").Str; t != "" && t != "TEXT_CONTENT" {
		return // of what the model thought
	}
	for _, source := range v.Get("sources").Array() {
		of := source.Get("document")
		if !of.Exists() {
			of = source.Get("tool_output")
		}
		url := of.Get("url").Str
		if url == "" {
			continue
		}
		annotation, _ := json.Marshal(urlCitation{ // strings and numbers
			Type:       "url_citation",
			StartIndex: v.Get("start").Int(),
			EndIndex:   v.Get("end").Int(),
			URL:        url,
			Title:      cmp.Or(of.Get("title").Str, url),
		})
		d.a.Annotation(textKey, annotation)
	}
}
