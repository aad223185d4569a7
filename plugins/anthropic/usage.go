package anthropic

import (
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// usage are the counts as the provider reports them: cumulative, some in
// message_start and some in message_delta, the last word counts. Input does not
// include what was read from or written to the cache.
type usage struct {
	input, cacheRead, cacheWrite, cacheWrite5m, cacheWrite1h plugins.Count
	output, thinking                                         plugins.Count
	webSearches                                              plugins.Count
}

// count reads a report.
func (d *decoder) count(v gjson.Result) {
	if !v.IsObject() {
		return
	}
	u := &d.usage
	for _, c := range []struct {
		path  string
		count *plugins.Count
	}{
		{"input_tokens", &u.input},
		{"cache_read_input_tokens", &u.cacheRead},
		{"cache_creation_input_tokens", &u.cacheWrite},
		{"cache_creation.ephemeral_5m_input_tokens", &u.cacheWrite5m},
		{"cache_creation.ephemeral_1h_input_tokens", &u.cacheWrite1h},
		{"output_tokens", &u.output},
		{"output_tokens_details.thinking_tokens", &u.thinking},
		{"server_tool_use.web_search_requests", &u.webSearches},
	} {
		if n := v.Get(c.path); n.Type == gjson.Number && n.Num >= 0 {
			*c.count = plugins.Known(n.Int())
		}
	}
	cacheWrite := u.cacheWrite.Or(u.cacheWrite5m.Plus(u.cacheWrite1h))
	input := u.input
	if input.Valid {
		input = input.Plus(u.cacheRead).Plus(cacheWrite)
	}
	d.a.Usage(plugins.Usage{
		Input:        input,
		CacheRead:    u.cacheRead,
		CacheWrite:   cacheWrite,
		CacheWrite1h: u.cacheWrite1h,
		Output:       u.output,
		Reasoning:    u.thinking,
		WebSearches:  u.webSearches,
	})
	switch tier := v.Get("service_tier").Str; {
	case v.Get("speed").Str == "fast":
		d.a.ServiceTier("fast")
	case tier == "standard":
		d.a.ServiceTier("default") // as OpenAI names it
	case tier != "":
		d.a.ServiceTier(tier)
	}
}
