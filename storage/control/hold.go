package control

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/weirhq/weir/storage"
)

// Hold keeps records from retention and from erasures until it is deleted, which lifts it.
type Hold struct {
	// ID begins with `hold_`.
	ID string `json:"id"`
	// Filter chooses the records, in the language of filters.
	Filter json.RawMessage `json:"filter"`
	// Reason says why, such as the number of a case.
	Reason string `json:"reason"`
	// PlacedAt is when the hold was placed, PlacedBy names the key.
	PlacedAt storage.Timestamp `json:"placed_at"`
	PlacedBy string            `json:"placed_by"`
}

func (h *Hold) object() Object { return Object{ID: h.ID, Kind: KindHold} }

// maxHolds bounds the holds of an organisation: each is asked whenever records are deleted.
const maxHolds = 100

// ErrManyHolds means that the organisation has as many holds as it may have.
var ErrManyHolds = fmt.Errorf("an organisation has at most %d holds: lift some, or join their filters by or", maxHolds)

// PlaceHold places a hold.
func (o *Organisation) PlaceHold(ctx context.Context, filter json.RawMessage, reason string) (*Hold, error) {
	all, err := o.Log.List(ctx, o.Name, KindHold, Page{})
	if err != nil {
		return nil, err
	}
	if len(all) >= maxHolds {
		return nil, ErrManyHolds
	}
	h := &Hold{ID: newID("hold_"), Filter: filter, Reason: reason, PlacedAt: now(), PlacedBy: o.By.Key}
	return h, create(ctx, o, h)
}
