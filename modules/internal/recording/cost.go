package recording

import (
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// spent is what the model has used and what it cost, in rounds of one exchange.
type spent struct {
	usage               plugins.Usage
	cost, savings, loss plugins.Cost
}

// price computes the cost of r, which is the record or has another usage. What a caller says
// does not choose what is paid.
func (x *Exchange) price(r *storage.Record) {
	if x.uncounted {
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
	x.free = price(r, x.Info().Beside, x.site.App.Catalog(), x.clock.started, models...)
}

// addRounds adds what earlier rounds have used and cost. Each is priced by itself: prices
// may depend on the length of the input.
func (x *Exchange) addRounds() {
	r := &x.Record
	if e := x.spent; e != nil {
		r.Usage.Add(e.usage)
		r.Cost = r.Cost.Both(e.cost)
		r.CacheSavings, r.CacheLoss = r.CacheSavings.Plus(e.savings), e.loss
		r.UsageComplete = false
	}
	if r.CostCounted = x.counted > r.Cost.N; r.CostCounted {
		r.Cost = plugins.KnownCost(x.counted)
	}
}

// NextRound begins another request to the provider for the same answer, to which the
// model goes on: what is reported from now on is added to what was.
func (x *Exchange) NextRound() {
	x.measure()
	r := &x.Record
	x.spent, x.counted = &spent{r.Usage, r.Cost, r.CacheSavings, r.CacheLoss}, 0
}
