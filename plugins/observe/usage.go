package observe

import (
	"strconv"

	"github.com/weirhq/weir/plugins"
)

// report is what a provider has reported so far, each count by the last event
// that had it: repeated reports are cumulative in every dialect.
type report struct {
	counts [endOfCounts - firstCount]int64
	told   uint64 // a bit for each of counts
}

func (r *report) set(f field, n int64) {
	r.counts[f-firstCount] = n
	r.told |= 1 << (f - firstCount)
}

func (r *report) get(f field) plugins.Count {
	return plugins.Count{N: r.counts[f-firstCount], Valid: r.told>>(f-firstCount)&1 != 0}
}

func (r *report) both(f, g field) plugins.Count { return r.get(f).Plus(r.get(g)) }

// fill takes from other what r does not have.
func (r *report) fill(other *report) {
	for f := firstCount; f < endOfCounts; f++ {
		if c := other.get(f); c.Valid && !r.get(f).Valid {
			r.set(f, c.N)
		}
	}
}

// usage is the report in the one convention of plugins.Usage.
func (r *report) usage() plugins.Usage {
	in := r.input()
	return plugins.Usage{
		Input:          in,
		Output:         r.output(in),
		CacheRead:      r.get(cacheRead).Or(r.get(metricCacheRead)),
		CacheWrite:     r.cacheWrite().Or(r.get(metricCacheWrite)),
		CacheWrite1h:   r.get(cacheWrite1h),
		InputAudio:     r.get(inputAudio),
		CacheReadAudio: r.get(cacheReadAudio),
		InputImage:     r.get(inputImage),
		Reasoning:      r.get(reasoning).Or(r.get(thoughts)),
		OutputAudio:    r.get(outputAudio),
		OutputImage:    r.get(outputImage),
		BilledInput:    r.get(billedInput),
		BilledOutput:   r.get(billedOutput),
		WebSearches:    r.get(webSearches),
		ReportedCost:   r.cost(),
	}
}

func (r *report) cost() plugins.Cost {
	c := r.get(reportedCost).Or(r.get(costInTicks))
	return plugins.Cost{N: plugins.Nanodollars(c.N), Valid: c.Valid}
}

func (r *report) cacheWrite() plugins.Count {
	return r.get(cacheWrite).Or(r.both(cacheWrite5m, cacheWrite1h))
}

func (r *report) input() plugins.Count {
	in, cached := r.get(input), r.get(cacheRead)
	switch {
	case in.Valid && r.get(audioSeconds).N > 0 && r.get(total).Valid:
		// Mistral counts audio in the total alone.
		return plugins.Known(max(in.N, r.get(total).N-r.get(output).N))
	case in.Valid && cached.N > in.N:
		// A part can't exceed the whole: this provider (some xAI models)
		// reports what its cache served apart.
		return in.Plus(cached)
	case in.Valid:
		return in.Plus(r.get(toolInput))
	case r.get(uncached).Valid:
		return r.get(uncached).Plus(cached).Plus(r.cacheWrite())
	}
	return r.get(metricUncached).Plus(r.get(metricCacheRead)).Plus(r.get(metricCacheWrite))
}

// output is the sum that was reported, or what the total leaves for it where
// that is more: xAI's and Gemini's Chat Completions hide reasoning so.
func (r *report) output(in plugins.Count) plugins.Count {
	out := r.both(output, thoughts)
	if t := r.get(total); t.Valid && in.Valid {
		if rest := t.N - in.N; rest > out.N || !out.Valid && rest == 0 {
			return plugins.Known(rest)
		}
	}
	return out.Or(r.get(metricOutput))
}

// parseCount reads a JSON number that counts something.
func parseCount(b []byte) (int64, bool) {
	if len(b) <= 18 {
		n := int64(0)
		for i, c := range b {
			if c < '0' || c > '9' {
				break
			}
			n = n*10 + int64(c-'0')
			if i == len(b)-1 {
				return n, true
			}
		}
	}
	// Proxies that decode and encode again send 12.0 and 1.2e+03.
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || f < 0 || f >= 1<<53 || f != float64(int64(f)) {
		return 0, false
	}
	return int64(f), true
}

// parseDecimal reads a JSON number times ten to the power of scale, exactly,
// and rounds half up what is left behind the point.
func parseDecimal(b []byte, scale int) (int64, bool) {
	mantissa, exponent := b, 0
	for i, c := range b {
		if c|0x20 == 'e' {
			var err error
			if exponent, err = strconv.Atoi(string(b[i+1:])); err != nil || exponent < -99 || exponent > 99 {
				return 0, false
			}
			mantissa = b[:i]
			break
		}
	}
	var digits []byte
	for i, c := range mantissa {
		switch {
		case c >= '0' && c <= '9':
			digits = append(digits, c)
		case c == '.':
			exponent -= len(mantissa) - i - 1
		default:
			return 0, false
		}
	}
	if len(digits) == 0 {
		return 0, false
	}
	roundUp := false
	for exponent += scale; exponent > 0; exponent-- {
		digits = append(digits, '0')
	}
	if keep := len(digits) + exponent; exponent < 0 {
		roundUp = keep >= 0 && digits[keep] >= '5'
		digits = digits[:max(keep, 0)]
	}
	n, err := strconv.ParseInt("0"+string(digits), 10, 64)
	if err != nil {
		return 0, false
	}
	if roundUp {
		n++
	}
	return n, n >= 0 // one more than the most is none
}

// count reads what a provider reports as f.
func (f field) count(v value) (int64, bool) {
	switch {
	case v.kind != number:
		return 0, false
	case f == reportedCost:
		return parseDecimal(v.bytes, 9)
	case f == costInTicks:
		return parseDecimal(v.bytes, -1)
	}
	return parseCount(v.bytes)
}
