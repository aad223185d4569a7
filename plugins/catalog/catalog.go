// Package catalog has the models of providers: their input and output types, their limits
// and their prices.
//
// The built-in data is generated from three public collections (see NOTICE) and
// holds facts only. An operator's file of the same schema overrides it; the
// schema is described in docs/catalog.md. What the catalogue does not know is
// unknown: it never guesses a price.
package catalog

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
)

//go:generate go run ./generate

//go:embed catalog.json.zst
var builtin []byte

// Catalog is a set of providers and their models. It is safe for use by
// several goroutines.
type Catalog struct {
	version   string
	order     []*provider
	providers map[string]*provider
}

// Default is the built-in catalogue, read when it is first asked for.
var Default = sync.OnceValue(func() *Catalog {
	c, err := readBuiltin()
	if err != nil {
		panic("catalog: built-in data: " + err.Error()) // a broken build, which the tests rule out
	}
	return c
})

// With is the catalogue with the file at path over it. A provider or
// model that the file adds is added; of a model that both have, the fields that
// the file names win and the others stay. Errors name the JSON path at fault.
func (c *Catalog) With(path string) (*Catalog, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("catalog: %w", err)
	}
	base := c.version
	c = c.share() // it takes longer to read the built-in data than to copy it
	if err := c.decode(text); err != nil {
		return nil, fmt.Errorf("catalog %s: %w", path, err)
	}
	sum := sha256.Sum256(text)
	c.version = base + "+" + hex.EncodeToString(sum[:6])
	return c, nil
}

// share returns a catalogue with the same models, which decode copies before it changes them.
func (c *Catalog) share() *Catalog {
	to := &Catalog{version: c.version, providers: make(map[string]*provider, len(c.order))}
	for _, p := range c.order {
		p = &provider{id: p.id, fallback: p.fallback, models: p.models, ruled: p.ruled, named: p.named, shared: true}
		to.order = append(to.order, p)
		to.providers[p.id] = p
	}
	return to
}

func readBuiltin() (*Catalog, error) {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	text, err := d.DecodeAll(builtin, nil)
	if err != nil {
		return nil, err
	}
	return Parse(text)
}

// Parse reads a complete catalogue, which does not extend the built-in data.
func Parse(text []byte) (*Catalog, error) {
	c := &Catalog{providers: make(map[string]*provider)}
	if err := c.decode(text); err != nil {
		return nil, err
	}
	return c, nil
}

// Version names the data that prices come from: the date of the built-in
// snapshot or the published catalogue, such as "2026-11-12", and for an operator's
// file "+" and the first twelve hex digits of its SHA-256.
func (c *Catalog) Version() string { return c.version }

// Date is the day of the data without an operator's file, zero if its version is no day.
func (c *Catalog) Date() time.Time {
	day, _, _ := strings.Cut(c.version, "+")
	date, _ := time.Parse(time.DateOnly, day)
	return date
}

// MarshalJSON writes the catalogue as Parse reads it. An alias that another model of the provider took
// over is left out.
func (c *Catalog) MarshalJSON() ([]byte, error) {
	type encoded struct {
		ID       string   `json:"id"`
		Fallback []string `json:"fallback,omitempty"`
		Models   []Model  `json:"models"`
	}
	providers := []encoded{}
	for _, p := range c.order {
		e := encoded{ID: p.id, Fallback: p.fallback, Models: []Model{}}
		others := slices.DeleteFunc(slices.Clone(p.models), func(m *Model) bool { return m.Match != nil })
		for _, m := range slices.Concat(p.ruled, others) { // rules are tried in the order of the data
			own := *m
			own.Aliases = slices.DeleteFunc(slices.Clone(m.Aliases), func(alias string) bool { return p.named[alias] != m })
			e.Models = append(e.Models, own)
		}
		providers = append(providers, e)
	}
	return json.Marshal(struct {
		Version   string    `json:"version"`
		Providers []encoded `json:"providers"`
	}{c.version, providers})
}

// Serves reports whether the catalogue has a provider of that name.
func (c *Catalog) Serves(provider string) bool { return c.providers[provider] != nil }

// Models are all models, in the order of their providers and then of their
// ids. They are shared: callers must not change them.
func (c *Catalog) Models() iter.Seq[*Model] {
	return func(yield func(*Model) bool) {
		for _, p := range c.order {
			for _, m := range p.models {
				if !yield(m) {
					return
				}
			}
		}
	}
}

// Lookup finds what provider sells under the name model, which may be spelt as
// requests and responses spell it. For the name as it is, and then without the
// prefixes and suffixes that name a region, a path, a date or a release (see
// spellings), it tries, in this order: the exact id or an alias; the provider's
// match rules; the exact id or an alias of the providers whose models this one
// resells, in which case the model is theirs. At last it tries their match rules.
// An unknown provider has no models.
func (c *Catalog) Lookup(provider, model string) (*Model, bool) {
	p := c.providers[provider]
	if p == nil || model == "" {
		return nil, false
	}
	if m := p.named[model]; m != nil {
		return m, true
	}
	if len(model) > maxName {
		return nil, false
	}
	m, ok := p.found.get(model)
	if !ok {
		m = c.search(p, model)
		p.found.put(model, m)
	}
	return m, m != nil
}

func (c *Catalog) search(p *provider, model string) *Model {
	var resold []*provider
	for _, id := range p.fallback {
		if f := c.providers[id]; f != nil {
			resold = append(resold, f)
		}
	}
	for s := range spellings(model) {
		if m := p.find(s); m != nil {
			return m
		}
		for _, f := range resold {
			if m := f.named[s]; m != nil {
				return m
			}
		}
	}
	for s := range spellings(model) {
		for _, f := range resold {
			if m := f.find(s); m != nil {
				return m
			}
		}
	}
	return nil
}
