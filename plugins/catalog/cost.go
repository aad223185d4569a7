package catalog

import "github.com/weirhq/weir/plugins"

// Cost is what a call cost, rounded half up once to a billionth of a dollar. What
// the provider says it charged (u.ReportedCost) wins over the table. Else the
// counts are priced by what the model costs under the conditions; parts
// of the input and output that the provider did not report are taken as 0. The cost
// is unknown where the model, its price in the service tier, the input, the output or
// whatever else it charges for, or the price of something that was used is unknown.
func (c *Catalog) Cost(provider, model string, u plugins.Usage, conditions Conditions) plugins.Cost {
	if u.ReportedCost.Valid {
		return u.ReportedCost
	}
	m, ok := c.Lookup(provider, model)
	if !ok {
		return plugins.Cost{}
	}
	return m.Cost(u, conditions)
}

// Cost is the cost of a call of this model, by the rules of [Catalog.Cost].
func (m *Model) Cost(u plugins.Usage, conditions Conditions) plugins.Cost {
	if u.ReportedCost.Valid {
		return u.ReportedCost
	}
	input, output := u.BilledInput.Or(u.Input), u.BilledOutput.Or(u.Output)
	tokens := input.Valid || output.Valid
	if !tokens && !u.SearchUnits.Valid && !u.Images.Valid && !u.Pages.Valid && !u.AudioDuration.Valid {
		return plugins.Cost{}
	}
	if min(input.N, output.N, u.CacheRead.N, u.CacheWrite.N, u.CacheWrite1h.N, u.InputAudio.N, u.CacheReadAudio.N,
		u.InputImage.N, u.Reasoning.N, u.OutputAudio.N, u.OutputImage.N) < 0 {
		return plugins.Cost{} // no sense can be made of it
	}
	p := m.price(u.Input.Or(input).N, conditions)
	if p == nil {
		return plugins.Cost{}
	}
	var b bill
	pieces := p.chargePieces(&b, u)
	switch {
	case !p.Input.Known() && !p.Output.Known() && pieces: // tokens are not what is charged
	case !input.Valid && p.Input.Nano() > 0, !output.Valid && p.Output.Nano() > 0:
		return plugins.Cost{}
	default:
		p.chargeInput(&b, input.N, u)
		p.chargeOutput(&b, output.N, u)
	}
	b.piece(u.WebSearches.N, p.WebSearch)
	if p.Request.Known() {
		b.piece(1, p.Request)
	}
	return b.total()
}

// chargePieces charges what is priced by something else than tokens, and reports
// whether anything is. Counts without a rate are charged as tokens or not at all.
func (p *Price) chargePieces(b *bill, u plugins.Usage) (charged bool) {
	if p.AudioHour.Known() {
		charged = true
		b.unknown = b.unknown || !u.AudioDuration.Valid
		b.audio(u.AudioDuration.N, p.AudioHour)
	}
	for _, part := range [...]struct {
		plugins.Count
		rate Rate
	}{
		{u.SearchUnits, p.SearchUnit},
		{u.Images, p.Image},
		{u.Pages, p.Page},
	} {
		if part.rate.Known() {
			charged = true
			b.unknown = b.unknown || !part.Valid
			b.piece(part.N, part.rate)
		}
	}
	return charged
}

// chargeInput splits the input into the parts that have their own rate and the
// rest. Cached images are counted in both InputImage and CacheRead, and only some
// providers count cached audio separately: cached tokens are charged as cached.
func (p *Price) chargeInput(b *bill, input int64, u plugins.Usage) {
	read, readAudio := min(u.CacheRead.N, input), int64(0) // some say that more was cached than sent
	if p.CacheReadAudio.told() {
		readAudio = min(u.CacheReadAudio.N, read)
	}
	if !p.CacheRead.told() {
		read = readAudio
	}
	write, write1h := max(u.CacheWrite.N, u.CacheWrite1h.N), u.CacheWrite1h.N
	if !p.CacheWrite.told() && !p.CacheWrite1h.told() {
		write, write1h = 0, 0
	}
	uncached := max(input-read-write, 0)
	var audio, image int64
	if p.InputAudio.told() {
		audio = min(max(u.InputAudio.N-min(u.CacheReadAudio.N, read), 0), uncached)
	}
	if p.InputImage.told() {
		image = min(u.InputImage.N, uncached-audio)
	}
	b.tokens(readAudio, p.CacheReadAudio)
	b.tokens(read-readAudio, p.CacheRead)
	b.tokens(write-write1h, p.CacheWrite)
	b.tokens(write1h, p.CacheWrite1h)
	b.tokens(audio, p.InputAudio)
	b.tokens(image, p.InputImage)
	b.tokens(uncached-audio-image, p.Input)
}

// chargeOutput splits the output likewise.
func (p *Price) chargeOutput(b *bill, output int64, u plugins.Usage) {
	for _, part := range [...]struct {
		n    int64
		rate Rate
	}{
		{u.OutputAudio.N, p.OutputAudio},
		{u.OutputImage.N, p.OutputImage},
		{u.Reasoning.N, p.Reasoning},
	} {
		if part.rate.told() {
			n := min(part.n, output)
			b.tokens(n, part.rate)
			output -= n
		}
	}
	b.tokens(output, p.Output)
}
