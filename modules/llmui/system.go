package llmui

import (
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/storage"
)

// system is the state of the dashboard's store, for those who operate it.
type system struct {
	Version      string `json:"version"`
	CaddyVersion string `json:"caddy_version"`
	Store        string `json:"store"`
	// Prices is the version of the catalogue.
	Prices string `json:"prices"`
	// Retention and ContentRetention are seconds, 0 for ever.
	Retention        float64           `json:"retention"`
	ContentRetention float64           `json:"content_retention"`
	Exchanges        exchanges         `json:"exchanges"`
	PendingBytes     int64             `json:"pending_bytes"`
	BodyBytes        int64             `json:"body_bytes"`
	Error            string            `json:"error,omitempty"`
	FailingSince     storage.Timestamp `json:"failing_since,omitzero"`
}

// exchanges counts the exchanges since the store began: seen = recorded + waiting +
// in_flight + lost + unaccounted. unaccounted is 0 unless Weir has a bug.
type exchanges struct {
	Seen        int64 `json:"seen"`
	Recorded    int64 `json:"recorded"`
	Waiting     int64 `json:"waiting"`
	InFlight    int64 `json:"in_flight"`
	Lost        int64 `json:"lost"`
	Unaccounted int64 `json:"unaccounted"`
}

// serveSystem answers a session of the operator's organisation alone: a store
// holds the exchanges of others, too.
func (h *Handler) serveSystem(w http.ResponseWriter, key *access.Key) error {
	if key.Org() != stores.DefaultName {
		return fail(w, http.StatusForbidden, "the state of the store is for the organisation "+stores.DefaultName)
	}
	j := h.store.Opened()
	if j == nil {
		return fail(w, http.StatusServiceUnavailable, "the store "+h.Store+" is not open")
	}
	config := h.app.Stores[h.Store]
	i, s := j.Integrity(), j.Status()
	_, caddyVersion := caddy.Version()
	answered := system{
		Version: llmapp.Version(), CaddyVersion: caddyVersion, Store: h.Store, Prices: h.app.Catalog().Version(),
		Retention: time.Duration(config.Retention).Seconds(), ContentRetention: time.Duration(config.ContentRetention).Seconds(),
		Exchanges:    exchanges{i.Seen, i.Recorded, i.Waiting, i.InFlight, i.Lost(), i.Unaccounted()},
		PendingBytes: s.PendingBytes, BodyBytes: s.RawBytes + s.SealedBytes,
	}
	if s.Err != nil {
		answered.Error, answered.FailingSince = s.Err.Error(), storage.Millis(s.FailingSince)
	}
	return answer(w, http.StatusOK, answered, nil)
}
