package llmadmin

import (
	"encoding/json"
	"net/http"

	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/storage"
)

// storeIntegrity is one element of the answer of /weir/integrity: the balance of
// a store since it began, where seen = recorded + waiting + in_flight + lost.
type storeIntegrity struct {
	Store    string `json:"store"`
	Seen     int64  `json:"seen"`
	Recorded int64  `json:"recorded"`
	Waiting  int64  `json:"waiting"`
	InFlight int64  `json:"in_flight"`
	Lost     int64  `json:"lost"`
	// Unaccounted is what the equation lacks: 0, unless Weir is wrong.
	Unaccounted int64      `json:"unaccounted"`
	Losses      []incident `json:"losses"`
}

// incident is what was lost for one reason at one time. Entries are versions of
// records, and annotations; exchanges have no record for it.
type incident struct {
	Reason    string            `json:"reason"`
	Entries   int64             `json:"entries"`
	Exchanges int64             `json:"exchanges"`
	From      storage.Timestamp `json:"from"`
	To        storage.Timestamp `json:"to"`
}

func integrity(w http.ResponseWriter, _ *http.Request) error {
	answer := []storeIntegrity{}
	for _, store := range llmapp.OpenStores() {
		j := store.Opened()
		if j == nil {
			continue
		}
		i := j.Integrity()
		element := storeIntegrity{
			Store:       store.Name(),
			Seen:        i.Seen,
			Recorded:    i.Recorded,
			Waiting:     i.Waiting,
			InFlight:    i.InFlight,
			Lost:        i.Lost(),
			Unaccounted: i.Unaccounted(),
			Losses:      []incident{},
		}
		for _, l := range i.Losses {
			element.Losses = append(element.Losses, incident{l.Reason, l.Count, l.Exchanges, l.From, l.To})
		}
		answer = append(answer, element)
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(answer)
}
