package recording

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/modules/internal/money"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"
)

// budgetCut is the finish reason of a stream that a budget ended.
const budgetCut = "budget_cut"

// learn fills in what the answer has reported so far.
func learn(r *storage.Record, seen *plugins.ResponseInfo) {
	r.ResponseModel, r.ResponseID = seen.Model, seen.ResponseID
	r.Finish, r.ErrorType, r.ServiceTier = seen.Finish, seen.ErrorType, seen.ServiceTier
	r.Usage = seen.Usage
	r.InferenceGeo = cmp.Or(seen.InferenceGeo, r.InferenceGeo)
}

// price sets the cost of the record: that of its usage, at the price of the first model that has
// one, and that of what the provider bills in addition. The cost is 0 for a request that counts
// tokens, for a batch, whose calls have records of their own, and for an error without usage.
// Otherwise the cost is unknown if a usage or a price is unknown. free reports whether the request
// costs nothing, however its answer ends.
func price(r *storage.Record, beside *plugins.Billed, c *catalog.Catalog, at time.Time, models ...string) (free bool) {
	unpriced(r)
	if r.Dialect.CountsTokens() || r.Dialect == plugins.Batches {
		r.Cost = plugins.KnownCost(0)
		return true
	}
	if r.Dialect == plugins.Runs && observe.IsAgentSession(r.Path) && !r.Usage.ReportedCost.Valid {
		r.Cost = money.Unstated(r.Status.N)
		return false
	}
	prices := prices{c, r.Provider, catalog.Conditions{At: at, Tier: r.ServiceTier, Geography: r.InferenceGeo}}
	if r.Usage == (plugins.Usage{}) {
		if r.Dialect == plugins.Moderations && prices.freeOfTokens(models) {
			r.Cost = plugins.KnownCost(0)
			return true
		}
		r.Cost = money.Unstated(r.Status.N)
		return false
	}
	r.UsageComplete = beside == nil && !r.Usage.ReportedCost.Valid
	if requested := models[len(models)-1]; r.Provider == "bedrock" && models[0] != "" && strings.Contains(requested, "."+models[0]) {
		slices.Reverse(models) // Claude's answers leave out the inference profile, such as us.anthropic, and the price depends on it
	}
	cost, model := prices.first(r.Usage, models)
	for ; beside != nil && !r.Usage.ReportedCost.Valid; beside = beside.Next {
		ran := models
		if beside.Model != "" {
			ran = []string{beside.Model}
		}
		part, _ := prices.first(beside.Usage, ran)
		cost = cost.Both(part)
	}
	if !cost.Valid {
		return false
	}
	r.Cost, r.PriceVersion = cost, c.Version()
	r.CacheSavings = c.CacheSavings(r.Provider, model, r.Usage, prices.conditions)
	if r.CacheMissed.Valid {
		r.CacheLoss = c.CacheLoss(r.Provider, model, r.Usage, r.CacheMissed.N, prices.conditions)
	}
	return false
}

// unpriced removes what price sets.
func unpriced(r *storage.Record) {
	r.Cost, r.CacheSavings, r.CacheLoss, r.PriceVersion, r.UsageComplete = plugins.Cost{}, plugins.Cost{}, plugins.Cost{}, "", false
}

// prices looks up prices of a provider under some conditions.
type prices struct {
	catalog    *catalog.Catalog
	provider   string
	conditions catalog.Conditions
}

// first returns the cost of a usage by the first of the models that has a price, and that
// model. The cost is unknown if no model has a price.
func (p *prices) first(u plugins.Usage, models []string) (cost plugins.Cost, model string) {
	for _, model = range models {
		if cost = p.catalog.Cost(p.provider, model, u, p.conditions); cost.Valid {
			break
		}
	}
	return cost, model
}

// freeOfTokens reports whether the first model that has a price charges nothing for tokens, as
// OpenAI's moderation models do. Their answers report no usage.
func (p *prices) freeOfTokens(models []string) bool {
	cost, _ := p.first(plugins.Usage{Input: plugins.Known(1_000_000), Output: plugins.Known(1_000_000)}, models)
	return cost.Valid && cost.N == 0
}

// Import records an exchange that was made elsewhere. It completes r and k with what the answer
// reported, the cost, and the call that the exchange continues.
func (s *Site) Import(to Recorder, r *storage.Record, answer *plugins.ResponseInfo, k *storage.Kept) error {
	learn(r, answer)
	r.ErrorMessage = reportedError(r, answer, k.Content(r).Response)
	r.Model = cmp.Or(r.ModelOverride, r.ResponseModel, r.RequestModel)
	reader := observe.NewRequestReader(r.Dialect)
	content := k.Content(r)
	reader.Write(content.Request.Data)
	link := s.join(r, reader.Outline(), uuid.Nil)
	if link != nil {
		link.Miss(r, unknownAccount)
	}
	price(r, answer.Beside, s.App.Catalog(), time.UnixMilli(int64(r.CreatedAt)), r.Model, r.RequestModel)
	if link != nil {
		link.Answered(r, unknownAccount, 0, content.Response)
	}
	if err := to.Append(r, k); err != nil {
		return err
	}
	if time.Since(time.UnixMilli(int64(r.UpdatedAt))) < history {
		s.App.Metrics().Observe(r)
	}
	return nil
}

// Reimport replaces the record of an imported exchange by a more complete one.
func (s *Site) Reimport(to Recorder, r *storage.Record, k *storage.Kept) error {
	r.ErrorMessage = reportedError(r, &plugins.ResponseInfo{ErrorMessage: r.ErrorMessage}, k.Content(r).Response)
	r.Model = cmp.Or(r.ModelOverride, r.ResponseModel, r.RequestModel)
	price(r, nil, s.App.Catalog(), time.UnixMilli(int64(r.CreatedAt)), r.Model, r.RequestModel)
	r.Revision++
	return to.Append(r, k)
}

// history is the age from which a reported call changes no metric, because rates and alerts
// are about what happens now.
const history = time.Hour

// amend replaces a record by one that also has what a later answer reported. Its content stays.
func (s *Site) amend(to Recorder, r *storage.Record, answer *plugins.ResponseInfo) error {
	before := *r
	learn(r, answer)
	r.Model = cmp.Or(r.ModelOverride, r.ResponseModel, r.RequestModel)
	price(r, answer.Beside, s.App.Catalog(), time.UnixMilli(int64(r.CreatedAt)), r.Model, r.RequestModel)
	payBySubscription(r)
	r.UpdatedAt = storage.Millis(time.Now())
	r.Revision++
	if err := to.Append(r, nil); err != nil {
		return err
	}
	s.App.Metrics().ObserveUsage(r, &before)
	return nil
}

// payBySubscription moves the cost of a call to its list cost if a subscription pays for the call.
func payBySubscription(r *storage.Record) {
	if r.Subscription {
		r.ListCost, r.Cost, r.CacheSavings, r.CacheLoss = r.Cost, plugins.Cost{}, plugins.Cost{}, plugins.Cost{}
	}
}

// unknownAccount is the account at the provider for an exchange that was made elsewhere.
const unknownAccount = 0
