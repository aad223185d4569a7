//go:build linux

package durability

import (
	"encoding/json"
	"maps"
)

// balance is what /weir/integrity says of a store.
type balance struct {
	Store       string `json:"store"`
	Seen        int64  `json:"seen"`
	Recorded    int64  `json:"recorded"`
	Waiting     int64  `json:"waiting"`
	InFlight    int64  `json:"in_flight"`
	Lost        int64  `json:"lost"`
	Unaccounted int64  `json:"unaccounted"`
	Losses      []struct {
		Reason    string `json:"reason"`
		Entries   int64  `json:"entries"`
		Exchanges int64  `json:"exchanges"`
	} `json:"losses"`
}

// balances are those of all open stores. At every moment they must account for
// every exchange.
func (w *weir) balances() map[string]balance {
	w.t.Helper()
	answer, err := w.ask("GET", "/weir/integrity", "")
	if err != nil {
		w.t.Fatal(err)
	}
	var list []balance
	if err := json.Unmarshal(answer, &list); err != nil {
		w.t.Fatalf("%v in %s", err, answer)
	}
	stores := map[string]balance{}
	for _, b := range list {
		if b.Seen != b.Recorded+b.Waiting+b.InFlight+b.Lost || b.Unaccounted != 0 || b.InFlight < 0 || b.Waiting < 0 {
			w.t.Errorf("exchanges are unaccounted for: %s", answer)
		}
		stores[b.Store] = b
	}
	return stores
}

// settled waits until no exchange of the default store is in flight and none
// waits, and returns its balance. Recorded must be what the database says.
func (w *weir) settled() (b balance) {
	w.t.Helper()
	w.await("every exchange has come to its record", func() bool {
		b = w.balances()["default"]
		return b.InFlight == 0 && b.Waiting == 0
	})
	return b
}

// lost are the exchanges of the default store that are declared lost, by reason.
func (b *balance) lost() map[string]int64 {
	lost := map[string]int64{}
	for _, l := range b.Losses {
		lost[l.Reason] += l.Exchanges
	}
	maps.DeleteFunc(lost, func(_ string, n int64) bool { return n == 0 })
	return lost
}

// wantBalance waits until the store has come to rest, with so many records and
// losses, neither more nor less: every call that Weir took on is one of them.
func (w *weir) wantBalance(recorded int, lost map[string]int64) {
	w.t.Helper()
	b := w.settled()
	if b.Recorded != int64(recorded) || !maps.Equal(b.lost(), lost) {
		w.t.Errorf("the balance is %+v, want %d recorded and %v lost", b, recorded, lost)
	}
}

// wantInterrupted is wantBalance after kills, each of which may have interrupted
// so many exchanges at most, and lost nothing else.
func (w *weir) wantInterrupted(recorded, most int) {
	w.t.Helper()
	b := w.settled()
	lost := b.lost()
	if interrupted := lost["interrupted"]; interrupted > int64(most) {
		w.t.Errorf("%d exchanges count as interrupted, and at most %d can have been in flight", interrupted, most)
	}
	delete(lost, "interrupted")
	if b.Recorded != int64(recorded) || len(lost) > 0 {
		w.t.Errorf("the balance is %+v, want %d recorded", b, recorded)
	}
	w.t.Logf("%d exchanges seen, %d recorded, %d interrupted", b.Seen, b.Recorded, b.Lost)
}
