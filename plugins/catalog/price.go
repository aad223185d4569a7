package catalog

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/plugins"
)

// Price is what a call costs while all its conditions hold: From, Hours, Tier, Regional and
// InputAbove. Rates of tokens are US dollars per million. A part of the usage that has no
// rate is charged as the whole, unless its rate says otherwise.
type Price struct {
	// From is the first day of validity, in UTC. Default: always.
	From Date `json:"from,omitzero"`
	// Hours is the daily window of validity, in UTC. Default: the whole day.
	Hours Hours `json:"hours,omitzero"`
	// Tier is the service tier, such as "priority" or "flex". Default: the
	// standard one.
	Tier string `json:"tier,omitempty"`
	// Regional prices hold for calls that were processed in a geography that was
	// chosen for them, such as "us", and not anywhere.
	Regional bool `json:"regional,omitempty"`
	// InputAbove is the size of the whole input, in tokens, above which this
	// price holds for the whole call. Default: any size.
	InputAbove int64 `json:"input_above,omitempty"`

	// Source names the collections that the price was taken from, such as
	// "genai-prices, litellm". It is for people.
	Source string `json:"source,omitempty"`

	Input  Rate `json:"input,omitzero"`
	Output Rate `json:"output,omitzero"`

	CacheRead Rate `json:"cache_read,omitzero"`
	// CacheWrite is for writes that live for the provider's default time,
	// which is five minutes at Anthropic.
	CacheWrite Rate `json:"cache_write,omitzero"`
	// CacheWrite1h is for writes that live for an hour. Where only CacheWrite
	// is known, such writes have no known price.
	CacheWrite1h   Rate `json:"cache_write_1h,omitzero"`
	InputAudio     Rate `json:"input_audio,omitzero"`
	CacheReadAudio Rate `json:"cache_read_audio,omitzero"`
	InputImage     Rate `json:"input_image,omitzero"`

	Reasoning   Rate `json:"reasoning,omitzero"`
	OutputAudio Rate `json:"output_audio,omitzero"`
	OutputImage Rate `json:"output_image,omitzero"`

	// Request is US dollars for each call. Default: none.
	Request Rate `json:"request,omitzero"`
	// WebSearch is US dollars for each search. Without it, a call that
	// searched has no known price.
	WebSearch Rate `json:"web_search,omitzero"`

	// SearchUnit, Image and Page are US dollars for each of what a reranker counts
	// as a search, of the images made, and of the pages read. AudioHour is US
	// dollars for an hour of audio input. If one of them is set, a call that does
	// not report its count has no known price. A price with no other rates does not
	// charge tokens.
	SearchUnit Rate `json:"search_unit,omitzero"`
	Image      Rate `json:"image,omitzero"`
	Page       Rate `json:"page,omitzero"`
	AudioHour  Rate `json:"audio_hour,omitzero"`
}

var rates = fieldsOf(reflect.TypeFor[Price]())

// Rate returns the rate that has the name in JSON, such as "cache_read", nil if
// there is none.
func (p *Price) Rate(name string) *Rate {
	i, ok := rates[name]
	if !ok {
		return nil
	}
	r, _ := reflect.ValueOf(p).Elem().FieldByIndex(i).Addr().Interface().(*Rate)
	return r
}

// Rate is a price in US dollars for a million tokens, an hour, or one piece, kept
// exactly to nine decimals. The zero Rate is unknown.
type Rate struct {
	plusOne int64 // billionths of a dollar and one; -1 is UnknownRate
}

// UnknownRate is the rate of a part of the usage whose price differs from the price
// of the whole and is unknown. A call that has such a part has no known price.
var UnknownRate = Rate{-1}

const unknownRate = "unknown" // in JSON

func rateOf(nano int64) Rate { return Rate{nano + 1} }

// nano is the number of Rate's units in a dollar.
const nano = 1_000_000_000

// maxRate, a billion dollars, keeps any call's charges within 128 bits.
const maxRate = 1_000_000_000 * nano

// ParseRate reads a decimal number of US dollars such as "0.003625".
func ParseRate(s string) (Rate, error) {
	integer, fraction, _ := strings.Cut(s, ".")
	if len(fraction) > 9 {
		return Rate{}, fmt.Errorf("%q has more than nine decimals; round it", s)
	}
	digits := integer + fraction
	if integer == "" || strings.Trim(digits, "0123456789") != "" {
		return Rate{}, fmt.Errorf("%q is not a price; write US dollars as a plain decimal, such as \"0.15\"", s)
	}
	n, err := strconv.ParseInt(digits+"000000000"[len(fraction):], 10, 64)
	if err != nil || n > maxRate { // err can only be of range
		return Rate{}, fmt.Errorf("%q is above a billion dollars; prices are per million tokens, requests and searches per piece", s)
	}
	return rateOf(n), nil
}

// Known reports whether there is a price.
func (r Rate) Known() bool { return r.plusOne > 0 }

// stated reports whether the rate is a price or UnknownRate.
func (r Rate) stated() bool { return r.plusOne != 0 }

// Nano is the price, 0 if unknown.
func (r Rate) Nano() plugins.Nanodollars { return plugins.Nanodollars(max(r.plusOne-1, 0)) }

// String is the price in US dollars, "unknown", or empty if there is none.
func (r Rate) String() string {
	switch {
	case r == UnknownRate:
		return unknownRate
	case !r.Known():
		return ""
	}
	s := fmt.Sprintf("%d.%09d", r.Nano()/nano, r.Nano()%nano)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// MarshalText writes the price in US dollars.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (r *Rate) UnmarshalText(b []byte) (err error) {
	if string(b) == unknownRate {
		*r = UnknownRate
		return nil
	}
	*r, err = ParseRate(string(b))
	return err
}

// Hours is a daily window in minutes of the UTC day, its end not included. One
// that ends before it starts runs over midnight. The zero Hours is the whole
// day.
type Hours struct{ Start, End int16 }

// ParseHours reads a window such as "16:30-00:30".
func ParseHours(s string) (Hours, error) {
	from, to, _ := strings.Cut(s, "-")
	start, err := time.Parse("15:04", from)
	end, err2 := time.Parse("15:04", to)
	if cmp.Or(err, err2) != nil || start.Equal(end) {
		return Hours{}, fmt.Errorf("%q is not a daily window; write it in UTC as HH:MM-HH:MM", s)
	}
	return Hours{minutes(start), minutes(end)}, nil
}

func minutes(t time.Time) int16 { return int16(t.Hour()*60 + t.Minute()) }

func (h Hours) hold(minute int16) bool {
	switch {
	case h == Hours{}:
		return true
	case h.Start < h.End:
		return h.Start <= minute && minute < h.End
	}
	return h.Start <= minute || minute < h.End
}

// MarshalText writes the window as HH:MM-HH:MM.
func (h Hours) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%02d:%02d-%02d:%02d", h.Start/60, h.Start%60, h.End/60, h.End%60), nil
}

// UnmarshalText reads what MarshalText writes.
func (h *Hours) UnmarshalText(b []byte) (err error) {
	*h, err = ParseHours(string(b))
	return err
}

// Conditions are those of a call that choose its price.
type Conditions struct {
	At time.Time
	// Tier is the service tier that the provider reports. Default: the standard one.
	Tier string
	// Geography is where the provider processed the call, such as "us" or
	// "europe-west4". Default: "global", which is anywhere.
	Geography string
	// Longest is the longest input of several calls whose usage is added up. 0: the usage is
	// that of one call.
	Longest int64
}

// regional reports whether a place was chosen. Anthropic calls it not_available for
// models that run anywhere (https://platform.claude.com/docs/en/build-with-claude/data-residency).
func (c Conditions) regional() bool {
	return c.Geography != "" && c.Geography != "global" && c.Geography != "not_available"
}

// price returns the price that holds for a call with an input of that many tokens, nil if none does. A
// price whose first day is to come holds if no other does: the collections know some tiers only since
// they began to list them.
func (m *Model) price(input int64, c Conditions) *Price {
	tier, at, regional, input := TierName(c.Tier), c.At.UTC(), c.regional(), cmp.Or(c.Longest, input)
	today, minute := dateOf(at), minutes(at)
	var first *Price
	for i := len(m.Prices) - 1; i >= 0; i-- {
		p := &m.Prices[i]
		if !strings.EqualFold(p.Tier, tier) || p.Regional && !regional || !p.Hours.hold(minute) ||
			p.InputAbove > 0 && input <= p.InputAbove {
			continue
		}
		if p.From <= today {
			return p
		}
		first = p
	}
	return first
}

// TierName is the catalogue's name for a service tier that a provider reports:
// empty for what one gets without asking, which OpenAI calls auto and default,
// Anthropic standard and standard_only, Groq and Vertex on_demand.
func TierName(reported string) string {
	for _, names := range [...][]string{
		{"", "default", "auto", "standard", "standard_only", "on_demand"},
		{"priority", "on_demand_priority"}, // Vertex AI's trafficType
		{"flex", "on_demand_flex"},
	} {
		for _, name := range names {
			if strings.EqualFold(reported, name) {
				return names[0]
			}
		}
	}
	return reported
}
