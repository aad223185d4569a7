package catalog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/plugins"
)

func TestLookup(t *testing.T) {
	tests := []struct{ provider, name, want string }{
		// Ids and aliases.
		{"openai", "gpt-4o", "openai/gpt-4o"},
		{"openai", "gpt-5-2025-08-07", "openai/gpt-5"},
		{"openrouter", "anthropic/claude-sonnet-4.5", "openrouter/anthropic/claude-sonnet-4.5"},
		{"fireworks", "accounts/fireworks/models/gpt-oss-20b", "fireworks/accounts/fireworks/models/gpt-oss-20b"},
		// Match rules.
		{"openai", "gpt-5.6-sol-2026-12-24", "openai/gpt-5.6-sol"},
		{"openai", "gpt-4o-realtime-preview-2031-01-01", "openai/gpt-4o-realtime-preview"},
		{"gemini", "gemini-2.5-pro-preview-06-05", "gemini/gemini-2.5-pro"},
		{"bedrock", "us.meta.llama3-1-70b-instruct-v1:0", "bedrock/meta.llama3-1-70b-instruct-v1:0"},
		// Releases.
		{"openai", "gpt-4.1-2031-01-01", "openai/gpt-4.1"},
		{"openai", "gpt-4.1-latest", "openai/gpt-4.1"},
		{"xai", "grok-3-20310101", "xai/grok-3"},
		// Places.
		{"openai", "openai/gpt-4o", "openai/gpt-4o"},
		{"gemini", "models/gemini-2.5-flash", "gemini/gemini-2.5-flash"},
		{"vertex", "publishers/google/models/gemini-2.5-flash", "vertex/gemini-2.5-flash"},
		{"vertex", "projects/p/locations/global/publishers/anthropic/models/claude-haiku-4-5@20251001", "vertex/claude-haiku-4-5@20251001"},
		{"bedrock", "jp.amazon.nova-pro-v1:0", "bedrock/amazon.nova-pro-v1:0"},
		{"bedrock", "us.writer.palmyra-x5-v1:0", "bedrock/writer.palmyra-x5-v1:0"},
		{"bedrock", "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-opus-4-8", "bedrock/anthropic.claude-opus-4-8"},
		{"bedrock", "openai.gpt-oss-safeguard-20b:0", "bedrock/openai.gpt-oss-safeguard-20b"},
		// Regions that have other prices stay apart.
		{"bedrock", "global.anthropic.claude-opus-4-8", "bedrock/global.anthropic.claude-opus-4-8"},
		{"bedrock", "eu.amazon.nova-pro-v1:0", "bedrock/eu.amazon.nova-pro-v1:0"},
		// Resellers.
		{"azure", "gpt-4o-mini", "azure/gpt-4o-mini"},
		{"azure", "o1-pro", "openai/o1-pro"},
		{"vertex", "gemini-2.0-flash-001", "gemini/gemini-2.0-flash"},
		{"vertex", "claude-3-opus@20240229", "vertex/claude-3-opus"},
		// What is resold under its full name goes before a shortened name.
		{"azure", "gpt-4o-2024-05-13", "openai/gpt-4o-2024-05-13"},
		// None.
		{"openai", "gpt-zero", ""},
		{"openai", "", ""},
		{"openai", strings.Repeat("x", 10_000), ""},
		{"openrouter", "anthropic/claude-sonnet-4.5:free", ""},
		{"custom", "gpt-4o", ""},
		{"ollama", "gpt-oss:20b", ""},
	}
	for _, tt := range tests {
		t.Run(tt.provider+"/"+tt.name[:min(len(tt.name), 40)], func(t *testing.T) {
			for range 2 { // found, then remembered
				m, ok := Default().Lookup(tt.provider, tt.name)
				got := ""
				if ok {
					got = m.Provider + "/" + m.ID
				}
				if got != tt.want {
					t.Errorf("Lookup = %q, want %q", got, tt.want)
				}
			}
		})
	}
}

func TestMatch(t *testing.T) {
	tests := []struct {
		rule  Match
		match []string
		not   []string
	}{
		{Match{Equals: "a"}, []string{"a"}, []string{"", "aa", "A"}},
		{Match{StartsWith: "a"}, []string{"a", "ab"}, []string{"", "ba"}},
		{Match{EndsWith: "a"}, []string{"a", "ba"}, []string{"", "ab"}},
		{Match{Contains: "a"}, []string{"a", "bab"}, []string{"", "b"}},
		{Match{Regex: regexp.MustCompile(`^a\d$`)}, []string{"a1"}, []string{"a", "a12", "ba1"}},
		{Match{Not: &Match{Equals: "a"}}, []string{"", "b"}, []string{"a"}},
		{Match{Or: []Match{{Equals: "a"}, {Equals: "b"}}}, []string{"a", "b"}, []string{"ab"}},
		{Match{And: []Match{{StartsWith: "a"}, {EndsWith: "b"}}}, []string{"ab", "axb"}, []string{"a", "b", "ba"}},
		{Match{And: []Match{{StartsWith: "a"}, {Not: &Match{Contains: "x"}}}}, []string{"ab"}, []string{"ax", "b"}},
		{Match{}, nil, []string{"", "a"}},
	}
	for _, tt := range tests {
		for _, s := range tt.match {
			if !tt.rule.Matches(s) {
				t.Errorf("%+v does not match %q", tt.rule, s)
			}
		}
		for _, s := range tt.not {
			if tt.rule.Matches(s) {
				t.Errorf("%+v matches %q", tt.rule, s)
			}
		}
	}
}

func TestModels(t *testing.T) {
	models := slices.Collect(Default().Models())
	if len(models) < 1000 {
		t.Fatalf("only %d models", len(models))
	}
	var providers []string
	for i, m := range models {
		if i == 0 || models[i-1].Provider != m.Provider {
			providers = append(providers, m.Provider)
		} else if cmp.Compare(models[i-1].ID, m.ID) >= 0 {
			t.Errorf("%s: %s comes before %s", m.Provider, models[i-1].ID, m.ID)
		}
		if got, ok := Default().Lookup(m.Provider, m.ID); !ok || got != m {
			t.Errorf("%s: %s is not found by its id", m.Provider, m.ID)
		}
	}
	if all := slices.Compact(slices.Sorted(slices.Values(providers))); len(all) != len(providers) {
		t.Errorf("a provider's models are apart: %v", providers)
	}
}

func TestFacts(t *testing.T) {
	m, _ := Default().Lookup("openai", "gpt-5")
	if m.Name != "GPT-5" || m.Owner != "openai" || m.Context != 400_000 || m.MaxOutput != 128_000 || m.Released.String() != "2025-08-07" ||
		!m.Reasoning || !m.ToolCall || !m.StructuredOutput || m.Temperature || !slices.Contains(m.Efforts, "minimal") {
		t.Errorf("gpt-5 is %+v", m)
	}
	if m, _ := Default().Lookup("gemini", "gemini-2.5-pro"); m.Budget != (plugins.Budget{Min: 128, Max: 32768}) {
		t.Errorf("gemini-2.5-pro has budget %+v", m.Budget)
	}
	if m, _ := Default().Lookup("deepseek", "deepseek-v4-pro"); m.Interleaved != "reasoning_content" {
		t.Errorf("deepseek-v4-pro takes reasoning back in %q", m.Interleaved)
	}
	if m, _ := Default().Lookup("groq", "llama-3.1-8b-instant"); m.Multimodal() {
		t.Error("llama-3.1-8b-instant is multimodal")
	}
	if m, _ := Default().Lookup("openai", "gpt-4o"); !m.Multimodal() {
		t.Errorf("gpt-4o takes %v and is not multimodal", m.Input)
	}
	if m := (&Model{Capabilities: plugins.Capabilities{Input: []string{"text"}, Output: []string{"text", "image"}}}); !m.Multimodal() {
		t.Error("two kinds of output are not multimodal")
	}
}

func TestVersion(t *testing.T) {
	if v := Default().Version(); !regexp.MustCompile(`^\d{4}-\d\d-\d\d$`).MatchString(v) {
		t.Errorf("built-in version is %q", v)
	}
	own, err := load(t, `{}`)
	if err != nil {
		t.Fatal(err)
	}
	if built := Default().Date(); built.Format(time.DateOnly) != Default().Version() || !own.Date().Equal(built) {
		t.Errorf("the dates are %v and %v", built, own.Date())
	}
}

func load(t *testing.T, text string) (*Catalog, error) {
	path := filepath.Join(t.TempDir(), "prices.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Default().With(path)
}

func TestOperatorsModelsWin(t *testing.T) {
	c, err := load(t, `{"providers":[
		{"id":"openai","models":[
			{"id":"gpt-4o","prices":[{"input":"2"},{"from":"2026-06-01","input":1.5,"output":"6.000000001"}]},
			{"id":"ours","aliases":["gpt-5-chat","gpt-4o-mini"],"match":{"starts_with":"ft:gpt-4o"},"prices":[{"input":1,"output":0}]},
			{"id":"numbered","match":{"regex":"^n\\d$"},"prices":[{"input":1,"output":0}]}]},
		{"id":"lab","fallback":["openai"],"models":[
			{"id":"llama","input":["text","image"],"output":["text"],"prices":[{"request":"0.001"},{"tier":"night","input":0}]}]}]}`)
	if err != nil {
		t.Fatal(err)
	}
	million := plugins.Usage{Input: n(1_000_000), Output: n(1_000_000)}
	for _, tt := range []struct {
		provider, model, tier string
		want                  plugins.Cost
	}{
		{"openai", "gpt-4o", "", plugins.KnownCost(7_500_000_001)},
		{"openai", "ours", "", plugins.KnownCost(nano)},
		{"openai", "gpt-5-chat", "", plugins.KnownCost(nano)},                 // their alias
		{"openai", "gpt-4o-mini", "", plugins.KnownCost(750_000_000)},         // but an id is an id
		{"openai", "ft:gpt-4o-2024-08-06:us::x", "", plugins.KnownCost(nano)}, // their rule
		{"openai", "n7", "", plugins.KnownCost(nano)},                         // in which a backslash is escaped
		{"openai", "gpt-5", "", plugins.KnownCost(11_250_000_000)},            // untouched
		{"lab", "gpt-5", "", plugins.KnownCost(11_250_000_000)},               // resold
		{"lab", "llama", "", plugins.Cost{}},                                  // tokens without a price
		{"lab", "llama", "night", plugins.Cost{}},                             // output without a price
	} {
		if got := c.Cost(tt.provider, tt.model, million, Conditions{At: noon, Tier: tt.tier}); got != tt.want {
			t.Errorf("%s/%s costs %+v, want %+v", tt.provider, tt.model, got, tt.want)
		}
	}
	m, _ := c.Lookup("openai", "gpt-4o")
	if m.Name == "" || m.Context == 0 || !m.Multimodal() || len(m.Prices) != 2 {
		t.Errorf("want the built-in facts and the file's prices: %+v", m)
	}
	if got := Default().Cost("openai", "gpt-4o", million, Conditions{At: noon}); got != plugins.KnownCost(12_500_000_000) {
		t.Errorf("the built-in price became %+v", got)
	}
	if !regexp.MustCompile(`^` + Default().Version() + `\+[0-9a-f]{12}$`).MatchString(c.Version()) {
		t.Errorf("version is %q", c.Version())
	}
}

func TestOperatorsErrors(t *testing.T) {
	model := func(fields string) string {
		return `{"providers":[{"id":"openai","models":[{"id":"a"},{"id":"b",` + fields + `}]}]}`
	}
	tests := []struct{ text, want string }{
		{`{`, "is not JSON; check"},
		{`[]`, "must be an object"},
		{`{"provider":[]}`, "provider: unknown field; docs/catalog.md"},
		{`{"providers":{}}`, "providers: must be an array"},
		{`{"providers":[{}]}`, "providers[0].id: must be a string that is not empty"},
		{`{"providers":[{"id":"openai","models":[{"id":""}]}]}`, "providers[0].models[0].id: must be a string"},
		{model(`"contxt":1`), "providers[0].models[1].contxt: unknown field"},
		{model(`"context":-1`), "providers[0].models[1].context: must be a whole number"},
		{model(`"context":1.5`), "context: must be a whole number"},
		{model(`"reasoning":"yes"`), "reasoning: must be true or false"},
		{model(`"input":["text",1]`), "input[1]: must be a string"},
		{model(`"released":"2026-13-01"`), `released: "2026-13-01" is not a date; write it as YYYY-MM-DD`},
		{model(`"prices":[{"input":"1"},{"cache_read":"1,5"}]`), `providers[0].models[1].prices[1].cache_read: "1,5" is not a price; write`},
		{model(`"prices":[{"input":-1}]`), `prices[0].input: "-1" is not a price`},
		{model(`"prices":[{"input":1e-3}]`), `prices[0].input: "1e-3" is not a price`},
		{model(`"prices":[{"input":null}]`), `prices[0].input: must be`},
		{model(`"prices":[{"input":"0.0000000001"}]`), "prices[0].input: \"0.0000000001\" has more than nine decimals; round it"},
		{model(`"prices":[{"input":"99999999999"}]`), "is above a billion dollars"},
		{model(`"prices":[{"inptu":1}]`), "prices[0].inptu: unknown field"},
		{model(`"prices":[{"hours":"8-17"}]`), `prices[0].hours: "8-17" is not a daily window; write it in UTC as HH:MM-HH:MM`},
		{model(`"match":{}`), "match: must have one rule"},
		{model(`"match":{"equals":"a","contains":"b"}`), "match: must have one rule"},
		{model(`"match":{"or":[]}`), "match.or: must not be empty"},
		{model(`"match":{"or":[{"regex":"("}]}`), "match.or[0].regex: error parsing regexp"},
	}
	for _, tt := range tests {
		_, err := load(t, tt.text)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s\n gives %v\n want %s", tt.text, err, tt.want)
		}
	}
	if _, err := Default().With(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there loads")
	}
}

// Names that clients make up cannot fill the memory, nor race.
func TestLookupIsBounded(t *testing.T) {
	c, err := Parse([]byte(`{"providers":[{"id":"p","models":[{"id":"m"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 2 * maxNames {
				c.Lookup("p", fmt.Sprintf("name-%d-%d", g, i))
				if m, ok := c.Lookup("p", "x/m"); !ok || m.ID != "m" {
					t.Errorf("x/m is %v", m)
				}
			}
		})
	}
	wg.Wait()
	if got := len(c.providers["p"].found.models); got > maxNames {
		t.Errorf("%d names are remembered", got)
	}
}

// A miss is what a stranger can make cost most.
func BenchmarkLookupMiss(b *testing.B) {
	c := Default()
	for i := 0; b.Loop(); i++ {
		c.Lookup("bedrock", fmt.Sprintf("us.anthropic.no-such-model-%d-v1:0", i))
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(`{"version":"1","sources":[],"providers":[{"id":"p","fallback":["p"],"models":[{"id":"m","aliases":["n"],"match":{"and":[{"contains":"m"},{"not":{"regex":"x$"}}]},"budget":{"min":1},"prices":[{"from":"2026-01-01","hours":"22:00-06:00","tier":"flex","input_above":10,"input":"0.1","output":2}]}]}]}`, "m-2026-01-01", int64(11))
	f.Add(`{"providers":[{"id":"p","models":[{"id":"us."},{"id":"-latest"}]}]}`, "us.", int64(0))
	f.Fuzz(func(t *testing.T, text, name string, count int64) {
		c, err := Parse([]byte(text))
		if err != nil {
			if err.Error() == "" {
				t.Error("an error says nothing")
			}
			return
		}
		for m := range c.Models() {
			if got, ok := c.Lookup(m.Provider, m.ID); ok && got.ID != m.ID {
				t.Errorf("%q finds %q", m.ID, got.ID)
			}
			cost := c.Cost(m.Provider, name, plugins.Usage{Input: n(count), CacheRead: n(count), Output: n(count)}, Conditions{At: noon, Tier: "flex"})
			if cost.N < 0 {
				t.Errorf("cost is %+v", cost)
			}
		}
	})
}

// What an operator's file says holds for its catalogue alone.
func TestWithLeavesTheDefaultAsItIs(t *testing.T) {
	before, err := readBuiltin()
	if err != nil {
		t.Fatal(err)
	}
	var over strings.Builder
	over.WriteString(`{"providers":[`)
	for i, p := range before.order {
		if i > 0 {
			over.WriteString(",")
		}
		fmt.Fprintf(&over, `{"id":%q,"fallback":["openai"],"models":[{"id":"new"}`, p.id)
		for _, m := range p.models {
			fmt.Fprintf(&over, `,{"id":%q,"aliases":["alias-%[1]s"],"context":7,"prices":[{"input":"1"}],"match":{"equals":"x"}}`, m.ID)
		}
		over.WriteString("]}")
	}
	over.WriteString("]}")
	file := filepath.Join(t.TempDir(), "catalog.json")
	if err := os.WriteFile(file, []byte(over.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Default().With(file); err != nil {
		t.Fatal(err)
	}
	for id, p := range before.providers {
		d := Default().providers[id]
		if !reflect.DeepEqual(d.models, p.models) || !reflect.DeepEqual(d.named, p.named) || !reflect.DeepEqual(d.ruled, p.ruled) || !slices.Equal(d.fallback, p.fallback) {
			t.Errorf("%s has changed", id)
		}
	}
}

// A catalogue that is written and read again finds the same models at the same prices by every name,
// also where an operator's file has changed it.
func TestMarshalledCatalogueIsTheSame(t *testing.T) {
	path := filepath.Join(t.TempDir(), "prices.json")
	if err := os.WriteFile(path, []byte(`{"providers": [
		{"id": "openai", "models": [
			{"id": "own", "aliases": ["gpt-4o-mini-2024-07-18"], "match": {"starts_with": "gpt-4o"}, "prices": [{"tier": "batch", "hours": "16:30-00:30", "input": "1"}]},
			{"id": "gpt-4o-mini", "prices": [{"input": "0.1", "output": "unknown"}]}
		]},
		{"id": "acme", "fallback": ["openai"], "models": []}
	]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	want, err := Default().With(path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if got.Version() != want.Version() {
		t.Errorf("version %q, want %q", got.Version(), want.Version())
	}
	if again, err := json.Marshal(got); err != nil || !bytes.Equal(again, text) {
		t.Errorf("written again, it differs: %v", err)
	}
	for _, p := range want.order {
		q := got.providers[p.id]
		if len(q.models) != len(p.models) || len(q.ruled) != len(p.ruled) || len(q.named) != len(p.named) || !slices.Equal(q.fallback, p.fallback) {
			t.Errorf("%s differs", p.id)
			continue
		}
		for name, m := range p.named {
			n := q.named[name]
			if n == nil || n.ID != m.ID || !slices.EqualFunc(n.Prices, m.Prices, func(a, b Price) bool { return a == b }) {
				t.Errorf("%s %s is %+v, want %+v", p.id, name, n, m)
			}
		}
		for i, m := range p.ruled {
			if q.ruled[i].ID != m.ID {
				t.Errorf("%s: rule %d is of %s, want %s", p.id, i, q.ruled[i].ID, m.ID)
			}
		}
	}
	if m, ok := got.Lookup("acme", "gpt-4o-mini-2024-07-18"); !ok || m.ID != "own" {
		t.Errorf("the operator's alias finds %+v", m)
	}
}
