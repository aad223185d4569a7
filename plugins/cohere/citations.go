package cohere

import (
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/translate"
)

// cite annotates the text with those sources that have a URL, as the results of
// tools may.
func (d *decoder) cite(v gjson.Result) {
	if t := v.Get("type").Str; t != "" && t != "TEXT_CONTENT" {
		return // of what the model thought
	}
	for _, source := range v.Get("sources").Array() {
		of := source.Get("document")
		if !of.Exists() {
			of = source.Get("tool_output")
		}
		d.a.Cite(textKey, translate.Citation{
			Start: v.Get("start").Int(), End: v.Get("end").Int(), URL: of.Get("url").Str, Title: of.Get("title").Str,
		})
	}
}
