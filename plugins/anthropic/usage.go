package anthropic

// count reads the usage, the tier and the geography in a message or event, which body holds.
// Events are cumulative, and leave out what an earlier one has said. The last event may
// name another model than the first: one that answered after the first had declined.
func (d *decoder) count(body []byte) {
	d.usage.Write(body)
	info := d.usage.Info()
	d.a.Report(info)
	d.a.Start(info.Model, "")
	d.a.InferenceGeo(info.InferenceGeo)
	switch tier := info.ServiceTier; tier {
	case "standard":
		d.a.ServiceTier("default") // as OpenAI names it
	case "":
	default:
		d.a.ServiceTier(tier)
	}
}
