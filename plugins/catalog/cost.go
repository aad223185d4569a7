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

// CacheSavings is what the provider's cache saved: what the call would have cost had
// nothing been read from the cache or written to it, less its [Catalog.Cost]. It is
// negative where the writes cost more than the reads saved, and unknown where either
// cost or the use of a cache is, or where the provider says what it charged.
func (c *Catalog) CacheSavings(provider, model string, u plugins.Usage, conditions Conditions) plugins.Cost {
	if !u.CacheRead.Valid && !u.CacheWrite.Valid || u.ReportedCost.Valid {
		return plugins.Cost{}
	}
	with := c.Cost(provider, model, u, conditions)
	u.CacheRead, u.CacheReadAudio, u.CacheWrite, u.CacheWrite1h = plugins.Count{}, plugins.Count{}, plugins.Count{}, plugins.Count{}
	without := c.Cost(provider, model, u, conditions)
	if !with.Valid || !without.Valid {
		return plugins.Cost{}
	}
	return plugins.KnownCost(without.N - with.N)
}

// CacheLoss returns how much less a call would have cost if the provider's cache had served missed
// further tokens, which were written to it or not cached at all. It is unknown where
// [Catalog.CacheSavings] is.
func (c *Catalog) CacheLoss(provider, model string, u plugins.Usage, missed int64, conditions Conditions) plugins.Cost {
	if !u.CacheRead.Valid || u.ReportedCost.Valid {
		return plugins.Cost{}
	}
	paid := c.Cost(provider, model, u, conditions)
	u.CacheRead = plugins.Known(u.CacheRead.N + missed)
	u.CacheWrite.N = max(u.CacheWrite.N-missed, 0)
	u.CacheWrite1h.N = min(u.CacheWrite1h.N, u.CacheWrite.N)
	served := c.Cost(provider, model, u, conditions)
	if !paid.Valid || !served.Valid {
		return plugins.Cost{}
	}
	return plugins.KnownCost(paid.N - served.N)
}

// Charge is a part of what a call cost.
type Charge struct {
	// Item is what is charged, by the name of its rate in JSON.
	Item string `json:"item"`
	// Count is how much there is of it, in tokens, in milliseconds, or in pieces.
	Count int64 `json:"count"`
	// Price is in US dollars for each Per of Count.
	Price plugins.Cost `json:"price"`
	Per   int64        `json:"per"`
	// Cost is rounded by itself: costs may add up to some billionths more or less
	// than the call's.
	Cost plugins.Cost `json:"cost"`
}

// Charges are the parts of the [Catalog.Cost] of a call, and their sum; none where it
// is not known, or the provider's.
func (c *Catalog) Charges(provider, model string, u plugins.Usage, conditions Conditions) ([]Charge, plugins.Cost) {
	m, ok := c.Lookup(provider, model)
	b := bill{itemized: true}
	if !ok || u.ReportedCost.Valid || !m.charge(&b, u, conditions) || !b.total().Valid {
		return nil, plugins.Cost{}
	}
	return b.charges, b.total()
}

// Cost is the cost of a call of this model, by the rules of [Catalog.Cost].
func (m *Model) Cost(u plugins.Usage, conditions Conditions) plugins.Cost {
	if u.ReportedCost.Valid {
		return u.ReportedCost
	}
	var b bill
	if !m.charge(&b, u, conditions) {
		return plugins.Cost{}
	}
	return b.total()
}

// charge makes out the bill of a call. It is false if the cost is unknown.
func (m *Model) charge(b *bill, u plugins.Usage, conditions Conditions) bool {
	input, output := u.BilledInput.Or(u.Input), u.BilledOutput.Or(u.Output)
	tokens := input.Valid || output.Valid
	if !tokens && !u.SearchUnits.Valid && !u.Images.Valid && !u.Pages.Valid && !u.AudioDuration.Valid {
		return false
	}
	if min(input.N, output.N, u.CacheRead.N, u.CacheWrite.N, u.CacheWrite1h.N, u.InputAudio.N, u.CacheReadAudio.N,
		u.InputImage.N, u.Reasoning.N, u.OutputAudio.N, u.OutputImage.N) < 0 {
		return false // no sense can be made of it
	}
	p := m.price(u.Input.Or(input).N, conditions)
	if p == nil {
		return false
	}
	pieces := p.chargePieces(b, u)
	switch {
	case !p.Input.Known() && !p.Output.Known() && pieces: // tokens are not what is charged
	case !input.Valid && p.Input.Nano() > 0, !output.Valid && p.Output.Nano() > 0:
		return false
	default:
		p.chargeInput(b, input.N, u)
		p.chargeOutput(b, output.N, u)
	}
	b.piece("web_search", u.WebSearches.N, p.WebSearch)
	if p.Request.Known() {
		b.piece("request", 1, p.Request)
	}
	return true
}

// chargePieces charges what is priced by the piece or by time, and reports whether anything is. A count without
// a rate is charged as tokens or not at all.
func (p *Price) chargePieces(b *bill, u plugins.Usage) (charged bool) {
	if p.AudioHour.Known() {
		charged = true
		b.unknown = b.unknown || !u.AudioDuration.Valid
		b.audio("audio_hour", u.AudioDuration.N, p.AudioHour)
	}
	for _, part := range [...]struct {
		plugins.Count
		item string
		rate Rate
	}{
		{u.SearchUnits, "search_unit", p.SearchUnit},
		{u.Images, "image", p.Image},
		{u.Pages, "page", p.Page},
	} {
		if part.rate.Known() {
			charged = true
			b.unknown = b.unknown || !part.Valid
			b.piece(part.item, part.N, part.rate)
		}
	}
	return charged
}

// chargeInput splits the input into the parts that have their own rate and the
// rest. Cached images are counted in both InputImage and CacheRead, and only some
// providers count cached audio separately: cached tokens are charged as cached.
func (p *Price) chargeInput(b *bill, input int64, u plugins.Usage) {
	read, readAudio := min(u.CacheRead.N, input), int64(0) // some say that more was cached than sent
	if p.CacheReadAudio.stated() {
		readAudio = min(u.CacheReadAudio.N, read)
	}
	if !p.CacheRead.stated() {
		read = readAudio
	}
	write, write1h := max(u.CacheWrite.N, u.CacheWrite1h.N), u.CacheWrite1h.N
	if !p.CacheWrite.stated() && !p.CacheWrite1h.stated() {
		write, write1h = 0, 0
	}
	uncached := max(input-read-write, 0)
	var audio, image int64
	if p.InputAudio.stated() {
		audio = min(max(u.InputAudio.N-min(u.CacheReadAudio.N, read), 0), uncached)
	}
	if p.InputImage.stated() {
		image = min(u.InputImage.N, uncached-audio)
	}
	b.tokens("cache_read_audio", readAudio, p.CacheReadAudio)
	b.tokens("cache_read", read-readAudio, p.CacheRead)
	b.tokens("cache_write", write-write1h, p.CacheWrite)
	b.tokens("cache_write_1h", write1h, p.CacheWrite1h)
	b.tokens("input_audio", audio, p.InputAudio)
	b.tokens("input_image", image, p.InputImage)
	b.tokens("input", uncached-audio-image, p.Input)
}

func (p *Price) chargeOutput(b *bill, output int64, u plugins.Usage) {
	for _, part := range [...]struct {
		item string
		n    int64
		rate Rate
	}{
		{"output_audio", u.OutputAudio.N, p.OutputAudio},
		{"output_image", u.OutputImage.N, p.OutputImage},
		{"reasoning", u.Reasoning.N, p.Reasoning},
	} {
		if part.rate.stated() {
			n := min(part.n, output)
			b.tokens(part.item, n, part.rate)
			output -= n
		}
	}
	b.tokens("output", output, p.Output)
}
