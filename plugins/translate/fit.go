package translate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins"
)

// Limits say what the models of a vendor take, beside what their Capabilities say.
type Limits struct {
	// Temperature is the highest temperature, 0 for OpenAI's 2.
	Temperature float64
	// Unpenalized is true if models that reason take no penalties.
	Unpenalized bool
	// Output is the least max_output_tokens, 0 for no bound.
	Output int64
	// User is the number of bytes that the name of a user may have, 0 for no bound.
	User int
}

// Fit replaces or leaves out the settings that a model refuses, each with a warning. There is
// no warning about a setting that asks for the default. [Request.FitReasoning] does the same
// for reasoning.
func (p *Request) Fit(c *plugins.Capabilities, l Limits) error {
	reasons := c != nil && c.Reasoning
	untempered, unpenalized := reasons && !c.Temperature, reasons && l.Unpenalized
	for _, s := range []struct {
		field     string
		requested *float64
		nothing   float64
		refused   bool
	}{
		{"temperature", p.Temperature, 1, untempered},
		{"top_p", p.TopP, 1, untempered},
		{"presence_penalty", p.PresencePenalty, 0, unpenalized},
		{"frequency_penalty", p.FrequencyPenalty, 0, unpenalized},
	} {
		switch {
		case s.requested == nil || !s.refused:
		case *s.requested == s.nothing:
			p.change(s.field, "null")
		default:
			if err := p.DropWithWarning(s.field, ModelRefuses); err != nil {
				return err
			}
		}
	}
	if t := p.Temperature; t != nil && l.Temperature > 0 && *t > l.Temperature {
		if err := p.replace("temperature", "above the provider's limit", fmt.Sprint(l.Temperature)); err != nil {
			return err
		}
	}
	if len(p.User) > l.User && l.User > 0 {
		p.change("user", string(plugins.AppendString(nil, hash(p.User, l.User))))
	}
	if n := p.MaxOutputTokens; n.Valid && n.N < l.Output {
		return p.replace("max_output_tokens", "below the provider's limit", fmt.Sprint(l.Output))
	}
	return nil
}

// FitReasoning sets the effort to a level that the model has, and leaves the settings of
// reasoning out for a model that does not reason. efforts are the levels of a model whose
// own are not known.
func (p *Request) FitReasoning(c *plugins.Capabilities, efforts []string) error {
	switch {
	case c.Described() && !c.Reasoning:
		err := p.DropReasoning(ModelRefuses)
		p.change("reasoning.effort", "null") // also "none", which says nothing to the model
		return err
	case p.Reasoning.Effort == "":
		return nil
	case c != nil && len(c.Efforts) > 0:
		efforts = c.Efforts
	}
	return p.LimitEffort(efforts)
}

// replace sets a field to another value, with a warning that says why.
func (p *Request) replace(field, why, value string) error {
	err := p.DropWithWarning(field, why+", "+strings.ReplaceAll(value, `"`, "'")+" in its place")
	if err == nil {
		p.change(field, value)
	}
	return err
}

// change sets a field to a value in JSON. null leaves the field out.
func (p *Request) change(field, value string) {
	p.set(field, gjson.Parse(value))
	p.changed = append(p.changed, field)
}

// WithChanges returns a body of POST /v1/responses with the settings that differ from
// those of p.Raw.
func (p *Request) WithChanges(body []byte) ([]byte, error) {
	for _, path := range p.changed {
		at := fields[path].at
		if at == nil { // what is below a tool or an item
			continue
		}
		value, err := json.Marshal(at(p))
		if err == nil && slices.Contains([]string{"null", `""`, "[]"}, string(value)) {
			body, err = sjson.DeleteBytes(body, path)
		} else if err == nil {
			body, err = sjson.SetRawBytes(body, path, value)
		}
		if err != nil {
			return nil, err
		}
	}
	return body, nil
}
