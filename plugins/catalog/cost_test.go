package catalog

import (
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/plugins"
)

var (
	n    = plugins.Known
	cost = plugins.KnownCost
	noon = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)
	late = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
)

func millis(n plugins.Milliseconds) plugins.Duration { return plugins.Duration{N: n, Valid: true} }

// The sums are worked by hand from the vendors' price lists.
func TestCost(t *testing.T) {
	tests := []struct {
		name, provider, model string
		usage                 plugins.Usage
		tier                  string
		at                    time.Time
		want                  plugins.Cost
	}{
		{"plain: 1000 x 2.5 + 500 x 10", "openai", "gpt-4o",
			plugins.Usage{Input: n(1000), Output: n(500)}, "", noon, cost(7_500_000)},
		{"cached input: 400 x 1.25 + 1600 x 0.125 + 300 x 10", "openai", "gpt-5",
			plugins.Usage{Input: n(2000), CacheRead: n(1600), Output: n(300), Reasoning: n(256)}, "default", noon, cost(3_700_000)},
		{"no more can be cached than was sent: 2000 x 0.125", "openai", "gpt-5",
			plugins.Usage{Input: n(2000), CacheRead: n(2600), Output: n(0)}, "", noon, cost(250_000)},
		{"no discount for what is cached: 1000 x 0.5", "openai", "gpt-3.5-turbo",
			plugins.Usage{Input: n(1000), CacheRead: n(500), Output: n(0)}, "", noon, cost(500_000)},
		{"cache writes and read: 100 x 3 + 1000 x 3.75 + 500 x 6 + 4000 x 0.3 + 200 x 15", "anthropic", "claude-sonnet-4-6",
			plugins.Usage{Input: n(5600), CacheRead: n(4000), CacheWrite: n(1500), CacheWrite1h: n(500), Output: n(200)}, "standard", noon,
			cost(300_000 + 3_750_000 + 3_000_000 + 1_200_000 + 3_000_000)},
		{"searches: 10 x 5 + 10 x 25 + 3 x 0.01 each", "anthropic", "claude-opus-4-8",
			plugins.Usage{Input: n(10), Output: n(10), WebSearches: n(3)}, "", noon, cost(50_000 + 250_000 + 30_000_000)},
		{"long context, at the bound: 200000 x 1.25 + 1000 x 10", "gemini", "gemini-2.5-pro",
			plugins.Usage{Input: n(200_000), Output: n(1000)}, "", noon, cost(260_000_000)},
		{"long context, above: 200001 x 2.5 + 1000 x 15", "gemini", "gemini-2.5-pro",
			plugins.Usage{Input: n(200_001), Output: n(1000)}, "", noon, cost(515_002_500)},
		{"long context counts what is cached: 1 x 2.5 + 200000 x 0.25", "gemini", "gemini-2.5-pro",
			plugins.Usage{Input: n(200_001), CacheRead: n(200_000)}, "", noon, cost(50_002_500)},
		{"more than 272k tokens are long for OpenAI: 272001 x 5", "openai", "gpt-5.4",
			plugins.Usage{Input: n(272_001), Output: n(0)}, "", noon, cost(1_360_005_000)},
		{"audio in: 100 x 0.3 + 400 x 1 + 50 x 2.5", "gemini", "gemini-2.5-flash",
			plugins.Usage{Input: n(500), InputAudio: n(400), Output: n(50)}, "", noon, cost(30_000 + 400_000 + 125_000)},
		{"cached audio: 100 x 0.3 + 300 x 1 + 100 x 0.1 + 50 x 0.03", "gemini", "gemini-2.5-flash",
			plugins.Usage{Input: n(550), InputAudio: n(400), CacheRead: n(150), CacheReadAudio: n(100)}, "", noon,
			cost(30_000 + 300_000 + 10_000 + 1_500)},
		{"audio both ways: 10 x 2.5 + 90 x 32 + 20 x 10 + 80 x 64", "openai", "gpt-audio",
			plugins.Usage{Input: n(100), InputAudio: n(90), Output: n(100), OutputAudio: n(80)}, "", noon,
			cost(25_000 + 2_880_000 + 200_000 + 5_120_000)},
		{"audio without a price of its own is text: 100 x 0.5", "cohere", "c4ai-aya-expanse-32b",
			plugins.Usage{Input: n(100), InputAudio: n(100)}, "", noon, cost(50_000)},
		{"image out: 100 x 0.3 + 10 x 2.5 + 1290 x 30", "gemini", "gemini-2.5-flash-image",
			plugins.Usage{Input: n(100), Output: n(1300), OutputImage: n(1290)}, "", noon, cost(30_000 + 25_000 + 38_700_000)},
		{"images in that were cached too: 100 x 2 + 0 x 8 + 900 x 1.25", "openai", "gpt-image-1.5",
			plugins.Usage{Input: n(1000), InputImage: n(900), CacheRead: n(900)}, "", noon, cost(800_000 + 1_125_000)},
		{"cache read without a price of its own is input: 100 x 2", "gemini", "gemini-3-pro-image-preview",
			plugins.Usage{Input: n(100), CacheRead: n(80)}, "", noon, cost(200_000)},
		{"billed units: 5 x 2.5 + 20 x 10", "cohere", "command-a-03-2025",
			plugins.Usage{Input: n(500), Output: n(21), BilledInput: n(5), BilledOutput: n(20)}, "", noon, cost(12_500 + 200_000)},
		{"a fee for the request: 14 / 1000 + 10 x 3 + 20 x 15", "perplexity", "sonar-pro",
			plugins.Usage{Input: n(10), Output: n(20)}, "", noon, cost(14_000_000 + 30_000 + 300_000)},
		{"peak hours: 1000 x 0.27", "deepseek", "deepseek-chat-v3-0324",
			plugins.Usage{Input: n(1000)}, "", time.Date(2025, 3, 1, 16, 29, 59, 0, time.UTC), cost(270_000)},
		{"off-peak from 16:30 UTC: 1000 x 0.135", "deepseek", "deepseek-chat-v3-0324",
			plugins.Usage{Input: n(1000)}, "", time.Date(2025, 3, 1, 16, 30, 0, 0, time.UTC), cost(135_000)},
		{"off-peak in another zone: 1000 x 0.135", "deepseek", "deepseek-chat-v3-0324",
			plugins.Usage{Input: n(1000)}, "", time.Date(2025, 3, 2, 1, 0, 0, 0, time.FixedZone("CST", 8*3600)), cost(135_000)},
		{"no peak hours before they began: 1000 x 0.435", "deepseek", "deepseek-v4-pro",
			plugins.Usage{Input: n(1000)}, "", time.Date(2026, 8, 16, 2, 0, 0, 0, time.UTC), cost(435_000)},
		{"peak hours since they began: 1000 x 1.32", "deepseek", "deepseek-v4-pro",
			plugins.Usage{Input: n(1000)}, "", time.Date(2026, 8, 17, 2, 0, 0, 0, time.UTC), cost(1_320_000)},
		{"the day before a price cut: 1000 x 10", "openai", "o3",
			plugins.Usage{Input: n(1000)}, "", time.Date(2025, 6, 9, 23, 59, 59, 0, time.UTC), cost(10_000_000)},
		{"the day of a price cut: 1000 x 2", "openai", "o3",
			plugins.Usage{Input: n(1000)}, "", time.Date(2025, 6, 10, 0, 0, 0, 0, time.UTC), cost(2_000_000)},
		{"a price without a date holds at any time: 1000 x 2.5", "openai", "gpt-4o",
			plugins.Usage{Input: n(1000)}, "", time.Time{}, cost(2_500_000)},
		{"priority: 1000 x 12.5 + 100 x 75", "openai", "gpt-5.5",
			plugins.Usage{Input: n(1000), Output: n(100)}, "priority", late, cost(20_000_000)},
		{"flex: 1000 x 0.625 + 100 x 5", "openai", "gpt-5",
			plugins.Usage{Input: n(1000), Output: n(100)}, "flex", late, cost(625_000 + 500_000)},
		{"Vertex AI's name for flex: 1000 x 0.15 + 100 x 1.25", "vertex", "gemini-2.5-flash",
			plugins.Usage{Input: n(1000), Output: n(100)}, "ON_DEMAND_FLEX", late, cost(150_000 + 125_000)},
		{"batch: 1000 x 2.5 + 100 x 12.5", "anthropic", "claude-opus-4-8",
			plugins.Usage{Input: n(1000), Output: n(100)}, "batch", late, cost(2_500_000 + 1_250_000)},
		{"unknown price of long inputs in the tier", "openai", "gpt-5.5",
			plugins.Usage{Input: n(300_000), Output: n(100)}, "priority", late, plugins.Cost{}},
		{"unknown tier", "openai", "gpt-5", plugins.Usage{Input: n(1)}, "scale", late, plugins.Cost{}},
		{"a minute and a half of audio: 0.025 x 0.36", "openai", "whisper-1",
			plugins.Usage{AudioDuration: millis(90_000)}, "", late, cost(9_000_000)},
		{"audio by the hour, with text: 0.1 x 0.24 + 1000 x 0.1 + 10 x 0.4", "mistral", "voxtral-small-latest",
			plugins.Usage{Input: n(1000), Output: n(10), AudioDuration: millis(360_000)}, "", late, cost(24_000_000 + 100_000 + 4_000)},
		{"pages: 3 x 0.004", "mistral", "mistral-ocr-latest", plugins.Usage{Pages: n(3)}, "", late, cost(12_000_000)},
		{"images: 2 x 0.02", "xai", "grok-imagine-image", plugins.Usage{Images: n(2)}, "", late, cost(40_000_000)},
		{"search units: 2 x 0.002", "cohere", "rerank-v3.5", plugins.Usage{SearchUnits: n(2)}, "", late, cost(4_000_000)},
		{"tokens of what is charged by the piece", "cohere", "rerank-v3.5",
			plugins.Usage{Input: n(500), SearchUnits: n(1)}, "", late, cost(2_000_000)},
		{"pieces of what is charged by tokens: 1000 x 2.5", "openai", "gpt-4o",
			plugins.Usage{Input: n(1000), Images: n(1), Pages: n(1)}, "", late, cost(2_500_000)},
		{"unknown count of what is charged", "openai", "whisper-1", plugins.Usage{Input: n(10)}, "", late, plugins.Cost{}},
		{"unknown count beside tokens", "mistral", "voxtral-small-latest", plugins.Usage{Input: n(10)}, "", late, plugins.Cost{}},
		{"pieces without a price", "openai", "gpt-4o", plugins.Usage{Images: n(1)}, "", late, plugins.Cost{}},
		{"rounds to the nearest: 1 x 0.0028", "deepseek", "deepseek-v4-flash",
			plugins.Usage{Input: n(1), CacheRead: n(1)}, "", time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC), cost(3)},
		{"what is reported wins", "openrouter", "openai/gpt-4o",
			plugins.Usage{Input: n(1000), Output: n(500), ReportedCost: cost(42)}, "", noon, cost(42)},
		{"what is reported needs no model", "custom", "who-knows",
			plugins.Usage{ReportedCost: cost(42)}, "", noon, cost(42)},
		{"free is 0", "mistral", "mistral-nemo:free",
			plugins.Usage{Input: n(1000), Output: n(500)}, "", noon, cost(0)},
		{"given away is 0", "openai", "omni-moderation-latest", plugins.Usage{Input: n(1000)}, "", noon, cost(0)},
		{"free there is not free here", "vertex", "gemma-3-27b-it", plugins.Usage{Input: n(1000)}, "", noon, plugins.Cost{}},
		{"0 that means unknown", "cerebras", "qwen-3-coder-480b", plugins.Usage{Input: n(1000)}, "", noon, plugins.Cost{}},
		{"nothing used is 0", "openai", "gpt-4o", plugins.Usage{Input: n(0)}, "", noon, cost(0)},

		{"unknown provider", "custom", "gpt-4o", plugins.Usage{Input: n(1)}, "", noon, plugins.Cost{}},
		{"local provider", "ollama", "llama3", plugins.Usage{Input: n(1)}, "", noon, plugins.Cost{}},
		{"unknown model", "openai", "gpt-zero", plugins.Usage{Input: n(1)}, "", noon, plugins.Cost{}},
		{"no model", "openai", "", plugins.Usage{Input: n(1)}, "", noon, plugins.Cost{}},
		{"unknown usage", "openai", "gpt-4o", plugins.Usage{CacheRead: n(1)}, "", noon, plugins.Cost{}},
		{"a batch of before its prices were listed: 1000 x 0.625", "openai", "gpt-5", plugins.Usage{Input: n(1000)}, "batch", noon, cost(625_000)},
		{"unknown price of the tier", "openai", "gpt-4o", plugins.Usage{Input: n(1)}, "flex", noon, plugins.Cost{}},
		{"unknown price of images in the tier", "vertex", "gemini-3-pro-image",
			plugins.Usage{Input: n(10), Output: n(10), OutputImage: n(5)}, "priority", late, plugins.Cost{}},
		{"no images, so that their price does not matter: 10 x 3.6 + 10 x 21.6", "vertex", "gemini-3-pro-image",
			plugins.Usage{Input: n(10), Output: n(10)}, "priority", late, cost(36_000 + 216_000)},
		{"unknown price of searches", "anthropic", "claude-3-opus-latest",
			plugins.Usage{Input: n(1), WebSearches: n(1)}, "", noon, plugins.Cost{}},
		{"unknown price of one-hour writes", "openrouter", "anthropic/claude-3-haiku",
			plugins.Usage{Input: n(10), CacheWrite: n(10), CacheWrite1h: n(10)}, "", noon, plugins.Cost{}},
		{"nonsense", "openai", "gpt-4o", plugins.Usage{Input: n(10), CacheRead: n(-5)}, "", noon, plugins.Cost{}},
		{"more than can be counted", "openai", "o1-pro", plugins.Usage{Input: n(math.MaxInt64)}, "", noon, plugins.Cost{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			u := tt.usage
			if u.Input.Valid || u.Output.Valid { // the table names what is not 0
				u.Input, u.Output = u.Input.Or(n(0)), u.Output.Or(n(0))
			}
			if got := Default().Cost(tt.provider, tt.model, u, Conditions{At: tt.at, Tier: tt.tier}); got != tt.want {
				t.Errorf("Cost = %+v, want %+v", got, tt.want)
			}
		})
	}
}

// What is charged and not told makes the cost unknown, not less.
func TestCostOfHalfAUsage(t *testing.T) {
	for _, tt := range []struct {
		model string
		usage plugins.Usage
		known bool
	}{
		{"gpt-4o", plugins.Usage{Input: n(1000)}, false},
		{"gpt-4o", plugins.Usage{Output: n(1000)}, false},
		{"gpt-4o", plugins.Usage{Input: n(1000), Output: n(0)}, true},
		{"gpt-4o", plugins.Usage{Input: n(1000), ReportedCost: cost(1)}, true},
		{"text-embedding-3-small", plugins.Usage{Input: n(1000)}, true},
	} {
		if got := Default().Cost("openai", tt.model, tt.usage, Conditions{At: noon}); got.Valid != tt.known {
			t.Errorf("%s with %+v costs %+v", tt.model, tt.usage, got)
		}
	}
}

// A cost that 64 bits can't hold is unknown, not wrapped.
func TestCostOverflows(t *testing.T) {
	most := rateOf(maxRate)
	m := Model{Prices: []Price{{Input: most, WebSearch: most}}}
	if got := m.Cost(plugins.Usage{Input: n(9_000_000)}, Conditions{At: noon}); got != cost(9*maxRate) {
		t.Errorf("nine billion dollars are %+v", got)
	}
	for _, u := range []plugins.Usage{
		{Input: n(10_000_000)},
		{Input: n(0), WebSearches: n(10)},
		{Input: n(0), WebSearches: n(math.MaxInt64)},
		{Input: n(9_000_000), WebSearches: n(1)},
		{Input: n(math.MaxInt64), CacheRead: n(math.MaxInt64)},
	} {
		if got := m.Cost(u, Conditions{At: noon}); got.Valid {
			t.Errorf("%+v costs %+v", u, got)
		}
	}
}

// What is processed makes a call long; what is billed is charged.
func TestLongContextOfBilledUnits(t *testing.T) {
	m := Model{Prices: []Price{{Input: rateOf(nano)}, {InputAbove: 100, Input: rateOf(2 * nano)}}}
	if got := m.Cost(plugins.Usage{Input: n(101), BilledInput: n(10)}, Conditions{At: noon}); got != cost(20_000) {
		t.Errorf("Cost = %+v", got)
	}
}

// A tier that everybody gets has the default price, under each vendor's name.
func TestStandardTier(t *testing.T) {
	u := plugins.Usage{Input: n(1000), Output: n(0)}
	for _, tier := range []string{"", "default", "auto", "standard", "standard_only", "on_demand", "ON_DEMAND"} {
		if got := Default().Cost("openai", "gpt-4o", u, Conditions{At: noon, Tier: tier}); got != cost(2_500_000) {
			t.Errorf("tier %q costs %+v", tier, got)
		}
	}
}

// Costs are exact: they equal the rational sum, rounded half up once.
func TestCostIsExact(t *testing.T) {
	rate := func(t *rapid.T, name string) Rate {
		return rateOf(rapid.Int64Range(0, 1000*nano).Draw(t, name))
	}
	rapid.Check(t, func(t *rapid.T) {
		p := Price{Input: rate(t, "input"), Output: rate(t, "output"), CacheRead: rate(t, "read"),
			CacheWrite: rate(t, "write"), CacheWrite1h: rate(t, "write1h"), Reasoning: rate(t, "reasoning"),
			Request: rate(t, "request"), WebSearch: rate(t, "search"), AudioHour: rate(t, "hour"), Page: rate(t, "page")}
		count := func(name string) int64 { return rapid.Int64Range(0, 100_000_000).Draw(t, name) }
		text, read, write, write1h := count("text"), count("read"), count("write"), count("write1h")
		answer, thought, searches := count("answer"), count("thought"), rapid.Int64Range(0, 1000).Draw(t, "searches")
		audio, pages := count("audio"), rapid.Int64Range(0, 1000).Draw(t, "pages")

		want := new(big.Rat)
		add := func(n int64, r Rate, per int64) {
			charge := new(big.Rat).SetFrac64(int64(r.Nano()), per)
			want.Add(want, charge.Mul(charge, new(big.Rat).SetInt64(n)))
		}
		add(text, p.Input, 1e6)
		add(read, p.CacheRead, 1e6)
		add(write, p.CacheWrite, 1e6)
		add(write1h, p.CacheWrite1h, 1e6)
		add(answer, p.Output, 1e6)
		add(thought, p.Reasoning, 1e6)
		add(searches, p.WebSearch, 1)
		add(1, p.Request, 1)
		add(audio, p.AudioHour, 3_600_000)
		add(pages, p.Page, 1)
		want.Add(want, big.NewRat(1, 2))
		rounded := new(big.Int).Quo(want.Num(), want.Denom())

		m := Model{Prices: []Price{p}}
		got := m.Cost(plugins.Usage{
			Input: n(text + read + write + write1h), CacheRead: n(read), CacheWrite: n(write + write1h), CacheWrite1h: n(write1h),
			Output: n(answer + thought), Reasoning: n(thought), WebSearches: n(searches),
			AudioDuration: millis(plugins.Milliseconds(audio)), Pages: n(pages),
		}, Conditions{At: noon})
		if !got.Valid || int64(got.N) != rounded.Int64() {
			t.Fatalf("Cost = %+v, want %v", got, rounded)
		}
	})
}

// Whatever a provider reports, a cost is unknown or at least 0, and no part of
// the input is charged twice: at one rate for everything it is a multiple of
// what there was.
func TestCostOfAnyUsage(t *testing.T) {
	one := rateOf(nano)
	rapid.Check(t, func(t *rapid.T) {
		least := rapid.SampledFrom([]int64{0, -10}).Draw(t, "least") // one count below 0 makes the cost unknown
		count := func(name string) plugins.Count {
			return plugins.Count{N: rapid.Int64Range(least, 1000).Draw(t, name), Valid: true}
		}
		u := plugins.Usage{Input: count("input"), Output: count("output"), CacheRead: count("read"), CacheWrite: count("write"),
			CacheWrite1h: count("write1h"), InputAudio: count("audio"), CacheReadAudio: count("readaudio"),
			InputImage: count("image"), Reasoning: count("reasoning"), OutputAudio: count("outaudio"), OutputImage: count("outimage")}
		m := Model{Prices: []Price{{Input: one, Output: one, CacheRead: one, CacheWrite: one, CacheWrite1h: one, InputAudio: one,
			CacheReadAudio: one, InputImage: one, Reasoning: one, OutputAudio: one, OutputImage: one}}}
		got := m.Cost(u, Conditions{At: noon})
		want := max(u.Input.N, min(u.CacheRead.N, u.Input.N)+max(u.CacheWrite.N, u.CacheWrite1h.N)) + u.Output.N
		if got.Valid && int64(got.N) != want*1000 {
			t.Fatalf("%d tokens cost %d", want, got.N)
		}
		b := bill{itemized: true}
		sum := plugins.Nanodollars(0)
		if m.charge(&b, u, Conditions{At: noon}) {
			for _, c := range b.charges {
				sum += c.Cost.N
			}
		}
		if got.Valid && sum != got.N {
			t.Fatalf("%+v add up to %d, not %d", b.charges, sum, got.N)
		}
	})
}

func BenchmarkCost(b *testing.B) {
	u := plugins.Usage{Input: n(5600), CacheRead: n(4000), CacheWrite: n(1500), Output: n(200)}
	for _, model := range []string{"claude-sonnet-4-6", "claude-sonnet-4-6-20990101"} {
		b.Run(model, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !Default().Cost("anthropic", model, u, Conditions{At: noon, Tier: "standard"}).Valid {
					b.Fatal("no price")
				}
			}
		})
	}
}

// What a call was charged for adds up to its cost.
// The sums are worked by hand, as those of TestCost.
func TestCacheSavings(t *testing.T) {
	for name, test := range map[string]struct {
		provider, model string
		usage           plugins.Usage
		want            plugins.Cost
	}{
		"reads: 1600 x (1.25 - 0.125)": {"openai", "gpt-5",
			plugins.Usage{Input: n(2000), CacheRead: n(1600), Output: n(300)}, cost(1_800_000)},
		"reads and writes: 4000 x (3 - 0.3) - 1000 x (3.75 - 3) - 500 x (6 - 3)": {"anthropic", "claude-sonnet-4-6",
			plugins.Usage{Input: n(5600), CacheRead: n(4000), CacheWrite: n(1500), CacheWrite1h: n(500), Output: n(200)}, cost(8_550_000)},
		"writes that nobody read: -1000 x (3.75 - 3)": {"anthropic", "claude-sonnet-4-6",
			plugins.Usage{Input: n(1000), CacheRead: n(0), CacheWrite: n(1000), Output: n(1)}, cost(-750_000)},
		"audio: 100 x (1 - 0.1) + 50 x (0.3 - 0.03)": {"gemini", "gemini-2.5-flash",
			plugins.Usage{Input: n(550), InputAudio: n(400), CacheRead: n(150), CacheReadAudio: n(100), Output: n(50)}, cost(103_500)},
		"the cache was not used":        {"openai", "gpt-5", plugins.Usage{Input: n(2000), CacheRead: n(0), Output: n(1)}, cost(0)},
		"nobody says whether it was":    {"openai", "gpt-5", plugins.Usage{Input: n(2000), Output: n(1)}, plugins.Cost{}},
		"the provider says what it was": {"openai", "gpt-5", plugins.Usage{Input: n(2000), CacheRead: n(9), Output: n(1), ReportedCost: cost(5)}, plugins.Cost{}},
		"no price":                      {"openai", "nothing-5", plugins.Usage{Input: n(2000), CacheRead: n(9), Output: n(1)}, plugins.Cost{}},
	} {
		if got := Default().CacheSavings(test.provider, test.model, test.usage, Conditions{At: noon}); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestCharges(t *testing.T) {
	u := plugins.Usage{Input: n(5600), CacheRead: n(4000), CacheWrite: n(1500), Output: n(200), WebSearches: n(2)}
	charges, sum := Default().Charges("anthropic", "claude-sonnet-4-6", u, Conditions{At: noon})
	want := []Charge{
		{"cache_read", 4000, plugins.KnownCost(300_000_000), million, plugins.KnownCost(1_200_000)},
		{"cache_write", 1500, plugins.KnownCost(3_750_000_000), million, plugins.KnownCost(5_625_000)},
		{"input", 100, plugins.KnownCost(3_000_000_000), million, plugins.KnownCost(300_000)},
		{"output", 200, plugins.KnownCost(15_000_000_000), million, plugins.KnownCost(3_000_000)},
		{"web_search", 2, plugins.KnownCost(10_000_000), 1, plugins.KnownCost(20_000_000)},
	}
	if cost := Default().Cost("anthropic", "claude-sonnet-4-6", u, Conditions{At: noon}); !slices.Equal(charges, want) || sum != cost {
		t.Errorf("%+v of %v, want %+v of %v", charges, sum, want, cost)
	}
	for name, u := range map[string]plugins.Usage{"the provider's": {ReportedCost: plugins.KnownCost(5)}, "unknown": {}} {
		if charges, sum := Default().Charges("anthropic", "claude-sonnet-4-6", u, Conditions{At: noon}); charges != nil || sum.Valid {
			t.Errorf("a cost that is %s is made of %v", name, charges)
		}
	}
}

// The hot path allocates nothing, found by id or not.
func TestCostDoesNotAllocate(t *testing.T) {
	u := plugins.Usage{Input: n(5600), Output: n(200)}
	for _, model := range []string{"claude-sonnet-4-6", "claude-sonnet-4-6-20990101", "no-such-model"} {
		if a := testing.AllocsPerRun(100, func() { Default().Cost("anthropic", model, u, Conditions{At: noon}) }); a != 0 {
			t.Errorf("%s: %v allocations", model, a)
		}
	}
}

// A model that writes audio is never charged, and nothing is set aside for it, at the price of text: its own
// price counts, or else the cost is unknown.
func TestAudioIsNotPricedAsText(t *testing.T) {
	u := plugins.Usage{Input: plugins.Known(1_000_000), Output: plugins.Known(1_000_000), OutputAudio: plugins.Known(1_000_000)}
	text := plugins.Usage{Input: plugins.Known(1_000_000), Output: plugins.Known(1_000_000)}
	for _, test := range []struct {
		provider, model string
		cost            float64 // in dollars, 0 for an unknown one
	}{
		{"openai", "gpt-4o-audio-preview", 82.5}, {"openai", "gpt-4o-audio-preview-2024-12-17", 82.5}, {"openai", "gpt-4o-mini-audio-preview", 20.15},
		{"openai", "gpt-audio", 66.5}, {"openrouter", "openai/gpt-audio", 0}, {"openrouter", "openai/gpt-audio-mini", 0},
	} {
		m, ok := Default().Lookup(test.provider, test.model)
		if !ok {
			t.Errorf("%s has no %s", test.provider, test.model)
			continue
		}
		want := plugins.Cost{}
		if test.cost > 0 {
			want = plugins.KnownCost(plugins.Nanodollars(test.cost * 1e9))
		}
		if got := m.Cost(u, Conditions{}); got != want {
			t.Errorf("%s costs %v, want %v", test.model, got, want)
		}
		if got := m.MaxCost(text, Conditions{}); got != want {
			t.Errorf("%v is set aside for %s, want %v", got, test.model, want)
		}
	}
}
