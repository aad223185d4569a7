package observe

import (
	"math"
	"math/big"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// report holds the counts that a provider has reported so far. Counts are cumulative in every dialect, so
// a later count replaces an earlier one. A later 0 does not: it says nothing, because no sum falls to 0.
type report struct {
	counts   [endOfCounts - firstCount]int64
	reported uint64 // bit i is set if counts[i] was reported
	// lastUncachedZero is true if the last report of UncachedInput was a 0, which set ignores.
	lastUncachedZero bool
}

func (r *report) set(f Field, n int64) {
	if f == UncachedInput {
		r.lastUncachedZero = n == 0
	}
	switch before := r.get(f).N; {
	case f == InputPart, f == Image:
		n += before
	case n == 0:
		n = before
	}
	r.counts[f-firstCount] = n
	r.reported |= 1 << (f - firstCount)
}

func (r *report) get(f Field) plugins.Count {
	return plugins.Count{N: r.counts[f-firstCount], Valid: r.reported>>(f-firstCount)&1 != 0}
}

func (r *report) sum(f, g Field) plugins.Count { return r.get(f).Plus(r.get(g)) }

// fill copies the counts from other that are missing or 0 in r.
func (r *report) fill(other *report) {
	for f := firstCount; f < endOfCounts; f++ {
		if c := other.get(f); c.Valid && r.get(f).N == 0 {
			r.set(f, c.N)
		}
	}
}

// usage converts the report to plugins.Usage, which has one convention for all providers.
func (r *report) usage() plugins.Usage {
	in := r.input()
	u := plugins.Usage{
		Input:          in.Or(r.get(BilledInput)),
		Output:         r.output(in).Or(r.get(BilledOutput)),
		CacheRead:      r.get(CacheRead).Or(r.get(MeteredCacheRead)),
		CacheWrite:     r.cacheWrite().Or(r.get(MeteredCacheWrite)),
		CacheWrite1h:   r.get(CacheWrite1h),
		InputAudio:     r.get(InputAudio).Or(r.uncountedAudio()),
		CacheReadAudio: r.get(CacheReadAudio),
		InputImage:     r.get(InputImage),
		Reasoning:      r.get(Reasoning).Or(r.get(ReasoningBeside)).Or(r.get(ReasoningUnclear)),
		OutputAudio:    r.get(OutputAudio),
		OutputImage:    r.get(OutputImage),
		BilledInput:    r.get(BilledInput),
		BilledOutput:   r.get(BilledOutput),
		WebSearches:    r.get(WebSearches),
		SearchUnits:    r.get(SearchUnits),
		AudioDuration:  r.audio(),
		ReportedCost:   r.cost(),
	}
	if !r.get(Annotation).Valid {
		u.Pages = r.get(Pages)
	}
	if !u.Output.Valid { // otherwise the images are charged as tokens
		u.Images = r.get(Image)
	}
	return u
}

func (r *report) cacheWrite() plugins.Count {
	return r.get(CacheWrite).Or(r.sum(CacheWrite5m, CacheWrite1h))
}

// input returns the whole input, including the cached part. Some providers include that part in their
// input, others do not, and some differ from model to model: then the reported total decides.
func (r *report) input() plugins.Count {
	in, cached, total := r.get(Input), r.get(CacheRead), r.get(Total)
	switch {
	case r.uncountedAudio().Valid:
		return in.Plus(r.uncountedAudio())
	case in.Valid && cached.N > in.N && (!total.Valid || total.N >= in.N+cached.N+r.get(Output).N):
		// The cached part is larger than the input, so the input does not include it.
		return in.Plus(cached)
	case in.Valid:
		return in.Plus(r.get(ToolInput))
	case r.get(EstimatedInput).Valid:
		return plugins.Known(max(r.get(EstimatedInput).N, cached.N+r.cacheWrite().N))
	case r.get(UncachedInput).Valid:
		fromCache := cached.Plus(r.cacheWrite())
		if r.lastUncachedZero && r.get(UncachedInput).N == fromCache.N {
			// Moonshot's Messages API reports the whole input in the first event, and in the last one that
			// all of it was cached: https://github.com/maximhq/bifrost/issues/5510
			return fromCache
		}
		return r.get(UncachedInput).Plus(fromCache)
	case r.get(InputPart).Valid:
		return r.get(InputPart)
	}
	return r.get(MeteredInput).Plus(r.get(MeteredCacheRead)).Plus(r.get(MeteredCacheWrite))
}

// uncountedAudio returns the audio tokens that the input lacks, or unknown if there are none. Mistral
// counts audio in the total alone.
func (r *report) uncountedAudio() plugins.Count {
	in, total := r.get(Input), r.get(Total)
	if rest := total.N - in.N - r.get(Output).N; in.Valid && r.get(AudioSeconds).N > 0 && rest > 0 {
		return plugins.Known(rest)
	}
	return plugins.Count{}
}

// output returns the reported output, or total minus input if that is more. The Chat Completions APIs of
// xAI and Gemini count reasoning in the total alone.
func (r *report) output(in plugins.Count) plugins.Count {
	out := r.sum(Output, ReasoningBeside)
	if unclear := r.get(ReasoningUnclear); unclear.N > out.N {
		out = out.Plus(unclear)
	}
	if t := r.get(Total); t.Valid && in.Valid {
		if rest := t.N - in.N; rest > out.N || !out.Valid && rest == 0 {
			return plugins.Known(rest)
		}
	}
	return out.Or(r.get(MeteredOutput))
}

// audio returns the length of the audio. AudioSeconds holds milliseconds: count has converted it.
func (r *report) audio() plugins.Duration {
	n := r.get(AudioSeconds)
	return plugins.Duration{N: plugins.Milliseconds(n.N), Valid: n.Valid}
}

// cost returns what the caller paid, to the provider and to the upstream that it calls.
func (r *report) cost() plugins.Cost {
	cost, upstream := r.get(Cost).Or(r.get(CostInTicks)).Or(r.get(CostInCents)), r.get(UpstreamCost)
	switch {
	case r.get(Currency).N == otherCurrency:
		return plugins.Cost{}
	case r.get(OwnAccount).N != 0:
		cost = cost.Plus(upstream)
	case cost.Valid && cost.N == 0 && upstream.N > 0:
		cost = upstream
	}
	return plugins.Cost{N: plugins.Nanodollars(cost.N), Valid: cost.Valid}
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

// parseDecimal returns a JSON number times ten to the power of scale, rounded half up. It is exact, as
// floating-point arithmetic would not be.
func parseDecimal(b []byte, scale int) (int64, bool) {
	f, err := strconv.ParseFloat(string(b), 64)
	switch {
	case err != nil || !gjson.ValidBytes(b) || f < 0 || f > math.MaxInt64:
		return 0, false
	case f < 1e-18: // too small for the scales here, and an exponent may have any size
		return 0, true
	}
	n, _ := new(big.Rat).SetString(string(b))
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(scale, -scale))), nil)
	if scale < 0 {
		n.Quo(n, new(big.Rat).SetInt(power))
	} else {
		n.Mul(n, new(big.Rat).SetInt(power))
	}
	n.Add(n, big.NewRat(1, 2))
	rounded := new(big.Int).Quo(n.Num(), n.Denom())
	return rounded.Int64(), rounded.IsInt64()
}

// The values of Currency. None is 0, because set ignores a 0.
const (
	dollars = 1 + iota
	otherCurrency
)

// count reads a provider's value of f. ok is false if it is no such value.
func (f Field) count(v value) (n int64, ok bool) {
	switch {
	case f == Image:
		return 1, v.kind == object || v.kind == text
	case f == Annotation:
		return 1, v.kind == object || v.kind == text && len(v.bytes) > 0
	case f == OwnAccount:
		return 1, v.kind == boolean && v.bytes[0] == 't'
	case f == Currency:
		if string(v.bytes) == "USD" {
			return dollars, v.kind == text
		}
		return otherCurrency, v.kind == text
	case (f == Cost || f == CostInCents || f == AudioSeconds) && v.kind == text, v.kind == number:
	default:
		return 0, false
	}
	switch f {
	case Cost, UpstreamCost:
		return parseDecimal(v.bytes, 9)
	case CostInCents:
		n, ok = parseDecimal(v.bytes, 7)
		return n, ok && n > 0
	case CostInTicks:
		n, ok = parseDecimal(v.bytes, -1)
		return n, ok && n > 0
	case AudioSeconds:
		return parseDecimal(v.bytes, 3)
	}
	return parseCount(v.bytes)
}

// detailCount is one element of a list of counts by modality (Gemini) or by cache lifetime (Bedrock),
// such as {"modality": "AUDIO", "tokenCount": 12}. Name and count come in any order.
type detailCount struct {
	name   [len("google_search")]byte // cut off if longer, as no name in details is
	length int                        // of name, in bytes
	list   Field
	count  int64
}

// readDetail reads a field of such an element. Once it has a name and a count, the report gets the count.
func (x *observer) readDetail(f Field, v value) {
	d := &x.detail
	switch f {
	case detail:
		*d = detailCount{}
	case detailName:
		d.length = copy(d.name[:], v.bytes)
	default:
		n, ok := parseCount(v.bytes)
		if !ok {
			return
		}
		d.list, d.count = f, n
	}
	switch counted := d.field(); {
	case counted == Unstated:
		x.billed(counted, v)
	case counted != none:
		x.report.set(counted, d.count)
		x.changed = true
	}
}

// details are the fields that such elements count, by list and name.
var details = map[Field]map[string]Field{
	inputDetail:   {"AUDIO": InputAudio, "audio": InputAudio, "IMAGE": InputImage, "image": InputImage},
	cachedDetail:  {"AUDIO": CacheReadAudio, "audio": CacheReadAudio},
	outputDetail:  {"AUDIO": OutputAudio, "audio": OutputAudio, "IMAGE": OutputImage, "image": OutputImage},
	groundDetail:  {"google_search": WebSearches},
	writtenDetail: {"5m": CacheWrite5m, "1h": CacheWrite1h},
}

// field returns the Field that the element counts, or none while its name or count is missing. It is
// Unstated for a grounding tool without an entry in details.
func (d *detailCount) field() Field {
	f, known := details[d.list][string(d.name[:d.length])]
	if !known && d.list == groundDetail && d.length > 0 && d.count > 0 {
		return Unstated
	}
	return f
}
