package anthropic

import (
	"github.com/tidwall/gjson"
)

// count reads the usage and the tier in a message or event, which body holds.
// Events are cumulative, and leave out what an earlier one has said.
func (d *decoder) count(body []byte) {
	d.usage.Write(body)
	info := d.usage.Info()
	d.a.Usage(info.Usage)
	switch tier := info.ServiceTier; {
	case gjson.GetBytes(body, "usage.speed").Str == "fast", gjson.GetBytes(body, "message.usage.speed").Str == "fast":
		d.a.ServiceTier("fast")
	case tier == "standard":
		d.a.ServiceTier("default") // as OpenAI names it
	case tier != "":
		d.a.ServiceTier(tier)
	}
}
