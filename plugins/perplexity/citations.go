package perplexity

import (
	"regexp"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/translate"
)

func (d *decoder) search(v gjson.Result) {
	d.searches++
	var call translate.HostedCall
	for _, query := range v.Get("queries").Array() {
		call.Queries = append(call.Queries, query.Str)
	}
	for _, result := range v.Get("results").Array() {
		url := result.Get("url").Str
		if url == "" {
			continue
		}
		call.Sources = append(call.Sources, url)
		if d.numbers == nil {
			d.numbers = make(map[string]int)
		}
		d.numbers[result.Get("id").Raw] = len(d.sources)
		d.sources = append(d.sources, translate.Citation{URL: url, Title: result.Get("title").Str})
	}
	d.a.WebSearch(call)
}

// marker is the number of a source in a text, such as [1].
var marker = regexp.MustCompile(`\[(\d{1,4})\]`)

// cite annotates the open message: with its own annotations, or else with the sources whose numbers are in the
// text, or else with all sources.
func (d *decoder) cite(message gjson.Result) {
	cited := false
	add := func(c translate.Citation) {
		d.a.Cite(textKey, c)
		cited = true
	}
	message.Get("content").ForEach(func(_, part gjson.Result) bool {
		part.Get("annotations").ForEach(func(_, c gjson.Result) bool {
			if url := c.Get("url").Str; url != "" {
				add(translate.Citation{Start: c.Get("start_index").Int(), End: c.Get("end_index").Int(), URL: url, Title: c.Get("title").Str})
			}
			return true
		})
		return true
	})
	if cited || len(d.sources) == 0 {
		return
	}
	for _, at := range marker.FindAllSubmatchIndex(d.text, -1) {
		if i, ok := d.numbers[string(d.text[at[2]:at[3]])]; ok {
			c := d.sources[i]
			c.Start = int64(utf8.RuneCount(d.text[:at[0]]))
			c.End = c.Start + int64(at[1]-at[0])
			add(c)
		}
	}
	if cited {
		return
	}
	for _, c := range d.sources {
		c.End = d.a.Length(textKey)
		add(c)
	}
}
