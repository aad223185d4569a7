package recording

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/storage"
)

// StatusClientLeft is what Caddy, after nginx, calls a request whose client left
// before there was an answer.
const StatusClientLeft = 499

// learn fills in what the answer has told so far.
func learn(r *storage.Record, seen *plugins.ResponseInfo) {
	r.ResponseModel, r.ResponseID = seen.Model, seen.ResponseID
	r.Finish, r.ErrorType, r.ServiceTier = seen.Finish, seen.ErrorType, seen.ServiceTier
	r.Usage = seen.Usage
	r.InferenceGeo = cmp.Or(seen.InferenceGeo, r.InferenceGeo)
}

// price computes the cost by the first of the models that has a price. A count of
// tokens costs nothing, nor does a batch beside its calls, nor an error that reports no
// usage; otherwise, without usage or without a price, the cost is unknown.
func price(r *storage.Record, c *catalog.Catalog, at time.Time, models ...string) {
	r.Cost, r.CacheSavings, r.CacheLoss, r.PriceVersion = plugins.Cost{}, plugins.Cost{}, plugins.Cost{}, ""
	if r.Dialect.CountsTokens() || r.Dialect == plugins.Batches {
		r.Cost = plugins.KnownCost(0)
		return
	}
	if r.Usage == (plugins.Usage{}) {
		status := r.Status.N
		if status >= http.StatusBadRequest && status != StatusClientLeft || r.Dialect == plugins.Moderations && isFree(r.Provider, c, at, models) {
			r.Cost = plugins.KnownCost(0)
		}
		return
	}
	if asked := models[len(models)-1]; r.Provider == "bedrock" && models[0] != "" && strings.Contains(asked, "."+models[0]) {
		slices.Reverse(models) // Claude's answers leave out the inference profile, as in us.anthropic, on which the price depends
	}
	conditions := catalog.Conditions{At: at, Tier: r.ServiceTier, Geography: r.InferenceGeo}
	for _, model := range models {
		if r.Cost = c.Cost(r.Provider, model, r.Usage, conditions); r.Cost.Valid {
			r.CacheSavings = c.CacheSavings(r.Provider, model, r.Usage, conditions)
			if r.CacheMissed.Valid {
				r.CacheLoss = c.CacheLoss(r.Provider, model, r.Usage, r.CacheMissed.N, conditions)
			}
			r.PriceVersion = c.Version()
			return
		}
	}
}

// isFree reports whether the first of the models that has a price charges no tokens, as
// OpenAI's moderation, which reports none.
func isFree(provider string, c *catalog.Catalog, at time.Time, models []string) bool {
	one := plugins.Usage{Input: plugins.Known(1_000_000), Output: plugins.Known(1_000_000)}
	for _, model := range models {
		if cost := c.Cost(provider, model, one, catalog.Conditions{At: at}); cost.Valid {
			return cost.N == 0
		}
	}
	return false
}

// Import records an exchange that was made elsewhere. r and c have all but what the
// answer reported and what it cost.
func (s *Site) Import(to Recorder, r *storage.Record, answer *plugins.ResponseInfo, c *storage.Content) error {
	learn(r, answer)
	r.Model = cmp.Or(r.ModelOverride, r.ResponseModel, r.RequestModel)
	price(r, s.App.Catalog(), time.UnixMilli(int64(r.CreatedAt)), r.Model, r.RequestModel)
	if err := to.Append(r, c); err != nil {
		return err
	}
	s.App.Observe(r)
	return nil
}
