package bedrock

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/translate"
)

// documentLocations are the parts of a document that a citation may name, as Bedrock and
// as Anthropic's Messages call them
// (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_CitationLocation.html).
var documentLocations = []struct{ key, kind, start, end string }{
	{"documentChar", "char_location", "start_char_index", "end_char_index"},
	{"documentPage", "page_location", "start_page_number", "end_page_number"},
	{"documentChunk", "content_block_location", "start_block_index", "end_block_index"},
}

// cite annotates the text of the block that is open with a web page or a part of a
// document.
func (d *decoder) cite(v gjson.Result) {
	c := translate.Citation{
		Start: d.block.from, End: d.a.Length(textKey), URL: v.Get("location.web.url").Str, Title: v.Get("title").Str,
	}
	for _, l := range documentLocations {
		at := v.Get("location." + l.key)
		if !at.IsObject() {
			continue
		}
		var texts []string
		for _, source := range v.Get("sourceContent").Array() {
			texts = append(texts, source.Get("text").Str)
		}
		c.Location, _ = translate.Encode(map[string]any{ // strings and numbers
			"type": l.kind, "cited_text": strings.Join(texts, ""), "document_index": at.Get("documentIndex").Int(),
			"document_title": v.Get("title").Value(), "file_id": nil, l.start: at.Get("start").Int(), l.end: at.Get("end").Int(),
		})
	}
	d.a.Cite(textKey, c)
}
