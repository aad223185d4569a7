package anthropic

// count reads the usage, the tier and the geography in a message or event, which body holds.
// Events are cumulative, and leave out what an earlier one has said.
func (d *decoder) count(body []byte) {
	d.usage.Write(body)
	info := d.usage.Info()
	d.a.Usage(info.Usage)
	d.a.InferenceGeo(info.InferenceGeo)
	switch tier := info.ServiceTier; tier {
	case "standard":
		d.a.ServiceTier("default") // as OpenAI names it
	case "":
	default:
		d.a.ServiceTier(tier)
	}
}
