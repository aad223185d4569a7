package journal

import (
	"testing"

	"github.com/weirhq/weir/storage"
)

// A follower gets each record once, from where it says, and is told of those that
// are no longer known.
func TestFollowers(t *testing.T) {
	j := new(Journal)
	at := func(n int) storage.Position { return storage.Position{Segment: 1, Ordinal: uint32(n)} }
	next := 0
	write := func(n int) {
		var records []*storage.Record
		for range n {
			next++
			records = append(records, &storage.Record{Version: at(next)})
		}
		j.delivery.recent.add(records)
	}
	expect := func(f *Follower, missed, first, last int) {
		t.Helper()
		records, lost, more := f.Next()
		if lost != missed || len(records) != last-first+1 || len(records) > 0 && (records[0].Version != at(first) || records[len(records)-1].Version != at(last)) {
			t.Fatalf("%d records, %d missed; want those from %d to %d, %d missed", len(records), lost, first, last, missed)
		}
		select {
		case <-more:
			t.Error("more is said to come before it does")
		default:
		}
	}
	write(3)
	now, complete := j.Follow(storage.Position{})
	if !complete {
		t.Error("who begins now misses something")
	}
	expect(now, 0, 1, 0)
	_, _, more := now.Next()
	write(2)
	<-more
	expect(now, 0, 4, 5)
	expect(now, 0, 1, 0)
	again, complete := j.Follow(at(2))
	if !complete {
		t.Error("record 2 is not known")
	}
	expect(again, 0, 3, 5)
	write(3 * recentRecords)
	if _, complete := j.Follow(at(5)); complete {
		t.Error("record 5 is known for ever")
	}
	oldest := next - len(j.delivery.recent.records) + 1
	if len(j.delivery.recent.records) < recentRecords || len(j.delivery.recent.records) > 2*recentRecords {
		t.Errorf("%d records are kept", len(j.delivery.recent.records))
	}
	expect(again, oldest-6, oldest, next)
}
