package sqlite

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/storagetest"
)

func TestPruneDeletesTheTagsOfSessions(t *testing.T) {
	b := newBackend(t)
	tag := "prod"
	for at, session := range []string{"old", "new"} {
		write(t, b, &storage.Batch{Annotations: []*storage.Annotation{{Org: "acme", SessionID: session, Tag: &tag, At: storage.Timestamp(1000 * at)}}})
	}
	if _, err := b.Prune(t.Context(), 1000); err != nil {
		t.Fatal(err)
	}
	for session, want := range map[string]string{"old": "", "new": tag} {
		if got, err := b.SessionTag(t.Context(), "acme", session); err != nil || got != want {
			t.Errorf("the tag of %s is %q, want %q: %v", session, got, want, err)
		}
	}
}

// However much is old, one call keeps batches waiting no longer than it takes to
// delete a chunk of it.
func TestPruneIsBounded(t *testing.T) {
	chunk := pruneChunk
	pruneChunk = 10
	t.Cleanup(func() { pruneChunk = chunk })
	b := newBackend(t)
	records, _ := storagetest.Records(newTraffic(1).r, 25)
	batch := storagetest.Batch(records, storage.Position{Segment: 1})
	tag := "prod"
	for i := range 25 {
		batch.Annotations = append(batch.Annotations, &storage.Annotation{Org: "acme", SessionID: fmt.Sprint(i), Tag: &tag, At: 1})
	}
	write(t, b, batch)
	tables := []string{"requests", "session_tags", "names"}
	before := make(map[string]int64)
	for more := true; more; {
		for _, table := range tables {
			before[table] = number(t, b, "SELECT count(*) FROM "+table)
		}
		var err error
		if more, err = b.Prune(t.Context(), records[0].CreatedAt<<1); err != nil {
			t.Fatal(err)
		}
		for _, table := range tables {
			if n := before[table] - number(t, b, "SELECT count(*) FROM "+table); n > 10 {
				t.Errorf("one call deletes %d rows of %s", n, table)
			}
		}
	}
	for _, table := range tables {
		if n := number(t, b, "SELECT count(*) FROM "+table); n > 0 {
			t.Errorf("%d rows of %s are left", n, table)
		}
	}
}

// A record goes with all that refers to it, and younger ones keep theirs, also within one
// bucket.
func TestPruneDeletesWhatRefersToRecords(t *testing.T) {
	b := newBackend(t)
	traffic := newTraffic(1)
	for _, step := range []float64{1000, bucketMilliseconds / 10, 5 * bucketMilliseconds} {
		traffic.step = step
		batch := traffic.batch(40)
		for _, r := range batch.Records {
			batch.Annotations = append(batch.Annotations, &storage.Annotation{
				Org: r.Org, RequestID: r.ID, At: r.CreatedAt, Scores: map[string]float64{"a": 1, "b": 2},
			})
		}
		write(t, b, batch)
		if _, err := b.Prune(t.Context(), batch.Records[20].CreatedAt); err != nil {
			t.Fatal(err)
		}
		const left = 20
		if n := number(t, b, "SELECT count(*) FROM requests"); n != left {
			t.Errorf("%d records are left, want %d", n, left)
		}
		for table, each := range map[string]int64{"details": 1, "labels": 3, "scores": 2} {
			if n := number(t, b, "SELECT count(*) FROM "+table+" JOIN requests USING (n)"); n != each*left {
				t.Errorf("the records left have %d rows of %s, want %d", n, table, each*left)
			}
			if n := number(t, b, "SELECT count(*) FROM "+table+" WHERE n NOT IN (SELECT n FROM requests)"); n > 0 {
				t.Errorf("%d rows of %s refer to records that are gone", n, table)
			}
		}
	}
}

const bucketMilliseconds = 1 << (bucketBits - sequenceBits)

// Names are looked at once a day: what was used a day before the oldest record goes then.
func TestPruneDeletesNames(t *testing.T) {
	b := newBackend(t)
	const day = storage.Timestamp(24 * time.Hour / time.Millisecond)
	var at storage.Timestamp
	record := func(user string) {
		write(t, b, &storage.Batch{Records: []*storage.Record{{ID: uuid.New(), Org: "acme", CreatedAt: at, UserID: user}}})
	}
	users := func(want string) {
		t.Helper()
		for more := true; more; {
			var err error
			if more, err = b.Prune(t.Context(), at); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for _, user := range []string{"ann", "bob", "cid"} {
			if number(t, b, "SELECT count(*) FROM names WHERE kind = 'user' AND name = '"+user+"'") > 0 {
				got = append(got, user)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("after %.1f days the users are %q, want %q", float64(at)/float64(day), got, want)
		}
	}
	at = 100 * day
	record("ann")
	record("bob")
	users("ann bob")
	at += 2*day + day/2
	record("bob")
	record("cid")
	users("bob cid")
	at += 10 * day
	users("")
	record("ann")
	users("ann")
}
