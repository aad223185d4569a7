package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins/catalog"
)

const genaiData = `
import datetime
from decimal import Decimal

from .types import *

__all__ = ('providers',)

providers: list[Provider] = [
    Provider(
        id='maker',
        models=[
            ModelInfo(
                id='one',
                match=ClauseOr(or_=[ClauseEquals(equals='one'), ClauseEquals(equals='one-latest'), ClauseStartsWith(starts_with='one-20')]),
                prices=[
                    ConditionalPrice(constraint=None, prices=ModelPrice(input_mtok=Decimal('3'), output_mtok=Decimal('4'))),
                    ConditionalPrice(
                        constraint=StartDateConstraint(start_date=datetime.date(2026, 3, 16)),
                        prices=ModelPrice(
                            input_mtok=TieredPrices(base=Decimal('1'), tiers=[Tier(start=200000, price=Decimal('2'))]),
                            output_mtok=Decimal('2'),
                            web_searches_kcount=Decimal('10'),
                        ),
                    ),
                    ConditionalPrice(
                        constraint=TimeOfDateConstraint(
                            start_time=datetime.time(1, 0, tzinfo=datetime.timezone.utc),
                            end_time=datetime.time(4, 30, tzinfo=datetime.timezone.utc),
                        ),
                        prices=ModelPrice(input_mtok=Decimal('9')),
                    ),
                ],
                price_variants=[
                    PriceVariant(
                        when={'processing': 'batch'},
                        prices=ModelPrice(input_mtok=Decimal('0.5'), output_mtok=Decimal('1')),
                        constraint=StartDateConstraint(start_date=datetime.date(2026, 10, 14)),
                    ),
                    PriceVariant(when={'service_tier': 'default'}, prices=ModelPrice()),
                    PriceVariant(when={'route': 'eu'}, prices=ModelPrice(input_mtok=Decimal('7'))),
                ],
            ),
            ModelInfo(id='hear', match=ClauseEquals(equals='hear'), prices=ModelPrice(audio_hours=Decimal('0.36'), input_audio_hours=Decimal('0.36'))),
            ModelInfo(id='read', match=ClauseEquals(equals='read'), prices=ModelPrice(input_document_kpages=Decimal('4'))),
            ModelInfo(id='speak', match=ClauseEquals(equals='speak'), prices=ModelPrice(input_mchars=Decimal('15'))),
        ],
    ),
    Provider(id='seller', fallback_model_providers=['maker'], models=[]),
]
`

func testGenai(t *testing.T) *genai {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data.py")
	if err := os.WriteFile(path, []byte(genaiData), 0o600); err != nil {
		t.Fatal(err)
	}
	g, err := readGenai(path)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// equalPrices compares prices by their JSON.
func equalPrices(t *testing.T, name string, got []catalog.Price, want string) {
	t.Helper()
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != want {
		t.Errorf("%s has\n%s\nwant\n%s", name, text, want)
	}
}

func TestGenaiPricesAreRead(t *testing.T) {
	g := testGenai(t)
	for name, want := range map[string]string{
		"one-2031": `[{"input":"3","output":"4"},` +
			`{"from":"2026-03-16","input":"1","output":"2","web_search":"0.01"},` +
			`{"from":"2026-03-16","input_above":200000,"input":"2","output":"2","web_search":"0.01"},` +
			`{"from":"2026-03-16","hours":"01:00-04:30","input":"9"},` +
			`{"from":"2026-10-14","tier":"batch","input":"0.5","output":"1","web_search":"0.01"}]`,
		"hear":  `[{"audio_hour":"0.36"}]`,
		"read":  `[{"page":"0.004"}]`,
		"speak": `null`,
	} {
		r := g.find("seller", name)
		if r == nil {
			t.Errorf("%s is not found at who resells it", name)
			continue
		}
		equalPrices(t, name, r.prices, want)
	}
	if r := g.find("maker", "none"); r != nil {
		t.Errorf("%q is found for a name that nobody has", r.ID)
	}
}

func TestLitellmIsRead(t *testing.T) {
	l, err := parseLitellm([]byte(`{
		"sample_spec": {"litellm_provider": "one of ...", "input_cost_per_token": 0},
		"lab/one": {"litellm_provider":"lab","mode":"chat","input_cost_per_token":1e-06,"output_cost_per_token":2e-06,
			"cache_read_input_token_cost":1.0000000000000001e-07,"input_cost_per_image_token":1e-06,
			"input_cost_per_token_above_200k_tokens":2e-06,"output_cost_per_token_above_200k_tokens":3e-06,
			"input_cost_per_token_flex":5e-07,"output_cost_per_token_flex":1e-06,
			"input_cost_per_token_above_200k_tokens_priority":4e-06,
			"input_cost_per_token_ultrafast":9e-06,
			"search_context_cost_per_query":{"low":0.01,"high":0.01}},
		"lab/searches": {"litellm_provider":"lab","mode":"chat","input_cost_per_token":1e-06,"output_cost_per_token":2e-06,
			"search_context_cost_per_query":{"low":0.01,"high":0.02}},
		"lab/embed": {"litellm_provider":"lab","mode":"embedding","input_cost_per_token":1e-07,"output_cost_per_token":0.0},
		"lab/hear": {"litellm_provider":"lab","mode":"audio_transcription","input_cost_per_second":0.0001,"output_cost_per_second":0.0001},
		"lab/rank": {"litellm_provider":"lab","mode":"rerank","input_cost_per_query":0.002,"input_cost_per_token":0.0,"output_cost_per_token":0.0},
		"lab/read": {"litellm_provider":"lab","mode":"ocr","ocr_cost_per_page":0.004},
		"lab/draw": {"litellm_provider":"lab","mode":"image_generation","output_cost_per_image":0.04},
		"lab/see": {"litellm_provider":"lab","mode":"chat","input_cost_per_image":0.04},
		"lab/free": {"litellm_provider":"lab","mode":"chat","input_cost_per_token":0.0,"output_cost_per_token":0.0},
		"hd/1024-x-1024/draw": {"litellm_provider":"lab","mode":"image_generation","input_cost_per_image":0.08},
		"lab/eu/one": {"litellm_provider":"lab","mode":"chat","input_cost_per_token":2e-06,"output_cost_per_token":2e-06}}`))
	if err != nil {
		t.Fatal(err)
	}
	models := l.models(origin{litellm: []string{"lab"}})
	for name, want := range map[string]string{
		"one": `[{"input":"1","output":"2","cache_read":"0.1","web_search":"0.01"},` +
			`{"input_above":200000,"input":"2","output":"3","web_search":"0.01"},` +
			`{"tier":"flex","input":"0.5","output":"1","web_search":"0.01"},` +
			`{"tier":"ultrafast","input":"9","web_search":"0.01"}]`,
		"searches": `[{"input":"1","output":"2"}]`,
		"embed":    `[{"input":"0.1","output":"0"}]`,
		"hear":     `[{"audio_hour":"0.36"}]`,
		"rank":     `[{"search_unit":"0.002"}]`,
		"read":     `[{"page":"0.004"}]`,
		"draw":     `[{"image":"0.04"}]`,
		"see":      `null`,
		"free":     `null`,
	} {
		m, ok := models[name]
		if !ok {
			t.Errorf("%s is missing", name)
			continue
		}
		delete(models, name)
		equalPrices(t, name, m.prices, want)
	}
	for name := range models {
		t.Errorf("%s is no name that an API takes", name)
	}
	if paths := l.models(origin{litellm: []string{"lab"}, paths: true}); len(paths) == 0 || paths["eu/one"].Provider == "" {
		t.Errorf("names with slashes are missing where there are some: %v", paths)
	}
}

// setOverride has one override in place of all for the time of a test.
func setOverride(t *testing.T, line string) *override {
	t.Helper()
	lines, err := parseOverrides(line)
	if err != nil {
		t.Fatal(err)
	}
	kept := overrides
	t.Cleanup(func() { overrides = kept })
	overrides = lines
	return lines[0]
}

// A name of a rule that is priced differently is a model of its own.
func TestNamesWithOtherPricesAreModels(t *testing.T) {
	l, err := parseLitellm([]byte(`{"lab/one-latest": {"litellm_provider":"lab","mode":"chat","input_cost_per_token":5e-06,"output_cost_per_token":6e-06}}`))
	if err != nil {
		t.Fatal(err)
	}
	d, err := parseModelsDev([]byte(`{"lab":{"models":{"one-latest":{"id":"one-latest","last_updated":"2026-01-02","cost":{"input":5,"output":6}},
		"one":{"id":"one","name":"One","limit":{"context":1000},"last_updated":"2026-01-01","cost":{"input":1,"output":2,"tiers":[{"tier":{"size":200000},"input":2,"output":2}]}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	c := collections{testGenai(t), l, d}
	o, err := c.offers(origin{id: "lab", genai: "maker", litellm: []string{"lab"}, modelsDev: []string{"lab"}})
	if err != nil {
		t.Fatal(err)
	}
	setOverride(t, "genai-prices lab one-latest standard: it is another model there")
	models, err := o.models()
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, m := range models {
		ids = append(ids, m.ID)
		if m.ID == "one" && (m.Match == nil || m.Context != 1000 || slices.Contains(m.Aliases, "one-latest")) {
			t.Errorf("one is %+v", m)
		}
		if m.ID == "one-latest" {
			equalPrices(t, m.ID, m.Prices, `[{"source":"litellm","input":"5","output":"6"}]`)
		}
	}
	if want := []string{"one", "hear", "read", "speak", "one-latest"}; !slices.Equal(ids, want) {
		t.Errorf("models are %v, want %v", ids, want)
	}
	if d.source().Date != "2026-01-02" {
		t.Errorf("models.dev is of %s", d.source().Date)
	}
}

func TestOverrides(t *testing.T) {
	lines, err := parseOverrides("# why\n\nlitellm groq whisper-* flex: rounds\nlitellm azure * standard: unknown\n")
	if err != nil || len(lines) != 2 {
		t.Fatalf("got %v, %v", lines, err)
	}
	for _, tt := range []struct {
		source, provider, model, tier string
		want                          bool
	}{
		{"litellm", "groq", "whisper-large", "flex", true},
		{"litellm", "groq", "whisper-large", "", false},
		{"genai-prices", "groq", "whisper-large", "flex", false},
		{"litellm", "azure", "gpt", "", true},
		{"litellm", "azure", "gpt", "flex", true},
	} {
		got := slices.ContainsFunc(lines, func(o *override) bool { return o.matches(tt.source, tt.provider, tt.model, tt.tier) })
		if got != tt.want {
			t.Errorf("%+v is overridden: %v", tt, got)
		}
	}
	for _, line := range []string{"litellm groq standard: three fields", "litellm groq whisper standard:", "litellm groq whisper standard"} {
		if _, err := parseOverrides(line); err == nil || !strings.Contains(err.Error(), "overrides.txt:1: want") {
			t.Errorf("%q gives %v", line, err)
		}
	}
}

// The check counts a difference without an override, and notes which overrides are needed.
func TestCheckWantsReasons(t *testing.T) {
	line := setOverride(t, "litellm p m flex: rounds")
	q := quote{"litellm", prices(t, `[{"input":2,"output":2},{"tier":"flex","input":1,"output":1}]`)}
	if n := q.check("p", "m", q.prices); n != 0 || line.used {
		t.Errorf("with the same prices %d differences have no reason, and the override is used: %v", n, line.used)
	}
	if n := q.check("p", "m", prices(t, `[{"input":3,"output":2},{"tier":"flex","input":2,"output":1}]`)); n != 1 || !line.used {
		t.Errorf("with other prices %d differences have no reason, and the override is used: %v", n, line.used)
	}
}

// A catalogue that lacks a price, has another, or has none for a tier differs; one
// that has the price under another name of the model does not.
func TestDifferences(t *testing.T) {
	ours, err := catalog.Parse([]byte(`{"providers":[{"id":"p","models":[{"id":"m","prices":[{"input":1,"output":2},{"tier":"flex","input":"0.5","output":1},
		{"tier":"priority","input":2,"output":4},{"tier":"priority","input_above":1000}]}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	m, _ := ours.Lookup("p", "m")
	for _, tt := range []struct {
		theirs, tier string
		want         bool
	}{
		{`[{"input":1,"output":2}]`, "", false},
		{`[{"input":"1.001","output":2}]`, "", false},
		{`[{"input":"1.1","output":2}]`, "", true},
		{`[{"input":1,"output":2},{"input_above":1000,"input":2,"output":2}]`, "", true},
		{`[{"tier":"flex","input":"0.5","output":1}]`, "flex", false},
		{`[{"tier":"flex","input":"0.6","output":1}]`, "flex", true},
		{`[{"tier":"batch","input":"0.5","output":1}]`, "batch", true},
		{`[{"tier":"priority","input":2,"output":4}]`, "priority", false}, // of long inputs nobody knows
	} {
		if got := differs(m.Prices, prices(t, tt.theirs), tt.tier); (got != "") != tt.want {
			t.Errorf("%s: %q", tt.theirs, got)
		}
	}
}

// Cached input costs half where the provider says so and no source has its rate.
func TestCachedInputCostsHalf(t *testing.T) {
	l, err := parseLitellm([]byte(`{
		"lab/one": {"litellm_provider":"lab","mode":"chat","input_cost_per_token":1e-06,"output_cost_per_token":2e-06},
		"lab/two": {"litellm_provider":"lab","mode":"chat","input_cost_per_token":1e-06,"output_cost_per_token":2e-06,"cache_read_input_token_cost":1e-07}}`))
	if err != nil {
		t.Fatal(err)
	}
	o, err := collections{testGenai(t), l, nil}.offers(origin{id: "lab", litellm: []string{"lab"}, halfReads: true})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"one": `[{"source":"litellm","input":"1","output":"2","cache_read":"0.5"}]`,
		"two": `[{"source":"litellm","input":"1","output":"2","cache_read":"0.1"}]`,
	} {
		prices, err := o.prices(name)
		if err != nil {
			t.Fatal(err)
		}
		equalPrices(t, name, prices, want)
	}
}
