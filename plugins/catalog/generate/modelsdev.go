package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
)

// modelsDev is the data of models.dev by its ids of providers.
type modelsDev map[string]*struct {
	Models map[string]*modelsDevModel `json:"models"`
}

// modelsDevModel has the fields of api.json that are read.
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
	Cost         modelsDevCost `json:"cost"`
	Experimental struct {
		Modes map[string]struct {
			Cost     modelsDevCost `json:"cost"`
			Provider struct {
				Body struct {
					ServiceTier string `json:"service_tier"`
					Speed       string `json:"speed"`
				} `json:"body"`
			} `json:"provider"`
		} `json:"modes"`
	} `json:"experimental"`

	prices []catalog.Price // those of service tiers last
}

// modelsDevCost is rates by their names, and lists of them.
type modelsDevCost map[string]json.RawMessage

func parseModelsDev(text []byte) (d modelsDev, err error) {
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, err
	}
	for id, p := range d {
		for _, m := range p.Models {
			if err := m.readPrices(); err != nil {
				return nil, fmt.Errorf("models.dev: %s/%s: %w", id, m.ID, err)
			}
		}
	}
	return d, nil
}

// source is what the catalogue says of models.dev, whose data is as new as its newest entry.
func (d modelsDev) source() source {
	s := source{Name: "models.dev", URL: "https://github.com/anomalyco/models.dev", Licence: "MIT"}
	for _, p := range d {
		for _, m := range p.Models {
			s.Date = max(s.Date, m.LastUpdated)
		}
	}
	return s
}

// models are those of several of its providers, by id and each once.
func (d modelsDev) models(providers []string) (models []*modelsDevModel, err error) {
	if d == nil { // the check does without
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
func (d *modelsDevModel) model() *catalog.Model {
	m := &catalog.Model{
		ID: d.ID, Name: d.Name, Context: d.Limit.Context, MaxInput: d.Limit.Input,
		Capabilities: plugins.Capabilities{
			Input: d.Modalities.Input, Output: d.Modalities.Output, MaxOutput: d.Limit.Output,
			Reasoning: d.Reasoning, ToolCall: d.ToolCall,
			StructuredOutput: d.StructuredOutput, Temperature: d.Temperature,
		},
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
			m.Budget = plugins.Budget{Min: max(o.Min, 0), Max: max(o.Max, 0)}
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

// readPrices sets the prices, unless the model charges for what usages do not count.
func (d *modelsDevModel) readPrices() error {
	c := d.Cost
	if c == nil || c["citation"] != nil || c["request"] != nil || c["image"] != nil {
		return nil
	}
	if err := d.add(c, catalog.Price{}); err != nil {
		return err
	}
	var tiers []modelsDevCost
	if c["tiers"] != nil {
		if err := json.Unmarshal(c["tiers"], &tiers); err != nil {
			return err
		}
	}
	for _, t := range tiers {
		var bound struct{ Size int64 }
		if err := json.Unmarshal(t["tier"], &bound); err != nil {
			return err
		}
		if err := d.add(t, catalog.Price{InputAbove: bound.Size}); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Experimental.Modes)) {
		mode := d.Experimental.Modes[name]
		tier := mode.Provider.Body.ServiceTier + mode.Provider.Body.Speed // one of them is set
		if tier == "" || mode.Cost == nil {
			continue
		}
		if err := d.add(mode.Cost, catalog.Price{Tier: tier}); err != nil {
			return err
		}
	}
	return nil
}

func (d *modelsDevModel) add(c modelsDevCost, p catalog.Price) error {
	for _, name := range []string{"input", "output", "cache_read", "cache_write", "reasoning", "input_audio", "output_audio"} {
		if c[name] == nil || name == "reasoning" && string(c[name]) == string(c["output"]) {
			continue
		}
		if err := (unit{name, one}).set(&p, json.Number(c[name])); err != nil {
			return err
		}
	}
	d.prices = append(d.prices, p)
	return nil
}
