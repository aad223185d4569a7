package inbound

import (
	"slices"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

type citedText struct {
	from, to  int    // in characters
	citations []byte // elements
}

// appendCited appends a text as blocks. Anthropic's citations have no indices: they are
// about the block that they are in. So the text is cut where annotations begin and end;
// one that ends where an earlier one does is in the same block.
func appendCited(b []byte, text string, annotations []gjson.Result) []byte {
	characters := []rune(text)
	bounds := func(annotation gjson.Result) (start, end int) {
		first, last := span(annotation)
		if last <= 0 || last > int64(len(characters)) { // it is about the whole text
			last = int64(len(characters))
		}
		return int(min(max(first, 0), last)), int(last)
	}
	slices.SortStableFunc(annotations, func(x, y gjson.Result) int {
		_, first := bounds(x)
		_, second := bounds(y)
		return first - second
	})
	blocks := make([]citedText, 1, 2*len(annotations)+2)
	last := func() *citedText { return &blocks[len(blocks)-1] }
	extend := func(to int) {
		if to > last().to {
			blocks = append(blocks, citedText{from: last().to, to: to})
		}
	}
	for _, annotation := range annotations {
		start, end := bounds(annotation)
		extend(start)
		extend(end)
		last().citations = appendCitation(element(last().citations), annotation)
	}
	extend(len(characters))
	for _, block := range blocks {
		if block.to == 0 && block.citations == nil {
			continue
		}
		b = plugins.AppendString(append(element(b), `{"type":"text","text":`...), string(characters[block.from:block.to]))
		if block.citations != nil {
			b = append(append(append(b, `,"citations":[`...), block.citations...), ']')
		}
		b = append(b, '}')
	}
	return b
}

// appendCitation appends an annotation of the Responses API as a citation of Anthropic's
// Messages. What the source says is not known but of documents.
func appendCitation(b []byte, annotation gjson.Result) []byte {
	if location := annotation.Get("location"); location.IsObject() {
		return append(b, location.Raw...)
	}
	if annotation.Get("type").Str == "url_citation" {
		b = append(b, `{"type":"web_search_result_location","cited_text":"","encrypted_index":"","url":`...)
		b = plugins.AppendString(b, annotation.Get("url").Str)
		b = plugins.AppendString(plugins.AppendKey(b, "title"), annotation.Get("title").Str)
		return append(b, '}')
	}
	b = append(b, `{"type":"search_result_location","cited_text":"","search_result_index":0,"start_block_index":0,"end_block_index":0,"source":`...)
	b = plugins.AppendString(b, annotation.Get("file_id").Str)
	b = plugins.AppendString(plugins.AppendKey(b, "title"), annotation.Get("filename").Str)
	return append(b, '}')
}
