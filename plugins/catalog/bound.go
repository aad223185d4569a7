package catalog

import (
	"cmp"
	"slices"
	"time"

	"github.com/weirhq/weir/plugins"
)

// assumedLimit is the limit, in tokens, of a model whose limits are unknown. No model that is sold today writes
// more at once.
const assumedLimit = 1 << 17

// AssumedInput is how many tokens a model reads at most whose limits are unknown.
const AssumedInput = 1 << 20

// InputLimit returns how many tokens the model reads at most in one request.
func (m *Model) InputLimit() int64 {
	limit := m.Context
	if m.MaxInput > 0 {
		limit = m.MaxInput
	}
	for i := range m.Prices { // a price for longer inputs says that there are some
		if above := m.Prices[i].InputAbove; limit > 0 && above >= limit {
			limit = AssumedInput
		}
	}
	if limit == 0 {
		limit = AssumedInput
	}
	return limit
}

// OutputLimit returns how many tokens the model writes at most in one answer.
func (m *Model) OutputLimit() int64 {
	switch {
	case m.MaxOutput > 0:
		return m.MaxOutput
	case m.Context > 0:
		return min(m.Context, assumedLimit)
	}
	return assumedLimit
}

// MaxCost returns the most that a call costs which uses no more than u. The parts of the
// input and output in u are what may be charged at a rate of their own, not what will be:
// each token is charged at the dearest rate that it may have. All that a model writes which
// makes audio or pictures may be such. A provider may serve the standard tier in place of those
// asked for, and process a call in a geography that it was not asked for. A part whose rate is
// unknown is charged at the rate of the whole; a part of the output that has no rate in any tier
// leaves the cost unknown.
//
// In the tier of batches, u may be what several calls use, of which c.Longest is the longest
// input. A provider charges a batch by that tier alone, at any time until the batch
// has expired.
func (m *Model) MaxCost(u plugins.Usage, c Conditions, tiers ...string) (maxCost plugins.Cost) {
	hasAudio, noAudioRate := m.mayWrite("audio", func(p *Price) Rate { return p.OutputAudio })
	hasImages, noImageRate := m.mayWrite("image", func(p *Price) Rate { return p.OutputImage })
	if u.Output.N > 0 && (noAudioRate || noImageRate) {
		return plugins.Cost{}
	}
	if hasAudio {
		u.OutputAudio = u.Output
	}
	if hasImages {
		u.OutputImage = u.Output
	}
	longest, times := cmp.Or(c.Longest, u.Input.N), []time.Time{c.At}
	batched := c.Tier == plugins.BatchTier
	if tiers = append(tiers, c.Tier, ""); batched {
		tiers = []string{c.Tier}
	}
	inputs := []int64{longest}
	for i := range m.Prices { // longer inputs may have lower rates
		if above := m.Prices[i].InputAbove; 0 < above && above < longest {
			inputs = append(inputs, above)
		}
		if from := m.Prices[i].From.Time(); batched && from.After(c.At) && from.Before(c.At.Add(batchTime)) {
			times = append(times, from)
		}
	}
	for _, input := range inputs {
		read := input
		if c.Longest > 0 {
			read = u.Input.N
		}
		for _, tier := range tiers {
			for _, geography := range [...]string{c.Geography, "", "us"} {
				for _, at := range times {
					p := m.price(input, Conditions{At: at, Tier: tier, Geography: geography})
					if p == nil {
						continue
					}
					if cost := p.maxCost(read, u); cost.Valid && (!maxCost.Valid || cost.N > maxCost.N) {
						maxCost = cost
					}
				}
			}
		}
	}
	return maxCost
}

// mayWrite reports whether the model's output may be of a kind, and whether the kind has a rate of its
// own, and an unknown one in all tiers. The prices tell the outputs of a model whose outputs are not known.
func (m *Model) mayWrite(kind string, rateOf func(*Price) Rate) (may, unpriced bool) {
	hasRate, isKnown := false, false
	for i := range m.Prices {
		rate := rateOf(&m.Prices[i])
		hasRate = hasRate || rate.stated()
		isKnown = isKnown || rate.stated() && rate != UnknownRate
	}
	may = slices.Contains(m.Output, kind) || len(m.Output) == 0 && hasRate
	return may, may && hasRate && !isKnown
}

// batchTime is how long a batch runs at most, at the provider that takes the most time
// (https://console.groq.com/docs/batch).
const batchTime = 7 * 24 * time.Hour

func (p *Price) maxCost(input int64, u plugins.Usage) plugins.Cost {
	var b bill
	pieces := p.chargePieces(&b, u)
	if p.Input.Known() || p.Output.Known() || !pieces {
		read := dearest(p.Input, p.CacheRead)
		if u.CacheWrite.N > 0 {
			read = dearest(read, p.CacheWrite)
		}
		if u.CacheWrite1h.N > 0 {
			read = dearest(read, p.CacheWrite1h)
		}
		audio := min(u.InputAudio.N, input)
		image := min(u.InputImage.N, input-audio)
		b.tokens("input_audio", audio, dearest(read, p.InputAudio, p.CacheReadAudio))
		b.tokens("input_image", image, dearest(read, p.InputImage))
		b.tokens("input", input-audio-image, read)
		written := dearest(p.Output, p.Reasoning)
		if u.OutputAudio.N > 0 {
			written = dearest(written, p.OutputAudio)
		}
		if u.OutputImage.N > 0 {
			written = dearest(written, p.OutputImage)
		}
		b.tokens("output", u.Output.N, written)
	}
	switch {
	case p.WebSearch.Known():
		b.piece("web_search", u.WebSearches.N, p.WebSearch)
	case !p.Request.Known(): // which has the price of its searches
		b.piece("web_search", u.WebSearches.N, dearestSearch)
	}
	if p.Request.Known() {
		b.piece("request", 1, p.Request)
	}
	return b.total()
}

// dearestSearch is set aside for a search without a known price: what it costs at Gemini, where it is
// dearest (https://ai.google.dev/gemini-api/docs/pricing).
var dearestSearch = rateOf(35_000_000)

// dearest returns the highest of the known rates. It is unknown if the rate of the whole is.
func dearest(total Rate, parts ...Rate) Rate {
	if !total.Known() {
		return total
	}
	for _, r := range parts {
		total.plusOne = max(total.plusOne, r.plusOne)
	}
	return total
}
