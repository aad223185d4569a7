package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/weirhq/weir/plugins/catalog"
)

// The fields of models.dev's api.json that are read.
type modelsDev map[string]modelsDevProvider

type modelsDevProvider struct {
	Models map[string]modelsDevModel `json:"models"`
}

type modelsDevModel struct {
	ID               string          `json:"id"`
	Name             string          `json:"name"`
	BaseModel        string          `json:"base_model"`
	ReleaseDate      string          `json:"release_date"`
	LastUpdated      string          `json:"last_updated"`
	Reasoning        bool            `json:"reasoning"`
	Temperature      bool            `json:"temperature"`
	ToolCall         bool            `json:"tool_call"`
	StructuredOutput bool            `json:"structured_output"`
	Interleaved      json.RawMessage `json:"interleaved"` // true, or an object with the field
	ReasoningOptions []struct {
		Type   string    `json:"type"`
		Values []*string `json:"values"`
		Min    int64     `json:"min"`
		Max    int64     `json:"max"`
	} `json:"reasoning_options"`
	Limit struct {
		Context int64 `json:"context"`
		Input   int64 `json:"input"`
		Output  int64 `json:"output"`
	} `json:"limit"`
	Modalities struct {
		Input  []string `json:"input"`
		Output []string `json:"output"`
	} `json:"modalities"`
	Cost         *modelsDevCost `json:"cost"`
	Experimental struct {
		Modes map[string]struct {
			Cost     *modelsDevCost `json:"cost"`
			Provider struct {
				Body struct {
					ServiceTier string `json:"service_tier"`
					Speed       string `json:"speed"`
				} `json:"body"`
			} `json:"provider"`
		} `json:"modes"`
	} `json:"experimental"`
}

type modelsDevCost struct {
	Input       json.Number `json:"input"`
	Output      json.Number `json:"output"`
	CacheRead   json.Number `json:"cache_read"`
	CacheWrite  json.Number `json:"cache_write"`
	Reasoning   json.Number `json:"reasoning"`
	InputAudio  json.Number `json:"input_audio"`
	OutputAudio json.Number `json:"output_audio"`
	Citation    json.Number `json:"citation"`
	Request     json.Number `json:"request"`
	Image       json.Number `json:"image"`
	Tiers       []struct {
		Tier struct {
			Size int64 `json:"size"`
		} `json:"tier"`
		modelsDevCost
	} `json:"tiers"`
}

// date is that of the newest entry.
func (d modelsDev) date() (newest string) {
	for _, p := range d {
		for _, m := range p.Models {
			newest = max(newest, m.LastUpdated)
		}
	}
	return newest
}

// models are those of several of its providers, by id and each once.
func (d modelsDev) models(providers []string) (models []modelsDevModel, err error) {
	if d == nil { // the report does without
		return nil, nil
	}
	seen := make(map[string]bool)
	for _, id := range providers {
		p, ok := d[id]
		if !ok {
			return nil, fmt.Errorf("models.dev has no provider %q", id)
		}
		for _, key := range slices.Sorted(maps.Keys(p.Models)) {
			if m := p.Models[key]; !seen[m.ID] {
				seen[m.ID] = true
				models = append(models, m)
			}
		}
	}
	return models, nil
}

// model is what models.dev says about a model, but for its prices.
func (d modelsDevModel) model() *catalog.Model {
	m := &catalog.Model{
		ID: d.ID, Name: d.Name,
		Input: d.Modalities.Input, Output: d.Modalities.Output,
		Context: d.Limit.Context, MaxInput: d.Limit.Input, MaxOutput: d.Limit.Output,
		Reasoning: d.Reasoning, ToolCall: d.ToolCall,
		StructuredOutput: d.StructuredOutput, Temperature: d.Temperature,
	}
	for _, o := range d.ReasoningOptions {
		switch o.Type {
		case "effort":
			for _, v := range o.Values {
				if v != nil {
					m.Efforts = append(m.Efforts, *v)
				}
			}
		case "budget_tokens":
			m.Budget = &catalog.Budget{Min: max(o.Min, 0), Max: max(o.Max, 0)}
		}
	}
	var interleaved struct {
		Field string `json:"field"`
	}
	if json.Unmarshal(d.Interleaved, &interleaved) == nil {
		m.Interleaved = interleaved.Field
	}
	date := d.ReleaseDate
	if len(date) == len("2026-01") {
		date += "-01"
	}
	m.Released, _ = catalog.ParseDate(date) // some are no dates: unknown
	return m
}

// prices are those that models.dev has, those of service tiers last; none where
// they charge for what usages don't count.
func (d modelsDevModel) prices() ([]catalog.Price, error) {
	c := d.Cost
	if c == nil || c.Citation+c.Request+c.Image != "" {
		return nil, nil
	}
	base, err := c.price()
	if err != nil {
		return nil, err
	}
	prices := []catalog.Price{base}
	for _, t := range c.Tiers {
		p, err := t.price()
		if err != nil {
			return nil, err
		}
		p.InputAbove = t.Tier.Size
		prices = append(prices, p)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Experimental.Modes)) {
		mode := d.Experimental.Modes[name]
		tier := mode.Provider.Body.ServiceTier + mode.Provider.Body.Speed // one of them is set
		if tier == "" || mode.Cost == nil {
			continue
		}
		p, err := mode.Cost.price()
		if err != nil {
			return nil, err
		}
		p.Tier = tier
		prices = append(prices, p)
	}
	return prices, nil
}

func (c modelsDevCost) price() (p catalog.Price, err error) {
	if c.Reasoning == c.Output {
		c.Reasoning = ""
	}
	for _, r := range []struct {
		to      *catalog.Rate
		dollars json.Number
	}{
		{&p.Input, c.Input}, {&p.Output, c.Output},
		{&p.CacheRead, c.CacheRead}, {&p.CacheWrite, c.CacheWrite},
		{&p.Reasoning, c.Reasoning}, {&p.InputAudio, c.InputAudio}, {&p.OutputAudio, c.OutputAudio},
	} {
		if r.dollars == "" {
			continue
		}
		if *r.to, err = rate(r.dollars, big.NewRat(1, 1)); err != nil {
			return p, err
		}
	}
	return p, nil
}
