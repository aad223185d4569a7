package chat

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/translate"
)

// annotate reads an annotation. Of those that are no web page there is nothing
// the Responses API could say.
func (d *decoder) annotate(v gjson.Result) {
	c := v.Get("url_citation")
	d.cite(translate.Citation{
		Start: c.Get("start_index").Int(), End: c.Get("end_index").Int(), URL: c.Get("url").Str, Title: c.Get("title").Str,
	})
}

// citeSources annotates the text with the sources that Perplexity and xAI list for
// the text as a whole.
func (d *decoder) citeSources() {
	if d.cited || d.sources == "" {
		return
	}
	for _, v := range gjson.Parse(d.sources).Array() {
		c := translate.Citation{End: int64(d.runes), URL: v.Get("url").Str, Title: v.Get("title").Str}
		if v.Type == gjson.String {
			c.URL = v.Str
		}
		d.cite(c)
	}
}

func (d *decoder) cite(c translate.Citation) {
	d.a.Cite(textKey, c)
	d.cited = d.cited || c.URL != ""
}

// logprobs reads those of the text that comes with them, in the same form that
// the Responses API has.
func (d *decoder) logprobs(v gjson.Result) {
	if list := v.Get("content"); len(list.Raw) > len("[]") {
		d.a.Logprobs(textKey, json.RawMessage(list.Raw))
	}
}
