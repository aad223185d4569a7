package gemini

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// report keeps a report of usage. Every piece of a stream may have the counts so far. Some of Vertex AI's
// reports have no count.
func (d *decoder) report(v gjson.Result) {
	if len(d.usage) == 0 || strings.Contains(v.Raw, "totalTokenCount") {
		d.usage = append(d.usage[:0], v.Raw...)
	}
}

// count adds the last report of usage, and the searches, which are billed beside the tokens.
func (d *decoder) count() {
	body := plugins.AppendString([]byte(`{"modelVersion":`), d.a.Model())
	if len(d.grounding) > 0 {
		body = append(body, `,"candidates":[{"groundingMetadata":`...)
		body = append(append(body, d.grounding...), "}]"...)
	}
	if len(d.usage) > 0 {
		body = append(append(body, `,"usageMetadata":`...), d.usage...)
	}
	info := d.a.Observe(plugins.GenerateContent, "gemini", append(body, '}'))
	d.a.ServiceTier(tier(info.ServiceTier))
}

// tiers are OpenAI's names for the tiers of the Gemini API and of Vertex AI.
var tiers = map[string]string{
	"standard":           "default",
	"ON_DEMAND":          "default",
	"ON_DEMAND_FLEX":     "flex",
	"ON_DEMAND_PRIORITY": "priority",
}

func tier(name string) string {
	if tier, ok := tiers[name]; ok {
		return tier
	}
	return name
}
