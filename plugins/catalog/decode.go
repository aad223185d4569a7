package catalog

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// fault is an error in a catalogue's text, with the JSON path to it.
type fault struct {
	path string
	err  error
}

func (f *fault) Error() string { return f.path + ": " + f.err.Error() }

// at puts a step before the path of err.
func at(step string, err error) error {
	if err == nil {
		return nil
	}
	f, ok := errors.AsType[*fault](err)
	switch {
	case !ok:
		return &fault{step, err}
	case strings.HasPrefix(f.path, "["):
		return &fault{step + f.path, f.err}
	}
	return &fault{step + "." + f.path, f.err}
}

// object calls f with each field of v.
func object(v gjson.Result, f func(key string, v gjson.Result) error) (err error) {
	if !v.IsObject() {
		return errors.New("must be an object")
	}
	v.ForEach(func(key, v gjson.Result) bool {
		err = at(key.Str, f(key.Str, v))
		return err == nil
	})
	return err
}

// array calls f with each element of v.
func array(v gjson.Result, f func(gjson.Result) error) (err error) {
	if !v.IsArray() {
		return errors.New("must be an array")
	}
	i := 0
	v.ForEach(func(_, v gjson.Result) bool {
		if e := f(v); e != nil {
			err = at(fmt.Sprintf("[%d]", i), e)
		}
		i++
		return err == nil
	})
	return err
}

var errField = errors.New("unknown field; docs/catalog.md lists those there are")

func text(v gjson.Result, s *string) error {
	if v.Type != gjson.String || v.Str == "" {
		return errors.New("must be a string that is not empty")
	}
	*s = strings.Clone(v.Str) // not to keep the whole text alive
	return nil
}

func flag(v gjson.Result, b *bool) error {
	if !v.IsBool() {
		return errors.New("must be true or false")
	}
	*b = v.Bool()
	return nil
}

func count(v gjson.Result, n *int64) error {
	i := v.Int()
	if v.Type != gjson.Number || i < 0 || float64(i) != v.Num || i > 1<<53 {
		return errors.New("must be a whole number, 0 or above")
	}
	*n = i
	return nil
}

// parsed reads a string, or the digits of a number, with parse.
func parsed[T any](v gjson.Result, to *T, parse func(string) (T, error)) error {
	s := v.Str
	switch v.Type {
	case gjson.Number:
		s = v.Raw
	case gjson.String:
	default:
		return errors.New("must be a string")
	}
	t, err := parse(s)
	if err == nil {
		*to = t
	}
	return err
}

// decoder reads a catalogue's text. Lists and names that are alike are shared,
// which halves the memory of the models.
type decoder struct {
	lists map[string][]string
	names map[string]string
	fresh []*Model // those of the provider at hand
}

func (d *decoder) list(v gjson.Result, to *[]string) error {
	if l, ok := d.lists[v.Raw]; ok {
		*to = l
		return nil
	}
	l := []string{}
	err := array(v, func(v gjson.Result) error {
		l = append(l, "")
		return text(v, &l[len(l)-1])
	})
	*to = slices.Clip(l)
	d.lists[strings.Clone(v.Raw)] = *to
	return err
}

func (d *decoder) name(v gjson.Result, to *string) error {
	if err := text(v, to); err != nil {
		return err
	}
	if known, ok := d.names[*to]; ok {
		*to = known
	} else {
		d.names[*to] = *to
	}
	return nil
}

// decode puts a catalogue's text over what c has.
func (c *Catalog) decode(src []byte) error {
	if !gjson.ValidBytes(src) {
		return errors.New("is not JSON; check its commas and quotes")
	}
	d := decoder{lists: make(map[string][]string), names: make(map[string]string)}
	err := object(gjson.ParseBytes(src), func(key string, v gjson.Result) error {
		switch key {
		case "version":
			return text(v, &c.version)
		case "sources":
			return nil // for people
		case "providers":
			return array(v, func(v gjson.Result) error { return d.provider(c, v) })
		}
		return errField
	})
	return err
}

func (d *decoder) provider(c *Catalog, v gjson.Result) error {
	var id string
	if err := text(v.Get("id"), &id); err != nil {
		return at("id", err)
	}
	p := c.providers[id]
	if p == nil {
		p = &provider{id: id, named: make(map[string]*Model)}
		c.providers[id] = p
		c.order = append(c.order, p)
	}
	err := object(v, func(key string, v gjson.Result) error {
		switch key {
		case "id":
			return nil
		case "fallback":
			return d.list(v, &p.fallback)
		case "models":
			return array(v, func(v gjson.Result) error { return d.model(p, v) })
		}
		return errField
	})
	if err != nil {
		return err
	}
	p.index(d.fresh)
	d.fresh = nil
	return nil
}

func (d *decoder) model(p *provider, v gjson.Result) error {
	var id string
	if err := text(v.Get("id"), &id); err != nil {
		return at("id", err)
	}
	m := p.named[id]
	if m == nil || m.ID != id { // an alias of another is no model yet
		m = &Model{Provider: p.id, ID: id}
		p.models = append(p.models, m)
		p.named[id] = m
	}
	err := object(v, func(key string, v gjson.Result) error {
		switch key {
		case "id":
			return nil
		case "name":
			return text(v, &m.Name)
		case "owner":
			return text(v, &m.Owner)
		case "aliases":
			return d.list(v, &m.Aliases)
		case "match":
			m.Match = new(Match)
			return decodeMatch(v, m.Match)
		case "input":
			return d.list(v, &m.Input)
		case "output":
			return d.list(v, &m.Output)
		case "context":
			return count(v, &m.Context)
		case "max_input":
			return count(v, &m.MaxInput)
		case "max_output":
			return count(v, &m.MaxOutput)
		case "released":
			return parsed(v, &m.Released, ParseDate)
		case "reasoning":
			return flag(v, &m.Reasoning)
		case "efforts":
			return d.list(v, &m.Efforts)
		case "budget":
			m.Budget = new(Budget)
			return decodeBudget(v, m.Budget)
		case "interleaved":
			return text(v, &m.Interleaved)
		case "tool_call":
			return flag(v, &m.ToolCall)
		case "structured_output":
			return flag(v, &m.StructuredOutput)
		case "temperature":
			return flag(v, &m.Temperature)
		case "prices":
			m.Prices = nil
			return array(v, func(v gjson.Result) error {
				m.Prices = append(m.Prices, Price{})
				return d.price(v, &m.Prices[len(m.Prices)-1])
			})
		}
		return errField
	})
	if err != nil {
		return err
	}
	m.Prices = slices.Clip(m.Prices)
	d.fresh = append(d.fresh, m)
	return nil
}

func decodeBudget(v gjson.Result, b *Budget) error {
	return object(v, func(key string, v gjson.Result) error {
		switch key {
		case "min":
			return count(v, &b.Min)
		case "max":
			return count(v, &b.Max)
		}
		return errField
	})
}

func (d *decoder) price(v gjson.Result, p *Price) error {
	return object(v, func(key string, v gjson.Result) error {
		switch key {
		case "from":
			return parsed(v, &p.From, ParseDate)
		case "hours":
			return parsed(v, &p.Hours, ParseHours)
		case "tier":
			return text(v, &p.Tier)
		case "input_above":
			return count(v, &p.InputAbove)
		case "source":
			return d.name(v, &p.Source)
		}
		r := p.rate(key)
		if r == nil {
			return errField
		}
		if v.Str == unknownRate {
			*r = UnknownRate
			return nil
		}
		return parsed(v, r, ParseRate)
	})
}

// rate is the field that JSON names key, nil if none.
func (p *Price) rate(key string) *Rate {
	switch key {
	case "input":
		return &p.Input
	case "output":
		return &p.Output
	case "cache_read":
		return &p.CacheRead
	case "cache_write":
		return &p.CacheWrite
	case "cache_write_1h":
		return &p.CacheWrite1h
	case "input_audio":
		return &p.InputAudio
	case "cache_read_audio":
		return &p.CacheReadAudio
	case "input_image":
		return &p.InputImage
	case "reasoning":
		return &p.Reasoning
	case "output_audio":
		return &p.OutputAudio
	case "output_image":
		return &p.OutputImage
	case "request":
		return &p.Request
	case "web_search":
		return &p.WebSearch
	case "search_unit":
		return &p.SearchUnit
	case "image":
		return &p.Image
	case "page":
		return &p.Page
	case "audio_hour":
		return &p.AudioHour
	}
	return nil
}

func decodeMatch(v gjson.Result, m *Match) error {
	rules := 0
	err := object(v, func(key string, v gjson.Result) error {
		rules++
		switch key {
		case "equals":
			return text(v, &m.Equals)
		case "starts_with":
			return text(v, &m.StartsWith)
		case "ends_with":
			return text(v, &m.EndsWith)
		case "contains":
			return text(v, &m.Contains)
		case "regex":
			return parsed(v, &m.Regex, regexp.Compile)
		case "or":
			return decodeMatches(v, &m.Or)
		case "and":
			return decodeMatches(v, &m.And)
		case "not":
			m.Not = new(Match)
			return decodeMatch(v, m.Not)
		}
		return errField
	})
	if err == nil && rules != 1 {
		return errors.New("must have one rule; put several into \"or\" or \"and\"")
	}
	return err
}

func decodeMatches(v gjson.Result, to *[]Match) error {
	err := array(v, func(v gjson.Result) error {
		*to = append(*to, Match{})
		return decodeMatch(v, &(*to)[len(*to)-1])
	})
	if err == nil && len(*to) == 0 {
		return errors.New("must not be empty")
	}
	return err
}
