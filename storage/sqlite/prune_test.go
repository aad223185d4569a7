package sqlite

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/columnar"
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
	b := newBackend(t)
	b.writer.bounds.pruneRows = 10
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

const bucketMilliseconds = (1 << bucketBits) / (columnar.Sequence + 1)

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

// Names go when no record uses them any more, also those of records that came late or after
// the names of the same ids were looked at.
func TestPruneDeletesNamesOfAnyAge(t *testing.T) {
	b := newBackend(t)
	b.writer.bounds.pruneRows, b.writer.names.block = 5, 1
	b.writer.names.forgetOldest()
	r := rand.New(rand.NewPCG(1, 2))
	const day = storage.Timestamp(24 * time.Hour / time.Millisecond)
	const kept = 5 * day
	for now := 100 * day; now < 150*day; now += day {
		batch := new(storage.Batch)
		for range 10 {
			age := storage.Timestamp(r.Int64N(int64(kept)))
			user := r.Int64N(int64(now/day)) + r.Int64N(20) // some come back, and some never
			batch.Records = append(batch.Records, &storage.Record{
				ID: uuid.New(), Org: "acme", CreatedAt: now - age, UserID: fmt.Sprint(user),
			})
		}
		write(t, b, batch)
		prune(t, b, now-kept)
		if n := number(t, b, fmt.Sprintf("SELECT count(*) FROM names WHERE seen < %d", now-kept-seenStep)); n > 0 {
			t.Fatalf("on day %d there are %d names too old", now/day, n)
		}
		if n := number(t, b, "SELECT count(*) FROM requests WHERE user NOT IN (SELECT id FROM names)"); n > 0 {
			t.Fatalf("on day %d the users of %d requests have no name", now/day, n)
		}
	}
}

// Names to delete are listed in one step and deleted in others: a record may use one
// between them.
func TestPruneKeepsNamesThatAreUsedAgain(t *testing.T) {
	b := newBackend(t)
	b.writer.bounds.pruneRows = 2
	const day = storage.Timestamp(24 * time.Hour / time.Millisecond)
	users := func(at storage.Timestamp) {
		batch := new(storage.Batch)
		for i := range 10 {
			batch.Records = append(batch.Records, &storage.Record{ID: uuid.New(), Org: "acme", CreatedAt: at, UserID: fmt.Sprint("user-", i)})
		}
		write(t, b, batch)
	}
	users(100 * day)
	for len(b.writer.unused) == 0 {
		if more, err := b.Prune(t.Context(), 110*day); !more || err != nil {
			t.Fatalf("there is no more to delete before names are: %v", err)
		}
	}
	users(110 * day)
	prune(t, b, 110*day)
	if n := number(t, b, "SELECT count(*) FROM requests JOIN names ON names.id = user AND kind = 'user'"); n != 10 {
		t.Errorf("%d of 10 requests have the name of their user", n)
	}
}
