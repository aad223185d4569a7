package reconcile

import (
	"cmp"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// CallOf returns what is compared of a record.
func CallOf(r *storage.Record) *Call {
	return &Call{
		Start: r.CreatedAt.Time(), End: cmp.Or(r.RespondedAt, r.CreatedAt).Time(),
		Provider: r.Provider, Model: cmp.Or(r.ResponseModel, r.RequestModel, r.Model), Name: r.Model, Tier: r.ServiceTier, Geography: r.InferenceGeo,
		Account: r.Account, ResponseID: r.ResponseID, Status: r.Status.N,
		Complete: r.EndState == storage.Complete, Cached: r.CacheReferenceID != uuid.Nil, Subscription: r.Subscription, Estimated: r.CostCounted,
		Usage: r.Usage, Cost: r.Cost, ListCost: r.ListCost,
	}
}
