package recording

import (
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// costing is what decides the cost of an exchange, besides what the provider has stated last.
type costing struct {
	// counted is the cost of an answer whose cost the provider has not stated, as Settle
	// counts it. It is the cost of the record if the stated cost is less, or unknown.
	counted plugins.Nanodollars
	// unknown says that nothing tells what the answer costs, whatever the provider has stated so far.
	unknown bool
	// free says that the request costs nothing, however its answer ends.
	free  bool
	spent *roundsUsage // by the rounds before this one, nil in the first
}

// roundsUsage is what the model has used and what it cost, in rounds of one exchange.
type roundsUsage struct {
	usage               plugins.Usage
	cost, savings, loss plugins.Cost
}

// price computes the cost of r, which is the record or has another usage. What a caller says
// does not choose what is paid.
func (x *Exchange) price(r *storage.Record) {
	if x.costing.unknown {
		unpriced(r)
		return
	}
	models := []string{r.Model, x.TargetModel, r.RequestModel}
	switch {
	case r.PassthroughBilling:
		models = []string{r.ResponseModel, x.TargetModel}
	case x.Bill != nil && x.Bill.Bounded():
		models[0] = r.ResponseModel
	}
	x.costing.free = price(r, x.Info().Beside, x.site.App.Catalog(), x.clock.started, models...)
}

// complete adds to r, which has the usage and the cost of this round, what earlier rounds have used and
// cost. Each is priced by itself: prices may depend on the length of the input.
func (c *costing) complete(r *storage.Record) {
	if e := c.spent; e != nil {
		r.Usage.Add(e.usage)
		r.Cost = r.Cost.Both(e.cost)
		r.CacheSavings, r.CacheLoss = r.CacheSavings.Plus(e.savings), e.loss
		r.UsageComplete = false
	}
	if r.CostCounted = c.counted > r.Cost.N; r.CostCounted {
		r.Cost = plugins.KnownCost(c.counted)
	}
}

// NextRound begins another request to the provider for the same answer, to which the
// model goes on: what is reported from now on is added to what was.
func (x *Exchange) NextRound() {
	x.measure()
	r := &x.Record
	x.costing.spent, x.costing.counted = &roundsUsage{r.Usage, r.Cost, r.CacheSavings, r.CacheLoss}, 0
}
