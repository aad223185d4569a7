package llmadmin

import (
	"net/http"

	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/journal"
)

// StoreIntegrity is one element of the answer of /weir/integrity: the reconciliation of
// a store since it began, where seen = recorded + waiting + in_flight + lost.
type StoreIntegrity struct {
	Store string `json:"store"`
	journal.Integrity
	Lost int64 `json:"lost"`
	// Unaccounted is what the equation lacks: 0, unless Weir is wrong.
	Unaccounted int64 `json:"unaccounted"`
}

func integrity(w http.ResponseWriter, _ *http.Request) error {
	answer := []StoreIntegrity{}
	for store, j := range openJournals() {
		i := j.Integrity()
		if i.Losses == nil {
			i.Losses = []storage.Loss{}
		}
		answer = append(answer, StoreIntegrity{store, i, i.Lost(), i.Unaccounted()})
	}
	return apierror.WriteJSON(w, http.StatusOK, answer)
}
