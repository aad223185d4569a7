package routing

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/shared"
)

// BenchmarkChoose is what a call pays for the choice of its target: of one, or among eight.
func BenchmarkChoose(b *testing.B) {
	r := &Resolver{Catalog: new(catalog.Catalog), Aliases: map[string]*Alias{"one": InTheirOrder("a0/m"), "pool": {Strategy: ByWeight}, "when": {}, "fastest": {Strategy: Fastest}}}
	for i := range 8 {
		a := &providers.Account{Label: fmt.Sprint("a", i), Provider: "vendor", Models: []string{"m"}}
		a.ID[0] = byte(i)
		r.Accounts = append(r.Accounts, a)
		model := a.Label + "/m"
		r.Aliases["pool"].Models = append(r.Aliases["pool"].Models, &Choice{Model: model})
		r.Aliases["fastest"].Models = append(r.Aliases["fastest"].Models, &Choice{Model: model})
		r.Aliases["when"].Models = append(r.Aliases["when"].Models, &Choice{Model: model, When: fmt.Sprint("tokens<", 100*i)})
	}
	health := Health{Breakers: new(shared.LocalBreakers), Loads: new(Loads)}
	for _, name := range []string{"a0/m", "one", "pool", "fastest", "when"} {
		if a := r.Aliases[name]; a != nil {
			if err := a.Check(func(string) bool { return false }); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			ask := &Ask{Record: new(storage.Record), Tokens: 500, Warm: func(t Target) int64 { return int64(t.Account.ID[0] & 4) }}
			for b.Loop() {
				targets, _, err := r.Resolve(name)
				if err != nil {
					b.Fatal(err)
				}
				places, err := Choose(targets, func() *Ask { return ask }, health)
				if err != nil {
					b.Fatal(err)
				}
				health.Begin(places[0].Circuit)()
				health.Answered(places[0].Circuit, time.Second, 10)
			}
		})
	}
}
