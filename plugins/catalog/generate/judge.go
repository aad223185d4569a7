package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/plugins/catalog"
)

// The files of judges in the folder that -judges names. Each may be missing.
const (
	genaiFile     = "genai-prices.json" // prices/data.json of the repository of genai-prices
	modelsDevFile = "models.dev.json"   // api.json of models.dev
	litellmFile   = "litellm.json"      // model_prices_and_context_window.json of LiteLLM
)

// readJudges reads other editions of the collections.
func readJudges(folder string) (c collections, err error) {
	c.genai, c.modelsDev = new(genai), make(modelsDev)
	for name, parse := range map[string]func([]byte) error{
		genaiFile: func(text []byte) (err error) {
			// RE2 does not look ahead: what such a rule says of names is that of no name.
			c.genai, err = parseGenai(bytes.ReplaceAll(text, []byte(`"regex":"^(?!`), []byte(`"regex":"^(?:`)))
			return err
		},
		modelsDevFile: func(text []byte) (err error) { c.modelsDev, err = parseModelsDev(text); return err },
		litellmFile:   func(text []byte) (err error) { c.litellm, err = parseLitellm(text); return err },
	} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = parse(text)
		}
		if err != nil {
			return c, fmt.Errorf("%s: %w", name, err)
		}
	}
	return c, nil
}

// judge prints the built-in prices with which no judge agrees that has the model, and returns how many
// prices were compared, and how many have no judge on their side. One judge that agrees is enough:
// editions differ in age, and none says when it looked at a price.
func (c collections) judge(builtin *catalog.Catalog) (compared, alone int) {
	for _, o := range origins {
		of := offers{origin: o, genai: c.genai, litellm: c.litellm.models(o)}
		for _, id := range o.modelsDev {
			if p := c.modelsDev[id]; p != nil {
				for _, m := range p.Models {
					of.modelsDev = append(of.modelsDev, m)
				}
			}
		}
		for m := range builtin.Models() {
			quotes := of.quotes(m.ID)
			if m.Provider != o.id || len(quotes) == 0 || len(m.Prices) == 0 {
				continue
			}
			compared++
			if slices.ContainsFunc(quotes, func(q quote) bool { return agree(m.Prices, q.prices, "") }) {
				continue
			}
			alone++
			for _, q := range quotes {
				fmt.Printf("judge %s %s %s (ours is from %s): %s\n", q.source, o.id, m.ID, m.Prices[0].Source, cmp.Or(differs(m.Prices, q.prices, ""), "it has the price at other hours or sizes"))
			}
		}
	}
	return compared, alone
}

// maxAge is how old a source may be before the check says so.
const maxAge = 7 * 24 * time.Hour

// tellAges prints the sources that are older than maxAge, with how many prices they have.
func tellAges(builtin *catalog.Catalog, sources []source, now time.Time) {
	for _, s := range sources {
		day, err := catalog.ParseDate(s.Date)
		if err != nil || now.Sub(day.Time()) <= maxAge {
			continue
		}
		prices := 0
		for m := range builtin.Models() {
			for _, p := range m.Prices {
				if first, _, _ := strings.Cut(p.Source, ","); first == s.Name {
					prices++
				}
			}
		}
		fmt.Printf("%s is of %s, %d days ago: %d prices are from it\n", s.Name, s.Date, int(now.Sub(day.Time()).Hours()/24), prices)
	}
}
