package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/internal/testkit/storagetest/remote"
	"github.com/weirhq/weir/storage"
)

// placed are the holds of a test.
type placed struct {
	mu  sync.Mutex
	all []Hold
	err error
}

func (p *placed) holds(_ context.Context, org string) (of []Hold, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.all {
		if h.Org == org {
			of = append(of, h)
		}
	}
	return of, p.err
}

// set replaces the holds, as whoever places or lifts one does.
func (p *placed) set(t *testing.T, j *Journal, all ...Hold) {
	t.Helper()
	if err := j.ChangeHolds(func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.all = all
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// fail has the holds answer with err, nil where they can be read.
func (p *placed) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

func holdOf(id, filter string) Hold {
	f, err := storage.ParseFilter([]byte(filter), storage.RequestResponse)
	if err != nil {
		panic(err)
	}
	return Hold{ID: id, Org: "acme", Filter: f}
}

const (
	ofPerson  = `{"request_response_rmt":{"user_id":{"equals":"` + person + `"}}}`
	earlyOnes = `{"request_response_rmt":{"latency":{"lt":30}}}`
)

// noTurn refuses every scan, as where too many wait.
func noTurn(context.Context, string, func() error) error {
	return errors.New("too many scans wait")
}

// heldStore is a store of a journal that has no turn for scans, with records of which every third is a person's, in sealed
// and raw segments.
type heldStore struct {
	*Journal
	t     *testing.T
	b     *backend
	holds placed
	dir   string
	all   []*storage.Record
	clock clock
}

func newHeldStore(t *testing.T, o Options) *heldStore {
	s := &heldStore{t: t, b: &backend{}, dir: t.TempDir()}
	s.clock.Store(1_700_000_000_000)
	o.Dir, o.Holds, o.Scan, o.now = s.dir, s.holds.holds, noTurn, s.clock.now
	s.Journal = open(t, s.b, o)
	for n := range 60 {
		r, c := personal(n)
		s.Begin(r)
		if err := s.Append(r, storagetest.Kept(r, c)); err != nil {
			t.Fatal(err)
		}
		s.all = append(s.all, r)
		if n == 30 {
			seal(t, s.Journal, 1)
		}
	}
	flush(t, s.Journal)
	return s
}

// left waits until the store has the records that keep chooses, with their content, and no other.
func (s *heldStore) left(keep func(r *storage.Record) bool) {
	s.t.Helper()
	var want []uuid.UUID
	for _, r := range s.all {
		if keep(r) {
			want = append(want, r.ID)
		}
	}
	eventually(s.t, "the others are deleted", func() bool {
		signal(s.maintenance.wake)
		return slices.Equal(s.ids(), want)
	})
	for _, r := range s.all {
		if c, err := s.Contents().Content(s.t.Context(), r); err != nil || c == nil && keep(r) {
			s.t.Fatalf("the content of %s: %v, %v", r.ID, c, err)
		}
	}
}

func (s *heldStore) ids() (ids []uuid.UUID) {
	found, err := s.b.Requests(s.t.Context(), &storage.RequestQuery{Org: "acme", Filter: storage.All{}, Sort: []storage.Sort{{Key: storage.SortCreatedAt}}, Limit: 1000})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, r := range found {
		ids = append(ids, r.ID)
	}
	return ids
}

// Retention deletes what no hold keeps, and what is left once the hold is lifted. Of a segment, it
// leaves the content under hold alone.
func TestRetentionKeepsWhatIsUnderHold(t *testing.T) {
	s := newHeldStore(t, Options{Retention: 24 * time.Hour})
	s.holds.set(t, s.Journal, holdOf("one", ofPerson), holdOf("two", earlyOnes), Hold{"three", "other", storage.All{}})
	s.clock.Add((48 * time.Hour).Milliseconds())
	early := func(r *storage.Record) bool { return r.CreatedAt < s.all[30].CreatedAt }
	held := func(r *storage.Record) bool { return r.UserID == person || early(r) }
	s.left(held)
	s.holds.set(t, s.Journal, holdOf("two", earlyOnes))
	s.left(early)
	s.clock.Add((2 * retentionEvery).Milliseconds()) // the raw segment is sealed by now
	eventually(t, "the content of the others is deleted", func() bool {
		signal(s.maintenance.wake)
		c, err := s.Contents().Content(t.Context(), s.all[33])
		return c == nil && err == nil && s.Status().RawSegments == 0
	})
	s.left(early)
	if losses := s.Integrity().Losses; len(losses) > 0 {
		t.Errorf("counted as lost: %+v", losses)
	}
	s.holds.set(t, s.Journal)
	s.left(func(*storage.Record) bool { return false })
	if names := holding(t, s.dir, []byte(person)); names != nil {
		t.Errorf("the person is in %v", names)
	}
}

// Retention keeps what calls under hold have added to conversations, and deletes what others have,
// until no hold keeps anything.
func TestRetentionKeepsItemsUnderHold(t *testing.T) {
	s := newHeldStore(t, Options{ContentRetention: 24 * time.Hour})
	var held []string
	for n, r := range s.all {
		id := fmt.Sprint(n)
		c := &storage.ConversationChange{ID: "c", Created: n == 0, Metadata: "{}", Add: []string{id}, Items: []string{"{}"}, Record: r.ID}
		if err := s.AppendAnnotation(&storage.Annotation{Org: "acme", At: r.CreatedAt, Conversation: c}); err != nil {
			t.Fatal(err)
		}
		if r.UserID == person && n > 0 {
			held = append(held, id)
		}
	}
	flush(t, s.Journal)
	wantItems := func(want []string) {
		t.Helper()
		eventually(t, "the others' items are deleted", func() bool {
			signal(s.maintenance.wake)
			var ids []string
			c, err := s.Conversation(t.Context(), "acme", "c", storage.AllItems)
			if err == nil {
				for _, item := range c.Items {
					ids = append(ids, item.ID)
				}
			}
			return slices.Equal(ids, want) && (err == nil || errors.Is(err, storage.ErrNotFound))
		})
	}
	late := `{"left":` + ofPerson + `,"operator":"and","right":{"request_response_rmt":{"latency":{"gt":0}}}}`
	s.holds.set(t, s.Journal, holdOf("one", late))
	s.clock.Add((48 * time.Hour).Milliseconds())
	wantItems(held)
	s.holds.set(t, s.Journal)
	wantItems(nil)
}

// The holds of one organisation keep nothing of what clients of others have added to conversations.
func TestHoldsSpareNoOtherOrganisation(t *testing.T) {
	s := newHeldStore(t, Options{ContentRetention: 24 * time.Hour})
	for _, org := range []string{"acme", "globex"} {
		c := &storage.ConversationChange{ID: "c", Created: true, Metadata: "{}", Add: []string{"0"}, Items: []string{"{}"}, Record: storage.NoCall}
		if err := s.AppendAnnotation(&storage.Annotation{Org: org, At: s.all[59].CreatedAt, Conversation: c}); err != nil {
			t.Fatal(err)
		}
	}
	flush(t, s.Journal)
	s.holds.set(t, s.Journal, holdOf("one", ofPerson))
	s.clock.Add((48 * time.Hour).Milliseconds())
	eventually(t, "the other's conversation is deleted", func() bool {
		signal(s.maintenance.wake)
		_, err := s.Conversation(t.Context(), "globex", "c", storage.AllItems)
		return errors.Is(err, storage.ErrNotFound)
	})
	if c, err := s.Conversation(t.Context(), "acme", "c", storage.AllItems); err != nil || len(c.Items) != 1 {
		t.Errorf("where a hold is, the conversation is %+v, %v", c, err)
	}
}

// Nothing is deleted while the holds cannot be read.
func TestRetentionWaitsForTheHolds(t *testing.T) {
	s := newHeldStore(t, Options{Retention: 24 * time.Hour})
	s.holds.fail(errors.New("away"))
	s.clock.Add((48 * time.Hour).Milliseconds())
	alone(s.Journal)
	s.maintenance.pass(t.Context())
	s.left(func(*storage.Record) bool { return true })
	if err := s.UnderHolds(t.Context(), []string{"acme"}, func([]Hold) error { return nil }); err == nil {
		t.Error("an erasure may begin")
	}
	s.holds.fail(nil)
	s.maintenance.pass(t.Context())
	s.left(func(*storage.Record) bool { return false })
}

// An erasure leaves what is under hold, and takes it once the last hold is lifted, also after a
// crash.
func TestErasureTakesWhatIsReleased(t *testing.T) {
	for _, scope := range []storage.ErasureScope{storage.EraseContent, storage.EraseIdentity, storage.EraseRecord} {
		t.Run(scope.String(), func(t *testing.T) {
			s := newHeldStore(t, Options{})
			s.holds.set(t, s.Journal, holdOf("one", earlyOnes), holdOf("two", ofPerson))
			e := Erasure{ID: uuid.New(), Org: "acme", Scope: scope, RequestedAt: 1, Records: 20, Holds: []string{"two"}}
			for n := 0; n < 60; n += 3 {
				e.Held = append(e.Held, s.all[n].ID)
			}
			if err := s.Erase(e, nil); err != nil {
				t.Fatal(err)
			}
			state := func() Erasure { return s.Erasures("acme")[0] }
			settled := func(held int) {
				t.Helper()
				eventually(t, "the erasure has come to rest", func() bool {
					signal(s.maintenance.wake)
					e := state()
					return e.DoneAt != 0 && len(e.Held) == held && e.Erased == 20-int64(held)
				})
			}
			settled(20)
			if holding(t, s.dir, []byte(person)) == nil {
				t.Fatal("what is under hold is gone")
			}
			s.holds.set(t, s.Journal, holdOf("one", earlyOnes))
			settled(10)
			killed, stop := context.WithCancel(t.Context())
			stop()
			s.Close(killed)
			s.Journal = open(t, s.b, Options{Dir: s.dir, Holds: s.holds.holds, Scan: noTurn, now: s.clock.now})
			if got := state().Holds; !slices.Equal(got, []string{"one"}) {
				t.Errorf("it waits for %v", got)
			}
			if c, err := s.Contents().Content(t.Context(), s.all[0]); c == nil || err != nil {
				t.Errorf("what is under hold has the content %v, %v", c, err)
			}
			s.holds.set(t, s.Journal)
			settled(0)
			if names := holding(t, s.dir, []byte(person)); names != nil {
				t.Errorf("the person is in %v", names)
			}
		})
	}
}

// A record that comes while retention runs is kept if a hold keeps it, with its content.
func TestRetentionKeepsWhatComesMeanwhile(t *testing.T) {
	s := newHeldStore(t, Options{Retention: 24 * time.Hour})
	alone(s.Journal)
	s.holds.set(t, s.Journal, holdOf("two", ofPerson))
	s.clock.Add((48 * time.Hour).Milliseconds())
	now := s.options.Load().now()
	before := cutoff(now, 24*time.Hour)
	run, err := s.maintenance.newRetention(t.Context(), now, before)
	if err != nil || run == nil {
		t.Fatal(run, err)
	}
	late, c := personal(90)
	late.CreatedAt = s.all[0].CreatedAt - 1000
	if err := s.Append(late, storagetest.Kept(late, c)); err != nil {
		t.Fatal(err)
	}
	s.log.turn.Lock()
	s.log.close(s.log.active)
	s.log.turn.Unlock()
	flush(t, s.Journal)
	if err := run.expire(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	if err := run.prune(t.Context(), before, before); !errors.Is(err, errHoldsChanged) {
		t.Errorf("retention goes on: %v", err)
	}
	s.maintenance.pass(t.Context())
	if ids := s.ids(); len(ids) != 21 || ids[0] != late.ID {
		t.Errorf("%d records are left, the first %v", len(ids), ids[0])
	}
	if c, err := s.Contents().Content(t.Context(), late); c == nil || err != nil {
		t.Errorf("its content is %v, %v", c, err)
	}
}

// Of a store that nodes share, retention deletes what it has looked at: another node may write an
// old record meanwhile that a hold keeps.
func TestRetentionKeepsWhatOtherNodesWriteMeanwhile(t *testing.T) {
	server, socket := listening(t, remote.Faults{})
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	var holds placed
	var now clock
	now.Store(1_700_000_000_000 + (48 * time.Hour).Milliseconds())
	var nodes [2]*Journal
	for i := range nodes {
		j, err := Open(t.Context(), remote.New(socket), Options{Dir: t.TempDir(), firstSegment: 1, Holds: holds.holds, now: now.now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { j.Close(t.Context()) })
		alone(j)
		nodes[i] = j
	}
	one, two := nodes[0], nodes[1]
	holds.set(t, one, holdOf("one", ofPerson))
	write := func(j *Journal, n int) *storage.Record {
		r, c := personal(n)
		r.CreatedAt = storage.Timestamp(1_700_000_000_000 - n)
		if err := j.Append(r, storagetest.Kept(r, c)); err != nil {
			t.Fatal(err)
		}
		flush(t, j)
		return r
	}
	gone := write(one, 1)
	before := cutoff(now.now(), 24*time.Hour)
	run, err := one.maintenance.newRetention(t.Context(), now.now(), before)
	if err != nil || run == nil {
		t.Fatal(run, err)
	}
	late := write(two, 3)
	if err := run.prune(t.Context(), before, before); err != nil {
		t.Fatal(err)
	}
	found, err := one.Backend().Requests(t.Context(), &storage.RequestQuery{Org: "acme", Filter: storage.All{}, Limit: 10})
	if err != nil || len(found) != 1 || found[0].ID != late.ID {
		t.Errorf("%d records are left, %v: want %s alone, and not %s", len(found), err, late.ID, gone.ID)
	}
}

// A hold keeps the content of a record that was dated ahead, and so is younger than its segment.
func TestRetentionKeepsHeldContentThatWasDatedAhead(t *testing.T) {
	const day = 24 * time.Hour
	var holds placed
	var now clock
	now.Store(1_700_000_000_000)
	j := open(t, &backend{}, Options{Dir: t.TempDir(), ContentRetention: 30 * day, Holds: holds.holds, now: now.now})
	alone(j)
	holds.set(t, j, holdOf("two", ofPerson))
	r, c := personal(0)
	r.CreatedAt = storage.Millis(now.now().Add(10 * day))
	if err := j.Append(r, storagetest.Kept(r, c)); err != nil {
		t.Fatal(err)
	}
	now.Add((35 * day).Milliseconds())
	j.maintenance.retire()
	flush(t, j)
	j.maintenance.pass(t.Context())
	if c, err := j.Contents().Content(t.Context(), r); c == nil || err != nil {
		t.Errorf("its content is %v, %v", c, err)
	}
}

// What an erasure took after a backup, because a hold was lifted, it takes again in what is restored
// from that backup.
func TestRestoreTakesWhatWasReleased(t *testing.T) {
	s := newHeldStore(t, Options{})
	s.holds.set(t, s.Journal, holdOf("two", ofPerson))
	records, err := s.b.Requests(t.Context(), &storage.RequestQuery{Org: "acme", Filter: storage.All{}, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	e := Erasure{ID: uuid.New(), Org: "acme", Scope: storage.EraseRecord, RequestedAt: 1, Records: 20, Holds: []string{"two"}}
	for n := 0; n < 60; n += 3 {
		e.Held = append(e.Held, s.all[n].ID)
	}
	if err := s.Erase(e, nil); err != nil {
		t.Fatal(err)
	}
	done := func(held int) {
		t.Helper()
		eventually(t, "the erasure has come to rest", func() bool {
			signal(s.maintenance.wake)
			e := s.Erasures("acme")[0]
			return e.DoneAt != 0 && len(e.Held) == held && e.Erased == 20-int64(held)
		})
	}
	done(20)
	s.Close(t.Context())
	backup := t.TempDir()
	if err := os.CopyFS(backup, os.DirFS(s.dir)); err != nil {
		t.Fatal(err)
	}
	s.Journal = open(t, s.b, Options{Dir: s.dir, Holds: s.holds.holds, now: s.clock.now})
	s.holds.set(t, s.Journal)
	done(0)
	s.Close(t.Context())
	for _, want := range []int{1, 0} {
		if taken, err := TakeErasures(backup, s.dir); taken != want || err != nil {
			t.Errorf("%d erasures are taken, want %d: %v", taken, want, err)
		}
	}
	s.b = &backend{}
	if _, err := s.b.Open(t.Context(), &storage.Host{Journal: s.identity, Contents: s.Contents()}); err != nil {
		t.Fatal(err)
	}
	if err := s.b.Write(t.Context(), &storage.Batch{Journal: s.identity, Records: records, End: s.delivery.position}); err != nil {
		t.Fatal(err)
	}
	s.Journal = open(t, s.b, Options{Dir: backup, Holds: s.holds.holds, now: s.clock.now})
	if s.Erased(s.all[0].Key()) != storage.EraseRecord {
		t.Error("a record is readable again")
	}
	done(0)
	if ids := s.ids(); len(ids) != 40 {
		t.Errorf("%d records are left", len(ids))
	}
	if names := holding(t, backup, []byte(person)); names != nil {
		t.Errorf("the person is in %v", names)
	}
}
