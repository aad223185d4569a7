package main

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
)

const modelData = "../../../../shared/modeldata"

func needModelData(t *testing.T) {
	if _, err := os.Stat(modelData); err != nil {
		t.Skip("the snapshots are not here: ", err)
	}
}

// The committed data is what the generator makes.
func TestCommittedDataIsGenerated(t *testing.T) {
	needModelData(t)
	packed, err := os.ReadFile("../catalog.json.zst")
	if err != nil {
		t.Fatal(err)
	}
	d, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	got, err := d.DecodeAll(packed, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, err := generate(modelData)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("catalog.json.zst is not what the snapshots give; run go generate in plugins/catalog")
	}
}

// Every name that genai-prices lists has, here, the price of the first of its
// models that matches the name.
func TestPricesAreThoseOfTheSource(t *testing.T) {
	needModelData(t)
	var priced []genaiProvider
	if err := read(modelData+"/genai-prices.json", &priced); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 8, 21, 12, 0, 0, 0, time.UTC)
	usage := plugins.Usage{Input: plugins.Known(1_000_000), Output: plugins.Known(1_000_000), CacheRead: plugins.Known(1000)}
	names := 0
	for _, g := range priced {
		for _, o := range origins {
			if o.genai != g.ID {
				continue
			}
			rules, err := o.rules(g.Models)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rules {
				aliases, _ := split(r.match)
				for _, name := range aliases {
					if o.sells != nil && !o.sells(name) {
						continue
					}
					first := r
					for _, f := range rules {
						if f.match.Matches(name) {
							first = f
							break
						}
					}
					want := (&catalog.Model{Prices: first.prices}).Cost(usage, "", at)
					if got := catalog.Default().Cost(o.id, name, usage, "", at); got != want {
						t.Errorf("%s %s: costs %+v, at its source (%s) %+v", o.id, name, got, first.ID, want)
					}
					names++
				}
			}
		}
	}
	if names < 1000 {
		t.Errorf("only %d names seen", names)
	}
}
