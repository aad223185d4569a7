package recording

import (
	"testing"
	"time"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// The cost is that of all that is billed: a part without a quantity or a price makes the
// cost unknown, never smaller.
func TestTheCostIsThatOfAllThatIsBilled(t *testing.T) {
	tokens := plugins.Usage{Input: plugins.Known(1_000_000), Output: plugins.Known(0)}
	stated := tokens
	stated.ReportedCost = plugins.KnownCost(7)
	for _, c := range []struct {
		name   string
		usage  plugins.Usage
		beside *plugins.Billed
		want   plugins.Cost
	}{
		{"nothing beside", tokens, nil, plugins.KnownCost(2_500_000_000)},
		{"the same model again", tokens, &plugins.Billed{Usage: tokens}, plugins.KnownCost(5_000_000_000)},
		{"two others", tokens, &plugins.Billed{Model: "gpt-4o-mini", Usage: tokens, Next: &plugins.Billed{Model: "gpt-5", Usage: tokens}},
			plugins.KnownCost(3_900_000_000)},
		{"one without a quantity", tokens, new(plugins.Billed), plugins.Cost{}},
		{"one without a price", tokens, &plugins.Billed{Model: "gpt-4o-mini", Usage: tokens, Next: &plugins.Billed{Model: "unheard of", Usage: tokens}}, plugins.Cost{}},
		{"one of an answer without usage", plugins.Usage{}, &plugins.Billed{Usage: tokens}, plugins.Cost{}},
		{"one that the provider's own cost has", stated, new(plugins.Billed), plugins.KnownCost(7)},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, kept := begin(t)
			x.Record.Status = plugins.Known(200)
			x.Answer = &answer{Model: "gpt-4o", Usage: c.usage, Beside: c.beside}
			x.End(storage.Complete)
			x.Close()
			r := kept.records[len(kept.records)-1]
			if r.Cost != c.want {
				t.Errorf("a cost of %v, want %v", r.Cost, c.want)
			}
			if (r.PriceVersion != "") != r.Cost.Valid {
				t.Errorf("the cost is %v by the prices of version %q", r.Cost, r.PriceVersion)
			}
			if r.Usage != c.usage {
				t.Errorf("the usage is not what the provider states at the top level: %+v", r.Usage)
			}
		})
	}
}

// A report about the past, such as an import, raises no metric: rates and alerts speak of
// what happens now.
func TestThePastRaisesNoMetric(t *testing.T) {
	app, registry := provision(t)
	counted := func() (n float64) {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == "weir_requests_total" {
					n += m.GetCounter().GetValue()
				}
			}
		}
		return n
	}
	for ago, want := range map[time.Duration]float64{0: 1, 2 * time.Hour: 0} {
		before := counted()
		at := storage.Millis(time.Now().Add(-ago))
		r := &storage.Record{CreatedAt: at, UpdatedAt: at}
		if err := (&Site{App: app}).Import(new(versions), r, new(plugins.ResponseInfo), new(storage.Kept)); err != nil {
			t.Fatal(err)
		}
		if got := counted() - before; got != want {
			t.Errorf("a call of %v ago is counted %v times, want %v", ago, got, want)
		}
	}
}
