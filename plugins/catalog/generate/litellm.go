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
type litellm map[string]map[string]*litellmModel

// litellmModel has the fields of an entry that are read. Rates are in the fields whose
// names say "cost", such as input_cost_per_token_above_200k_tokens_priority.
type litellmModel struct {
	Provider string                 `json:"litellm_provider"`
	Mode     string                 `json:"mode"`
	Searches map[string]json.Number `json:"search_context_cost_per_query"`

	// How many times the price a call costs that a geography was chosen for, in the
	// fields of Anthropic, OpenAI and Vertex AI.
	Chosen struct {
		US json.Number `json:"us"`
	} `json:"provider_specific_entry"`
	Processing json.Number `json:"regional_processing_uplift_multiplier_us"`
	Endpoint   json.Number `json:"regional_endpoint_uplift_multiplier"`

	rates  map[string]json.Number // dollars for one, by field
	prices []catalog.Price        // nil if the model charges for what usages do not count
}

func parseLitellm(text []byte) (litellm, error) {
	var entries map[string]json.RawMessage
	if err := json.Unmarshal(text, &entries); err != nil {
		return nil, err
	}
	delete(entries, "sample_spec") // describes the fields
	l := make(litellm)
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		m := &litellmModel{rates: make(map[string]json.Number)}
		var fields map[string]json.RawMessage
		err := cmp.Or(json.Unmarshal(entries[key], m), json.Unmarshal(entries[key], &fields))
		for name, value := range fields {
			var n json.Number
			if strings.Contains(name, "cost") && json.Unmarshal(value, &n) == nil && n != "" {
				m.rates[name] = n
			}
		}
		// What a search costs may depend on how much of the results the model reads, which
		// no usage reports.
		if prices := slices.Compact(slices.Collect(maps.Values(m.Searches))); len(prices) == 1 {
			m.rates["web_search"] = prices[0]
		}
		if err := cmp.Or(err, m.readPrices()); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		if l[m.Provider] == nil {
			l[m.Provider] = make(map[string]*litellmModel)
		}
		l[m.Provider][key] = m
	}
	return l, nil
}

// models are those of a provider of Weir's by the name that its API takes. Keys of
// regions, commitments, and sizes of images are no names.
func (l litellm) models(o origin) map[string]*litellmModel {
	models := make(map[string]*litellmModel)
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
		for _, known := range litellmUnits {
			if r := p.Rate(known.rate); r.Known() && known.rate != "web_search" {
				if err := (unit{known.rate, uplift}).set(&p, json.Number(r.String())); err != nil {
					return nil, err
				}
			}
		}
		regional = append(regional, p)
	}
	return regional, nil
}

// condition is the end of a rate's field that says when it holds.
var condition = regexp.MustCompile(`^(.*?)(?:_above_(\d+)k_tokens)?(?:_(priority|flex|batches|ultrafast))?$`)

var litellmUnits = map[string]unit{
	"input_cost_per_token":                      {"input", million},
	"output_cost_per_token":                     {"output", million},
	"cache_read_input_token_cost":               {"cache_read", million},
	"cache_creation_input_token_cost":           {"cache_write", million},
	"cache_creation_input_token_cost_above_1hr": {"cache_write_1h", million},
	"input_cost_per_audio_token":                {"input_audio", million},
	"cache_read_input_audio_token_cost":         {"cache_read_audio", million},
	"input_cost_per_image_token":                {"input_image", million},
	"output_cost_per_reasoning_token":           {"reasoning", million},
	"output_cost_per_audio_token":               {"output_audio", million},
	"output_cost_per_image_token":               {"output_image", million},
	"web_search":                                {"web_search", one},
}

// litellmPieces are the fields that price what models of a mode charge in place of tokens.
var litellmPieces = map[string]struct {
	fields []string
	unit
}{
	"rerank":              {[]string{"input_cost_per_query"}, unit{"search_unit", one}},
	"ocr":                 {[]string{"ocr_cost_per_page"}, unit{"page", one}},
	"audio_transcription": {[]string{"input_cost_per_second"}, unit{"audio_hour", big.NewRat(3600, 1)}},
	"image_generation":    {[]string{"output_cost_per_image", "input_cost_per_image"}, unit{"image", one}},
}

type when struct {
	tier  string
	above int64
}

// readPrices sets the prices, unless the model charges for what usages do not count.
func (m *litellmModel) readPrices() error {
	sets := map[when]*catalog.Price{{}: {}}
	for field, dollars := range m.rates {
		parts := condition.FindStringSubmatch(field)
		unit, ok := litellmUnits[parts[1]]
		if !ok {
			continue
		}
		w := when{tier: strings.TrimSuffix(parts[3], "es")}
		thousands, _ := strconv.ParseInt(parts[2], 10, 64) // "" is 0
		w.above = thousands * 1000
		if sets[w] == nil {
			sets[w] = &catalog.Price{Tier: w.tier, InputAbove: w.above}
		}
		if err := unit.set(sets[w], dollars); err != nil {
			return fmt.Errorf("%s: %w", field, err)
		}
	}
	base := sets[when{}]
	if base.Input.Nano()+base.Output.Nano() == 0 {
		return m.readPieces()
	}
	for _, tier := range []string{"", "batch", "flex", "priority", "ultrafast"} {
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
			m.prices = append(m.prices, of...)
		}
	}
	return nil
}

// readPieces sets the price of a model that charges no tokens.
func (m *litellmModel) readPieces() error {
	piece := litellmPieces[m.Mode]
	for _, field := range piece.fields {
		if dollars := m.rates[field]; dollars != "" {
			var p catalog.Price
			err := piece.set(&p, dollars)
			if p.Rate(piece.rate).Nano() > 0 {
				m.prices = []catalog.Price{p}
			}
			return err
		}
	}
	return nil
}

// withoutZeros takes out the rates of parts that are 0, which is written for what
// is unknown, and those that are the rate of the whole.
func withoutZeros(p catalog.Price) catalog.Price {
	for part, total := range map[*catalog.Rate]catalog.Rate{
		&p.CacheRead: {}, &p.CacheWrite: {}, &p.CacheWrite1h: {}, &p.CacheReadAudio: {}, &p.WebSearch: {},
		&p.InputAudio: p.Input, &p.InputImage: p.Input,
		&p.Reasoning: p.Output, &p.OutputAudio: p.Output, &p.OutputImage: p.Output,
	} {
		if part.Nano() == 0 || *part == total {
			*part = catalog.Rate{}
		}
	}
	return p
}
