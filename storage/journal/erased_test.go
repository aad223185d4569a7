package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/storage"
)

const person = "c4nary0123456789abcdef"

// personal returns the nth record of a test, with its content: every third is a person's.
func personal(n int) (*storage.Record, *storage.Content) {
	r, c := sample(n)
	if n%3 == 0 {
		r.UserID, r.SessionID, r.ErrorMessage = person, person+"-session", "no "+person
		r.Properties = map[string]string{"Name": person}
		c.Response.Data = []byte(`{"answer":"` + person + `"}`)
	}
	return r, c
}

// An erasure of records, or of identities, leaves nothing of them in the files of the journal and
// in the backend, goes on after a crash at any point, and holds against later versions and imports.
func TestErasureOfRecords(t *testing.T) {
	for _, scope := range []storage.ErasureScope{storage.EraseIdentity, storage.EraseRecord} {
		for name, crash := range map[string]func(t *testing.T, j *Journal, b *backend, erase func()){
			"active segment": func(_ *testing.T, _ *Journal, _ *backend, erase func()) { erase() },
			"sealed segment": func(t *testing.T, j *Journal, _ *backend, erase func()) { seal(t, j, 1); erase() },
			"killed before the first step": func(_ *testing.T, j *Journal, _ *backend, erase func()) {
				alone(j)
				erase()
			},
			"killed when the backend had erased some": func(t *testing.T, j *Journal, b *backend, erase func()) {
				alone(j)
				erase()
				if err := b.EraseRecords(t.Context(), "acme", []uuid.UUID{numbered(0), numbered(3)}, scope); err != nil {
					t.Fatal(err)
				}
			},
			"killed when the backend had erased all": func(t *testing.T, j *Journal, _ *backend, erase func()) {
				alone(j)
				erase()
				if err := j.erasures.eraseRecords(t.Context(), j.erasures.unfinished()); err != nil {
					t.Fatal(err)
				}
			},
			"killed before it was done": func(t *testing.T, j *Journal, _ *backend, erase func()) {
				seal(t, j, 1)
				alone(j)
				erase()
				j.maintenance.turn = make(chan struct{}, 1)
				err := j.erasures.eraseRecords(t.Context(), j.erasures.unfinished())
				if err != nil {
					t.Fatal(err)
				}
				j.erasures.eraseSegments(t.Context(), j.erasures.unfinished())
			},
		} {
			t.Run(fmt.Sprint(scope, " ", name), func(t *testing.T) { testErasureOfRecords(t, scope, crash) })
		}
	}
}

func testErasureOfRecords(t *testing.T, scope storage.ErasureScope, crash func(*testing.T, *Journal, *backend, func())) {
	const records = 60
	dir := t.TempDir()
	b := &backend{}
	j := open(t, b, Options{Dir: dir})
	var chosen []Chosen
	all := make(map[uuid.UUID]*storage.Record)
	for n := range records {
		r, c := personal(n)
		j.Begin(r)
		if err := j.Append(r, storagetest.Kept(r, c)); err != nil {
			t.Fatal(err)
		}
		if n%3 == 0 {
			chosen = append(chosen, Chosen{r.ID, r.Content})
		}
	}
	flush(t, j)
	list := func() []*storage.Record {
		found, err := b.Requests(t.Context(), &storage.RequestQuery{Org: "acme", Filter: storage.All{}, Limit: 2 * records})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	for _, r := range list() {
		all[r.ID] = r
	}
	if len(all) != records || holding(t, dir, []byte(person)) == nil {
		t.Fatal("the person is not there before")
	}
	before := j.Integrity()
	crash(t, j, b, func() {
		if err := j.Erase(Erasure{ID: uuid.New(), Org: "acme", Scope: scope, RequestedAt: 1, Records: int64(len(chosen))}, chosen); err != nil {
			t.Fatal(err)
		}
	})
	if ended(j) {
		killed, stop := context.WithCancel(t.Context())
		stop()
		j.Close(killed)
		j = open(t, b, Options{Dir: dir})
	}
	done := func() {
		t.Helper()
		eventually(t, "the erasure is done", func() bool {
			e := j.Erasures("acme")[0]
			return e.DoneAt != 0 && e.Erased == e.Records && e.settled()
		})
	}
	done()
	check := func() {
		t.Helper()
		flush(t, j)
		if names := holding(t, dir, []byte(person)); names != nil {
			t.Errorf("the person is in %v", names)
		}
		found := make(map[uuid.UUID]*storage.Record)
		for _, r := range list() {
			found[r.ID] = r
		}
		for id, r := range all {
			want := r
			if r.UserID == person {
				want = r.Erased(scope)
				want.Content, want.Version = storage.ContentRef{}, storage.Position{}
				if scope == storage.EraseRecord {
					want = nil
				}
			}
			if got := found[id]; !reflect.DeepEqual(got, want) {
				t.Fatalf("the backend has %+v, want %+v", got, want)
			}
		}
	}
	check()
	// Neither a later version nor an import brings them back.
	for n := 0; n < records; n += 3 {
		r, c := personal(n)
		if n%2 == 0 {
			j.Begin(r)
		}
		if j.Claim(t.Context(), r.Key()) || j.Erased(r.Key()) != scope {
			t.Fatal("the id can be used again")
		}
		if err := j.Append(r, storagetest.Kept(r, c)); err != nil {
			t.Fatal(err)
		}
	}
	check()
	j.log.turn.Lock()
	j.log.close(j.log.active)
	j.log.turn.Unlock()
	eventually(t, "the segment is sealed", func() bool { return j.Status().RawSegments == 0 })
	check()
	if now := j.Integrity(); now.Recorded != before.Recorded+records/6 || len(now.Losses) > 0 {
		t.Errorf("the ledger has %+v, and had %+v", now, before)
	}
	if err := j.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	report, err := Check(t.Context(), dir, func(_ uuid.UUID, match func(*storage.Record)) (storage.Position, error) {
		for _, r := range all {
			if r.UserID != person {
				match(r)
			}
		}
		return storage.Position{Segment: 1 << 40}, nil
	})
	if err != nil || len(report.Problems) > 0 {
		t.Errorf("check: %q, %v", report.Problems, err)
	}
	// A database of before has the records again until they are erased from it once more.
	var restored []*storage.Record
	for _, r := range all {
		restored = append(restored, r)
	}
	j = open(t, b, Options{Dir: dir})
	if err := b.Write(t.Context(), &storage.Batch{Journal: j.identity, Records: restored, End: storage.Position{Segment: 1 << 40}}); err != nil {
		t.Fatal(err)
	}
	if err := j.erasures.findAgain(); err != nil {
		t.Fatal(err)
	}
	signal(j.maintenance.wake)
	done()
	check()
}

// An erasure removes all versions of a record, also those in segments before that of the last one:
// of a call that ran while segments ended, and of one that was reported again.
func TestErasureOfEarlierVersions(t *testing.T) {
	for _, scope := range []storage.ErasureScope{storage.EraseContent, storage.EraseIdentity, storage.EraseRecord} {
		for _, end := range []storage.EndState{storage.Interrupted, storage.Complete} {
			for _, when := range []string{"raw", "sealed", "after a crash"} {
				t.Run(fmt.Sprint(scope, " ", end, " ", when), func(t *testing.T) { testErasureOfEarlierVersions(t, scope, end, when) })
			}
		}
	}
}

func testErasureOfEarlierVersions(t *testing.T, scope storage.ErasureScope, end storage.EndState, when string) {
	dir := t.TempDir()
	b := &backend{}
	j := open(t, b, Options{Dir: dir})
	last := appendVersions(t, j, end)
	if when != "raw" {
		seal(t, j, versionCount)
	}
	if when == "after a crash" {
		alone(j)
	}
	eraseThirds(t, j, scope, last)
	if ended(j) {
		killed, stop := context.WithCancel(t.Context())
		stop()
		j.Close(killed)
		j = open(t, b, Options{Dir: dir})
	}
	eventually(t, "the erasure is done", func() bool { return j.Erasures("acme")[0].DoneAt != 0 })
	if e := j.Erasures("acme")[0]; e.Erased != e.Records || e.Unidentified != 0 {
		t.Errorf("%+v", e)
	}
	if names := holding(t, dir, []byte(person)); names != nil {
		t.Errorf("the person is in %v", names)
	}
	for n, r := range last {
		c, err := j.Contents().Content(t.Context(), r)
		if erased := n%3 == 0; err != nil || (c == nil) != erased {
			t.Errorf("record %d has the content %v, %v", n, c, err)
		}
	}
	if losses := j.Integrity().Losses; len(losses) > 0 {
		t.Errorf("counted as lost: %+v", losses)
	}
}

// versionCount is how many versions appendVersions appends of each record.
const versionCount = 3

// appendVersions appends versions of records, each in a segment of its own. The person is in every
// third record.
func appendVersions(t *testing.T, j *Journal, end storage.EndState) []*storage.Record {
	t.Helper()
	last := make([]*storage.Record, 9)
	for version := range versionCount {
		for n := range last {
			r, c := personal(n)
			if n%3 == 0 {
				c.Request.Data = []byte(`{"of":"` + person + `"}`)
			}
			if version < versionCount-1 {
				r.EndState = end
			}
			if version == 0 {
				j.Begin(r)
			}
			if err := j.Append(r, storagetest.Kept(r, c)); err != nil {
				t.Fatal(err)
			}
			last[n] = r
		}
		j.log.turn.Lock()
		j.log.close(j.log.active)
		j.log.turn.Unlock()
	}
	flush(t, j)
	return last
}

// eraseThirds erases the records of the person.
func eraseThirds(t *testing.T, j *Journal, scope storage.ErasureScope, last []*storage.Record) {
	t.Helper()
	var chosen []Chosen
	for n := 0; n < len(last); n += 3 {
		chosen = append(chosen, Chosen{last[n].ID, last[n].Content})
	}
	if err := j.Erase(Erasure{ID: uuid.New(), Org: "acme", Scope: scope, RequestedAt: 1, Records: int64(len(chosen))}, chosen); err != nil {
		t.Fatal(err)
	}
}

// A segment that cannot be read keeps no other from being scanned, and the erasure is not done before
// it can be.
func TestErasureOfAnUnreadableSegment(t *testing.T) {
	dir := t.TempDir()
	j := open(t, &backend{}, Options{Dir: dir})
	last := appendVersions(t, j, storage.Complete)
	seal(t, j, versionCount)
	alone(j)
	path := segmentPath(dir, 1, sealedSuffix)
	if err := errors.Join(os.Rename(path, path+".aside"), os.Mkdir(path, 0o700)); err != nil { // it cannot be read
		t.Fatal(err)
	}
	eraseThirds(t, j, storage.EraseContent, last)
	j.maintenance.turn = make(chan struct{}, 1)
	j.erasures.run(t.Context())
	if e := j.Erasures("acme")[0]; e.DoneAt != 0 {
		t.Errorf("it is done: %+v", e)
	}
	for number := uint64(2); number <= versionCount; number++ {
		if bytes.Contains(plain(t, segmentPath(dir, number, sealedSuffix)), []byte(person)) {
			t.Errorf("the person is in segment %d", number)
		}
	}
	if err := errors.Join(os.Remove(path), os.Rename(path+".aside", path)); err != nil {
		t.Fatal(err)
	}
	j.erasures.run(t.Context())
	if names, e := holding(t, dir, []byte(person)), j.Erasures("acme")[0]; names != nil || e.DoneAt == 0 {
		t.Errorf("the person is in %v: %+v", names, e)
	}
}

// A segment that is sealed, and of which the raw file could not be removed, is not sealed again: an
// erasure finds what is in the sealed file.
func TestErasureOfASegmentThatIsRawAndSealed(t *testing.T) {
	dir := t.TempDir()
	j := open(t, &backend{}, Options{Dir: dir, AwaitLedger: true}) // nothing is sealed yet
	last := appendVersions(t, j, storage.Complete)
	alone(j)
	j.maintenance.turn = make(chan struct{}, 1)
	z := sealer{erased: j.erasures.records.Load()}
	for _, s := range j.log.unsealed {
		if err := j.archive.seal(t.Context(), &z, s); err != nil {
			t.Fatal(err)
		}
	}
	eraseThirds(t, j, storage.EraseContent, last)
	j.erasures.run(t.Context())
	if e := j.Erasures("acme")[0]; e.DoneAt != 0 {
		t.Errorf("it is done with raw files: %+v", e)
	}
	j.LedgerRead()
	j.maintenance.pass(t.Context())
	j.erasures.run(t.Context())
	if names, e := holding(t, dir, []byte(person)), j.Erasures("acme")[0]; names != nil || e.DoneAt == 0 {
		t.Errorf("the person is in %v: %+v", names, e)
	}
}

// Entries that do not say whose they are, as those of Weir 0.1.0 and in damaged frames, stay, and the
// erasure counts them.
func TestErasureCountsWhatIsUnidentified(t *testing.T) {
	dir := t.TempDir()
	j := open(t, &backend{}, Options{Dir: dir})
	var all []*storage.Record
	for n := range 6 {
		r, c := personal(n)
		if err := j.Append(r, storagetest.Kept(r, c)); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	seal(t, j, 1)
	alone(j)
	path := segmentPath(dir, 1, sealedSuffix)
	f, size, err := openSealed(path)
	if err != nil {
		t.Fatal(err)
	}
	index, err := readIndex(f, size)
	f.Close()
	if err != nil {
		t.Fatal(err)
	}
	of := index.blocks[0]
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text[of.offset+int64(of.frames[requestFrame].length+of.frames[responseFrame].length)] ^= 1
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	erase := func() Erasure {
		t.Helper()
		if err := j.Erase(Erasure{ID: uuid.New(), Org: "acme"}, []Chosen{{all[0].ID, all[0].Content}}); err != nil {
			t.Fatal(err)
		}
		j.maintenance.turn = make(chan struct{}, 1)
		j.erasures.run(t.Context())
		return j.Erasures("acme")[0]
	}
	if e := erase(); e.DoneAt == 0 || e.Unidentified != 6 {
		t.Errorf("%+v", e)
	}
	if c, err := j.Contents().Content(t.Context(), all[1]); c == nil || err != nil {
		t.Errorf("the content of another is %v, %v", c, err)
	}
}

// Without the file of the erased records, or with a damaged one, no erasure is taken until somebody
// accepts that.
func TestForgottenRecords(t *testing.T) {
	for name, harm := range map[string]func(path string) error{
		"gone": os.Remove,
		"cut":  func(path string) error { return os.Truncate(path, erasedKeyBytes+3) },
		"damaged": func(path string) error {
			text, err := os.ReadFile(path)
			text[len(text)-1] ^= 1
			return errors.Join(err, os.WriteFile(path, text, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			b := &backend{}
			j := open(t, b, Options{Dir: dir})
			chosen := []Chosen{{ID: uuid.New()}, {ID: uuid.New()}}
			if err := j.Erase(Erasure{ID: uuid.New(), Org: "acme"}, chosen); err != nil {
				t.Fatal(err)
			}
			j.Close(t.Context())
			if err := harm(filepath.Join(dir, erasedName)); err != nil {
				t.Fatal(err)
			}
			if report, err := Check(t.Context(), dir, nil); err != nil || len(report.Problems) != 1 || !strings.Contains(report.Problems[0], ErasuresName) {
				t.Errorf("check: %+v, %v", report, err)
			}
			j = open(t, b, Options{Dir: dir})
			if err := j.Erase(Erasure{ID: uuid.New(), Org: "acme"}, chosen); Advice(err) == "" {
				t.Errorf("an erasure is answered by %v", err)
			}
			j.Close(t.Context())
			if known, err := Forget(dir, ErasuresName); !known || err != nil {
				t.Fatal(known, err)
			}
			for range 2 {
				j = open(t, b, Options{Dir: dir})
				if err := j.Erase(Erasure{ID: uuid.New(), Org: "acme"}, chosen); err != nil {
					t.Fatal(err)
				}
				j.Close(t.Context())
			}
		})
	}
}

// An erasure removes what its records have added to conversations from the backend and from raw
// segments, also after a crash, and what is added in their name later. A conversation in which no
// other call has added anything goes as a whole.
func TestErasureOfItems(t *testing.T) {
	for _, scope := range []storage.ErasureScope{storage.EraseContent, storage.EraseIdentity, storage.EraseRecord} {
		for _, crash := range []bool{false, true} {
			t.Run(fmt.Sprint(scope, " crash ", crash), func(t *testing.T) { testErasureOfItems(t, scope, crash) })
		}
	}
}

func testErasureOfItems(t *testing.T, scope storage.ErasureScope, crash bool) {
	dir := t.TempDir()
	b := &backend{}
	j := open(t, b, Options{Dir: dir})
	add := func(at storage.Timestamp, id string, record uuid.UUID, item string) {
		t.Helper()
		c := &storage.ConversationChange{ID: id, Created: at == 0, Metadata: "{}", Add: []string{item}, Items: []string{`{"text":"` + item + `"}`}, Record: record}
		if err := j.AppendAnnotation(&storage.Annotation{Org: "acme", At: at, Conversation: c}); err != nil {
			t.Fatal(err)
		}
	}
	var hers []Chosen
	for n := range 2 {
		add(storage.Timestamp(n), "shared", numbered(n), []string{person, "other"}[n])
		r, c := personal(n)
		j.Begin(r)
		if err := j.Append(r, storagetest.Kept(r, c)); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			hers = append(hers, Chosen{r.ID, r.Content})
		}
	}
	add(0, "hers", storage.NoCall, "client's "+person)
	add(1, "hers", numbered(0), person+" again")
	flush(t, j)
	if crash {
		alone(j)
	}
	if err := j.Erase(Erasure{ID: uuid.New(), Org: "acme", Scope: scope, RequestedAt: 1, Records: 1, Items: 2}, hers); err != nil {
		t.Fatal(err)
	}
	if crash {
		killed, stop := context.WithCancel(t.Context())
		stop()
		j.Close(killed)
		j = open(t, b, Options{Dir: dir})
	}
	check := func() {
		t.Helper()
		flush(t, j)
		if names := holding(t, dir, []byte(person)); names != nil {
			t.Errorf("the person is in %v", names)
		}
		found, err := b.Conversations(t.Context(), "acme", "", 10)
		if err != nil || len(found) != 1 || len(found[0].Items) != 1 || found[0].Items[0].ID != "other" {
			t.Errorf("the backend has %+v, %v", found, err)
		}
	}
	eventually(t, "the erasure is done", func() bool {
		e := j.Erasures("acme")[0]
		return e.DoneAt != 0 && e.Erased == e.Records && e.settled()
	})
	check()
	add(2, "shared", numbered(0), person)
	check()
	if err := j.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// deaf is a backend whose writes count as failed, although it takes them, until it hears again.
type deaf struct {
	backend
	hears atomic.Bool
}

func (b *deaf) Write(ctx context.Context, batch *storage.Batch) error {
	if err := b.backend.Write(ctx, batch); err != nil || b.hears.Load() {
		return err
	}
	return errors.New("the acknowledgement was lost")
}

// A batch that comes again, because its acknowledgement was lost, has nothing of what was erased
// meanwhile.
func TestABatchThatComesAgainBringsNothingBack(t *testing.T) {
	b := new(deaf)
	j := open(t, b, Options{Dir: t.TempDir()})
	r, c := personal(0)
	j.Begin(r)
	if err := j.Append(r, storagetest.Kept(r, c)); err != nil {
		t.Fatal(err)
	}
	missing := func() bool {
		_, err := b.Request(t.Context(), r.Key())
		return errors.Is(err, storage.ErrNotFound)
	}
	eventually(t, "the backend has the record", func() bool { return !missing() })
	if err := j.Erase(Erasure{ID: uuid.New(), Org: "acme", Scope: storage.EraseRecord, Records: 1}, []Chosen{{r.ID, r.Content}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the backend has erased it", func() bool { return !j.Erasures("acme")[0].Find })
	b.hears.Store(true)
	flush(t, j)
	if !missing() {
		t.Error("the record is back")
	}
	if err := j.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A conversation that was erased as a whole does not come back by a database of before, in which the
// items of the call may be missing. It is erased once the database has all that was appended, though its
// creation comes again.
func TestErasedConversationStaysErased(t *testing.T) {
	b := new(deaf)
	j := open(t, b, Options{Dir: t.TempDir()})
	creation := storage.Annotation{Org: "acme", Conversation: &storage.ConversationChange{
		ID: "hers", Created: true, User: person, Metadata: "{}", Add: []string{"client's"}, Items: []string{"{}"}, Record: storage.NoCall,
	}}
	has := func(items int) func() bool {
		return func() bool {
			found, err := b.Conversations(t.Context(), "acme", "", 10)
			return err == nil && (len(found) == 0 && items == 0 || len(found) == 1 && len(found[0].Items) == items)
		}
	}
	write := func(a storage.Annotation, items int) { // as another journal does
		t.Helper()
		if err := b.backend.Write(t.Context(), &storage.Batch{Journal: uuid.New(), ID: uuid.NewString(), Annotations: []*storage.Annotation{&a}}); err != nil {
			t.Fatal(err)
		}
		if !has(items)() {
			t.Fatal("the backend has not taken it")
		}
	}
	if err := j.AppendAnnotation(new(creation)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the backend has the conversation", has(1))
	hers := uuid.New()
	write(storage.Annotation{Org: "acme", At: 1, Conversation: &storage.ConversationChange{ID: "hers", Add: []string{"call's"}, Items: []string{"{}"}, Record: hers}}, 2)
	if err := j.Erase(Erasure{ID: uuid.New(), Org: "acme", Records: 1, Items: 1}, []Chosen{{ID: hers}}); err != nil {
		t.Fatal(err)
	}
	if !has(2)() {
		t.Error("the conversation is erased, and what the backend has not acknowledged may be of another call")
	}
	b.hears.Store(true)
	flush(t, j)
	signal(j.maintenance.wake)
	eventually(t, "the conversation is erased", has(0))
	eventually(t, "the erasure is done", func() bool { return j.Erasures("acme")[0].DoneAt != 0 })
	write(creation, 1)
	if err := j.erasures.findAgain(); err != nil {
		t.Fatal(err)
	}
	signal(j.maintenance.wake)
	eventually(t, "the conversation is erased again", has(0))
	if err := j.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// interposed is a backend that calls do whenever items of conversations are counted.
type interposed struct {
	backend
	do func()
}

func (b *interposed) CountItems(ctx context.Context, org string, ids []uuid.UUID) (n int64, whole []string, err error) {
	n, whole, err = b.backend.CountItems(ctx, org, ids)
	b.do()
	return n, whole, err
}

// A conversation to which another call adds a turn while its only other call is erased stays with this
// turn, or the turn is refused: none is taken and then lost.
func TestTurnsDuringAnErasure(t *testing.T) {
	hers, his, late := uuid.New(), uuid.New(), uuid.New()
	say := func(j *Journal, record uuid.UUID) error {
		return j.AppendAnnotation(&storage.Annotation{Org: "acme", At: 1, Conversation: &storage.ConversationChange{
			ID: "shared", Add: []string{record.String()}, Items: []string{"{}"}, Record: record,
		}})
	}
	for _, within := range []bool{true, false} {
		b := &interposed{do: func() {}}
		j := open(t, b, Options{Dir: t.TempDir()})
		if err := j.AppendAnnotation(&storage.Annotation{Org: "acme", Conversation: &storage.ConversationChange{
			ID: "shared", Created: true, Metadata: "{}", Add: []string{"client's"}, Items: []string{"{}"}, Record: storage.NoCall,
		}}); err != nil {
			t.Fatal(err)
		}
		if err := say(j, hers); err != nil {
			t.Fatal(err)
		}
		flush(t, j)
		var once sync.Once
		b.do = func() {
			if within {
				once.Do(func() {
					if err := say(j, his); err != nil {
						t.Error(err)
					}
				})
			}
		}
		if err := j.Erase(Erasure{ID: uuid.New(), Org: "acme", Records: 1, Items: 2}, []Chosen{{ID: hers}}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the erasure is done", func() bool { return j.Erasures("acme")[0].DoneAt != 0 })
		err := say(j, late)
		flush(t, j)
		c, found := b.Conversation(t.Context(), "acme", "shared", storage.AllItems)
		switch {
		case within && (err != nil || found != nil || len(c.Items) != 3):
			t.Errorf("with another call, the conversation has %v, %v, %v", c, found, err)
		case !within && (!errors.Is(err, storage.ErrNotFound) || !errors.Is(found, storage.ErrNotFound)):
			t.Errorf("a turn of a conversation that was erased: %v, %v", err, found)
		}
		if err := j.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
