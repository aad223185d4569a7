package bedrock

import (
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// count reads the usage and the tier of an answer, which has one report. Input does
// not include what was read from or written to the cache.
func (d *decoder) count(v gjson.Result) {
	usage := v.Get("usage")
	read := func(path string) plugins.Count {
		n := usage.Get(path)
		if n.Type != gjson.Number || n.Num < 0 {
			return plugins.Count{}
		}
		return plugins.Known(n.Int())
	}
	u := plugins.Usage{
		Input:      read("inputTokens"),
		CacheRead:  read("cacheReadInputTokens"),
		CacheWrite: read("cacheWriteInputTokens"),
		Output:     read("outputTokens"),
	}
	if u.Input.Valid {
		u.Input = u.Input.Plus(u.CacheRead).Plus(u.CacheWrite)
	}
	u.CacheWrite1h = read(`cacheDetails.#(ttl=="1h").inputTokens`)
	d.a.Usage(u)
	if tier := v.Get("serviceTier.type").Str; tier != "" {
		d.a.ServiceTier(tier)
	}
}
