package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/plugins/catalog"
)

// litellm is LiteLLM's table of models, by its providers and then by the name
// that the provider's API takes.
type litellm map[string]map[string]litellmModel

// The fields of an entry that are read. Rates are in the fields whose names say
// "cost", such as input_cost_per_token_above_200k_tokens_priority.
type litellmModel struct {
	Provider string `json:"litellm_provider"`
	Mode     string `json:"mode"`

	// How many times the price a call costs that a geography was chosen for, in the
	// fields of Anthropic, OpenAI and Vertex AI.
	Chosen struct {
		US json.Number `json:"us"`
	} `json:"provider_specific_entry"`
	Processing json.Number `json:"regional_processing_uplift_multiplier_us"`
	Endpoint   json.Number `json:"regional_endpoint_uplift_multiplier"`

	rates map[string]json.Number // dollars for one, by field
}

func parseLitellm(text []byte) (litellm, error) {
	var entries map[string]map[string]json.RawMessage
	if err := json.Unmarshal(text, &entries); err != nil {
		return nil, err
	}
	delete(entries, "sample_spec") // describes the fields
	l := make(litellm)
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		fields := entries[key]
		m := litellmModel{rates: make(map[string]json.Number)}
		whole, err := json.Marshal(fields)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(whole, &m); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		for name, value := range fields {
			var n json.Number
			if strings.Contains(name, "cost") && json.Unmarshal(value, &n) == nil && n != "" {
				m.rates[name] = n
			}
		}
		m.rates["web_search"] = webSearch(fields["search_context_cost_per_query"])
		names := l[m.Provider]
		if names == nil {
			names = make(map[string]litellmModel)
			l[m.Provider] = names
		}
		names[key] = m
	}
	return l, nil
}

// webSearch returns the price of a search if it does not depend on how much of the
// results the model reads, which no usage reports; else "".
func webSearch(raw json.RawMessage) json.Number {
	var sizes map[string]json.Number
	if json.Unmarshal(raw, &sizes) != nil || len(sizes) == 0 {
		return ""
	}
	prices := slices.Collect(maps.Values(sizes))
	if len(slices.Compact(prices)) != 1 {
		return ""
	}
	return prices[0]
}

// models are those of a provider of Weir's by the name that its API takes. Keys of
// regions, commitments, and sizes of images are no names.
func (l litellm) models(o origin) map[string]litellmModel {
	models := make(map[string]litellmModel)
	for _, p := range o.litellm {
		prefix, hasPrefix := p+"/", false
		for key := range l[p] {
			hasPrefix = hasPrefix || strings.HasPrefix(key, prefix)
		}
		for key, m := range l[p] {
			name, prefixed := strings.CutPrefix(key, prefix)
			if !prefixed && (strings.Contains(name, "/") || hasPrefix && !o.bare) || strings.Contains(name, "/") && !o.paths {
				continue
			}
			if _, ok := models[name]; !ok || prefixed {
				models[name] = m
			}
		}
	}
	return models
}

// uplifts are how many times the price those models cost for which a geography was
// chosen, by name. Vertex AI's lists all have the prefix of the first one.
func (l litellm) uplifts(o origin) map[string]*big.Rat {
	uplifts := make(map[string]*big.Rat)
	for _, p := range o.litellm {
		for key, m := range l[p] {
			name := strings.TrimPrefix(key, o.litellm[0]+"/")
			times, ok := new(big.Rat).SetString(string(cmp.Or(m.Chosen.US, m.Processing, m.Endpoint)))
			if ok && !strings.Contains(name, "/") {
				uplifts[name] = times
			}
		}
	}
	return uplifts
}

// regional are prices for calls for which a geography was chosen.
func regional(prices []catalog.Price, uplift *big.Rat) (regional []catalog.Price, err error) {
	if uplift == nil {
		return nil, nil
	}
	for _, p := range prices {
		p.Regional = true
		if !strings.Contains(p.Source, litellmPin.Name) {
			p.Source += ", " + litellmPin.Name
		}
		for _, known := range litellmRates {
			if r := p.Rate(known.rate); r.Known() && known.rate != "web_search" {
				if *r, err = rate(json.Number(r.String()), uplift); err != nil {
					return nil, err
				}
			}
		}
		regional = append(regional, p)
	}
	return regional, nil
}

// condition is the end of a rate's field that says when it holds.
var condition = regexp.MustCompile(`^(.*?)(?:_above_(\d+)k_tokens)?(?:_(priority|flex|batches))?$`)

// litellmRates are the fields of rates that are read: the names that the catalogue
// has for them, and how many of the unit it prices.
var litellmRates = map[string]struct {
	rate string
	per  int64
}{
	"input_cost_per_token":                      {"input", 1e6},
	"output_cost_per_token":                     {"output", 1e6},
	"cache_read_input_token_cost":               {"cache_read", 1e6},
	"cache_creation_input_token_cost":           {"cache_write", 1e6},
	"cache_creation_input_token_cost_above_1hr": {"cache_write_1h", 1e6},
	"input_cost_per_audio_token":                {"input_audio", 1e6},
	"cache_read_input_audio_token_cost":         {"cache_read_audio", 1e6},
	"input_cost_per_image_token":                {"input_image", 1e6},
	"output_cost_per_reasoning_token":           {"reasoning", 1e6},
	"output_cost_per_audio_token":               {"output_audio", 1e6},
	"output_cost_per_image_token":               {"output_image", 1e6},
	"web_search":                                {"web_search", 1},
}

// litellmPieces are the fields that price what models of a mode charge in place of tokens.
var litellmPieces = map[string]struct {
	fields []string
	rate   string
	per    int64
}{
	"rerank":              {[]string{"input_cost_per_query"}, "search_unit", 1},
	"ocr":                 {[]string{"ocr_cost_per_page"}, "page", 1},
	"audio_transcription": {[]string{"input_cost_per_second"}, "audio_hour", 3600},
	"image_generation":    {[]string{"output_cost_per_image", "input_cost_per_image"}, "image", 1},
}

// when is the conditions of a price that the end of a field says.
type when struct {
	tier  string
	above int64
}

// prices are the model's prices, none if it charges for what usages don't count.
func (m litellmModel) prices() ([]catalog.Price, error) {
	sets := map[when]*catalog.Price{{}: {}}
	for _, field := range slices.Sorted(maps.Keys(m.rates)) {
		parts := condition.FindStringSubmatch(field)
		known, ok := litellmRates[parts[1]]
		if !ok || m.rates[field] == "" {
			continue
		}
		w := when{tier: strings.TrimSuffix(parts[3], "es")}
		if parts[2] != "" {
			w.above, _ = strconv.ParseInt(parts[2], 10, 64)
			w.above *= 1000
		}
		p := sets[w]
		if p == nil {
			p = &catalog.Price{Tier: w.tier, InputAbove: w.above}
			sets[w] = p
		}
		r, err := rate(m.rates[field], big.NewRat(known.per, 1))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", field, err)
		}
		*p.Rate(known.rate) = r
	}
	base := sets[when{}]
	if base.Input.Nano()+base.Output.Nano() == 0 {
		return m.pieces()
	}
	var prices []catalog.Price
	for _, tier := range []string{"", "batch", "flex", "priority"} {
		var of []catalog.Price
		for w, p := range sets {
			if w.tier == tier && p.Input.Known() {
				of = append(of, withoutZeros(*p))
			}
		}
		slices.SortFunc(of, func(a, b catalog.Price) int { return int(a.InputAbove - b.InputAbove) })
		for i := range of {
			of[i].WebSearch = base.WebSearch
			if base.Output.Nano() == 0 {
				of[i].Output = base.Output // embeddings have none in any tier
			}
		}
		if len(of) > 0 && of[0].InputAbove == 0 {
			prices = append(prices, of...)
		}
	}
	return prices, nil
}

// pieces are the prices of a model that charges no tokens.
func (m litellmModel) pieces() ([]catalog.Price, error) {
	piece := litellmPieces[m.Mode]
	for _, field := range piece.fields {
		dollars := m.rates[field]
		if dollars == "" {
			continue
		}
		r, err := rate(dollars, big.NewRat(piece.per, 1))
		if err != nil || r.Nano() == 0 {
			return nil, err
		}
		var p catalog.Price
		*p.Rate(piece.rate) = r
		return []catalog.Price{p}, nil
	}
	return nil, nil
}

// withoutZeros takes out the rates of parts that are 0, which is written for what
// is unknown, and those that are the rate of the whole.
func withoutZeros(p catalog.Price) catalog.Price {
	for _, parts := range []struct {
		whole catalog.Rate
		rates []*catalog.Rate
	}{
		{catalog.Rate{}, []*catalog.Rate{&p.CacheRead, &p.CacheWrite, &p.CacheWrite1h, &p.CacheReadAudio, &p.WebSearch}},
		{p.Input, []*catalog.Rate{&p.InputAudio, &p.InputImage}},
		{p.Output, []*catalog.Rate{&p.Reasoning, &p.OutputAudio, &p.OutputImage}},
	} {
		for _, r := range parts.rates {
			if r.Nano() == 0 || *r == parts.whole {
				*r = catalog.Rate{}
			}
		}
	}
	return p
}
