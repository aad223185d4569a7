package chat

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/translate"
)

// annotate reads an annotation. The Responses API has only annotations of web pages.
func (d *decoder) annotate(v gjson.Result) {
	c := v.Get("url_citation")
	d.cite(translate.Citation{
		Start: c.Get("start_index").Int(), End: c.Get("end_index").Int(), URL: c.Get("url").Str, Title: c.Get("title").Str,
	})
}

// citeSources annotates the whole text with the sources that xAI lists.
func (d *decoder) citeSources() {
	if d.cited || d.sources == "" {
		return
	}
	for _, v := range gjson.Parse(d.sources).Array() {
		d.cite(translate.Citation{End: d.a.Length(textKey), URL: v.Str})
	}
}

func (d *decoder) cite(c translate.Citation) {
	d.a.Cite(textKey, c)
	d.cited = d.cited || c.URL != ""
}

// logprobs reads the logprobs of the chunk's text, whose form is that of the Responses API.
func (d *decoder) logprobs(v gjson.Result) {
	if list := v.Get("content"); len(list.Raw) > len("[]") {
		d.a.Logprobs(textKey, json.RawMessage(list.Raw))
	}
}
