package storagetest

import (
	"slices"
	"testing"

	"github.com/weirhq/weir/storage"
)

// The ledger is that of the last batch, with the losses of all of them, however
// often each was written. It outlives the store's end, and the records.
func testLedger(t *testing.T, open opener) {
	records, contents := Records(random(10), 30)
	s := start(t, open(t), contents)
	s.hasLedger(storage.Ledger{})

	first := Batch(records[:20], storage.Position{Segment: 1, Ordinal: 20})
	first.Recorded, first.Number = 20, 27
	first.Losses = []storage.Loss{
		{Reason: storage.LostJournalFull, Count: 5, Exchanges: 4, From: epoch + 10, To: epoch + 90},
		{Reason: storage.LostInterrupted, Count: 3, Exchanges: 3, From: epoch, To: epoch + 9},
	}
	want := storage.Ledger{Recorded: 20, Number: 27, Losses: []storage.Loss{first.Losses[1], first.Losses[0]}}
	for range 3 {
		s.write(first)
		s.hasLedger(want)
	}

	// The same loss, told by another batch, is another loss.
	second := Batch(records[20:], storage.Position{Segment: 2})
	second.Recorded, second.Number = 30, 1<<63-1
	second.Losses = first.Losses[:1]
	want.Recorded, want.Number, want.Losses = 30, 1<<63-1, append(want.Losses, second.Losses...)
	for range 2 {
		s.write(second)
		s.hasLedger(want)
	}

	for more := true; more; {
		var err error
		if more, err = s.Prune(t.Context(), epoch<<1); err != nil {
			t.Fatalf("Prune: %v", err)
		}
	}
	s.holds(nil)
	s.hasLedger(want)
	s.reopen(second.End)
	s.hasLedger(want)
}

func (s *store) hasLedger(want storage.Ledger) {
	s.Helper()
	got, err := s.Ledger(s.Context())
	if err != nil {
		s.Fatalf("Ledger: %v", err)
	}
	if got.Recorded != want.Recorded || got.Number != want.Number || !slices.Equal(got.Losses, want.Losses) {
		s.Errorf("the ledger is %+v, want %+v", got, want)
	}
}
