package journal

import (
	"testing"
	"time"

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
	write(3) // before anybody follows
	if len(j.delivery.recent.records) > 0 {
		t.Error("records are kept for nobody")
	}
	if _, complete := j.Follow(at(2)); complete {
		t.Error("a record is known that nobody has followed")
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
	expect(now, 0, 7, 8)
	expect(now, 0, 1, 0)
	again, complete := j.Follow(at(5))
	if !complete {
		t.Error("record 5 is not known")
	}
	expect(again, 0, 6, 8)
	write(3 * recentRecords)
	if _, complete := j.Follow(at(8)); complete {
		t.Error("record 8 is known for ever")
	}
	oldest := next - len(j.delivery.recent.records) + 1
	if len(j.delivery.recent.records) < recentRecords || len(j.delivery.recent.records) > 2*recentRecords {
		t.Errorf("%d records are kept", len(j.delivery.recent.records))
	}
	expect(again, oldest-9, oldest, next)

	j.delivery.recent.followed = time.Now().Add(-2 * awayTime)
	_, _, more = again.Next()
	j.delivery.recent.followed = time.Now().Add(-2 * awayTime)
	write(1) // somebody waits for it
	<-more
	expect(again, 0, next, next)
	j.delivery.recent.more = nil
	j.delivery.recent.followed = time.Now().Add(-2 * awayTime)
	write(1)
	expect(again, 1, 1, 0)
}
