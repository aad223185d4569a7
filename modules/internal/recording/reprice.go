package recording

import (
	"slices"
	"strings"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/storage"
)

// Reprice returns a copy of the record with the cost of its usage by the catalogue, at the prices of the
// record's own time. It returns nil if that cost is unknown: the record lacks something that the
// provider billed, its call is not known to have ended, or its model has no price.
func Reprice(r *storage.Record, c *catalog.Catalog) *storage.Record {
	if !r.UsageComplete || r.CostCounted || r.EndState == storage.Interrupted {
		return nil
	}
	if r.ModelOverride != "" && r.ModelOverride != r.ResponseModel && !r.PassthroughBilling {
		return nil // the record does not say whether a budget had priced what answered
	}
	next := *r
	price(&next, nil, c, r.CreatedAt.Time(), pricedModels(r)...)
	if !next.Cost.Valid {
		return nil
	}
	payBySubscription(&next)
	next.RoutingSavings = routingSavings(r, next.CacheSavings)
	return &next
}

// pricedModels are the names by which a record's price is looked up. The name that the client used
// may be an alias, which is no model, unless it is a longer spelling of the model's name.
func pricedModels(r *storage.Record) []string {
	models := []string{r.Model, r.ResponseModel}
	if r.PassthroughBilling && r.ResponseModel != "" { // what a caller says does not choose what is paid
		models = models[1:]
	}
	if strings.Contains(r.RequestModel, models[0]) {
		models = append(models, r.RequestModel)
	}
	return slices.DeleteFunc(models, func(name string) bool { return name == "" })
}

// routingSavings are those of other savings of the cache, by the share that the record has.
func routingSavings(r *storage.Record, savings plugins.Cost) plugins.Cost {
	before := r.CacheSavings.N
	apart := before - r.RoutingSavings.N
	if !r.RoutingSavings.Valid || !savings.Valid || savings.N <= 0 || apart <= 0 {
		return plugins.Cost{}
	}
	n := (before + apart/2) / apart // how many targets were as good
	return plugins.KnownCost(savings.N / n * (n - 1))
}
