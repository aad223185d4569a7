package journal

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"github.com/weirhq/weir/storage"
)

const (
	// recentRecords is how many of the last records are kept for followers: enough for the
	// seconds in which a follower is away.
	recentRecords = 2048
	// awayTime is how long they are kept after the last follower has left.
	awayTime = time.Minute
)

// recent are the last records that the backend was given, in the order of the batches. It has none
// while nobody follows.
type recent struct {
	mu sync.Mutex // guards all fields
	// followed is when a follower was last there, zero if none was.
	followed time.Time
	// records end with the record that has the number next-1.
	records []recentRecord
	next    uint64
	more    chan struct{} // closed when there is another record
	encoded []byte        // the memory in which a record is encoded
}

// recentRecord is a record as journals encode it, which takes a fifth of the memory of a
// storage.Record and has nothing for the garbage collector to follow.
type recentRecord struct {
	version  storage.Position
	metadata []byte
}

func (r *recent) add(records []*storage.Record) {
	if len(records) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next += uint64(len(records))
	now := time.Now()
	if r.more != nil { // somebody waits
		close(r.more)
		r.more, r.followed = nil, now
	}
	if now.Sub(r.followed) > awayTime {
		r.records = nil
		return
	}
	for _, record := range records {
		r.encoded = recordWire.append(r.encoded[:0], record)
		r.records = append(r.records, recentRecord{record.Version, bytes.Clone(r.encoded)})
	}
	if over := len(r.records) - recentRecords; over > recentRecords/2 { // so that it copies seldom
		r.records = slices.Clone(r.records[over:])
	}
}

// Follower reads records as the backend gets them. It is for one goroutine.
type Follower struct {
	recent   *recent
	erasures *erasures
	next     uint64
}

// Follow begins after the record with the Version after, or with the next record if after
// is zero. complete is false if records in between are no longer known.
func (j *Journal) Follow(after storage.Position) (f *Follower, complete bool) {
	r := &j.delivery.recent
	r.mu.Lock()
	defer r.mu.Unlock()
	r.followed = time.Now()
	f = &Follower{recent: r, erasures: &j.erasures, next: r.next}
	if after == (storage.Position{}) {
		return f, true
	}
	for i := len(r.records) - 1; i >= 0; i-- {
		if r.records[i].version == after {
			return f, true
		}
		f.next--
	}
	return f, false
}

// Next returns the records since the last call, and how many records were missed because
// Next was called too late. more is closed once there are further records.
func (f *Follower) Next() (records []*storage.Record, missed int, more <-chan struct{}) {
	recent, missed, more := f.take()
	for _, k := range recent {
		r := &storage.Record{Version: k.version}
		_ = recordWire.parse(k.metadata, r) // cannot fail: add has encoded the record
		records = append(records, r)
	}
	records = f.erasures.records.Load().apply(records)
	return records, missed, more
}

// take is Next, with the records as they are kept.
func (f *Follower) take() (records []recentRecord, missed int, more <-chan struct{}) {
	r := f.recent
	r.mu.Lock()
	defer r.mu.Unlock()
	r.followed = time.Now()
	if r.more == nil {
		r.more = make(chan struct{})
	}
	if oldest := r.next - uint64(len(r.records)); f.next < oldest {
		missed = int(oldest - f.next)
		f.next = oldest
	}
	records = slices.Clone(r.records[len(r.records)-int(r.next-f.next):])
	f.next = r.next
	return records, missed, r.more
}
