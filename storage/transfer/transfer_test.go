package transfer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/internal/testkit/storagetest/remote"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/journal"
	"github.com/weirhq/weir/storage/sqlite"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // thousands of records in a small heap
	m.Run()
}

func open(t *testing.T, b storage.Backend) *journal.Journal {
	t.Helper()
	j, err := journal.Open(t.Context(), b, journal.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close(context.Background()) })
	return j
}

func openSQLite(t *testing.T) *journal.Journal {
	return open(t, sqlite.New(filepath.Join(t.TempDir(), "weir.db")))
}

// openRemote opens a store of a server that tears batches, applies them twice, and
// loses acknowledgements.
func openRemote(t *testing.T) *journal.Journal {
	t.Helper()
	dir, err := os.MkdirTemp("", "weir-transfer-") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	server := remote.NewServer(filepath.Join(dir, "socket"), remote.Faults{Torn: 0.05, Repeated: 0.1, Unacknowledged: 0.05})
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.Stop()
		os.RemoveAll(dir)
	})
	return open(t, remote.New(filepath.Join(dir, "socket")))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fill appends adversarial records with their bodies, annotations, tags and views.
func fill(t *testing.T, j *journal.Journal, n int) []*storage.Record {
	t.Helper()
	records, contents := storagetest.Records(rand.New(rand.NewPCG(1, 0)), n)
	for i, r := range records {
		appended := *r
		appended.Content = storage.ContentRef{}
		must(t, j.Append(&appended, storagetest.Kept(&appended, contents.Of(r))))
		if r.EndState == storage.Interrupted {
			j.Abandon(&appended)
		}
		if r.Scored() {
			must(t, j.AppendAnnotation(&storage.Annotation{Org: r.Org, RequestID: r.ID, At: r.UpdatedAt, Scores: r.Scores, Feedback: r.Feedback}))
		}
		if i%10 == 0 {
			tag := fmt.Sprint("tag ", i)
			must(t, j.AppendAnnotation(&storage.Annotation{Org: r.Org, SessionID: r.SessionID, At: r.UpdatedAt, Tag: &tag}))
		}
	}
	must(t, j.AppendAnnotation(&storage.Annotation{Org: records[0].Org, View: &storage.View{Name: "errors", Screen: "requests", State: "status>=500", UpdatedAt: 1}}))
	changeConversations(t, j,
		storage.ConversationChange{ID: "kept", Created: true, User: "ada", Metadata: `{"a":"b"}`},
		storage.ConversationChange{ID: "kept", Add: []string{"1", "2"}, Items: []string{`{"id":"1"}`, `{"id":"2"}`}},
		storage.ConversationChange{ID: "empty", Created: true, Metadata: `{}`},
		storage.ConversationChange{ID: "gone", Created: true, Metadata: `{}`},
		storage.ConversationChange{ID: "gone", Deleted: true},
	)
	return records
}

// changeConversations appends changes of conversations of acme, one after the other.
func changeConversations(t *testing.T, j *journal.Journal, changes ...storage.ConversationChange) {
	t.Helper()
	for i := range changes {
		changed++
		must(t, j.AppendAnnotation(&storage.Annotation{Org: "acme", At: 1_795_219_200_000 + changed, Conversation: &changes[i]}))
	}
}

var changed storage.Timestamp

func run(t *testing.T, from, to *journal.Journal) *Summary {
	t.Helper()
	s, err := Run(t.Context(), Options{From: from, To: to, Window: storage.Always, Verify: true})
	must(t, err)
	return s
}

func expectSame(t *testing.T, c *Comparison, records int) {
	t.Helper()
	if !c.Same() || c.From != c.To || c.From.Records != int64(records) {
		t.Errorf("of %d records the stores have %+v and %+v; they differ in %+v and %q", records, c.From, c.To, c.DifferentHours, c.DifferentAnswers)
	}
}

// A store is copied to another backend and from there to a third store, and what is
// learned meanwhile follows with the next copy.
func TestThereAndBack(t *testing.T) {
	const n = 100
	from, there, back := openSQLite(t), openRemote(t), openSQLite(t)
	records := fill(t, from, n)
	first := run(t, from, there)
	expectSame(t, first.Comparison, n)
	if first.Copied != n || first.Comparison.Bodies == 0 || first.Comparison.Queries == 0 {
		t.Errorf("the first copy: %+v", first)
	}
	if again := run(t, from, there); again.Counts != (Counts{}) {
		t.Errorf("a copy of what is there: %+v", again.Counts)
	}

	r := records[7]
	late := r.UpdatedAt + 10
	for _, a := range []*storage.Annotation{
		{At: late, Scores: map[string]float64{"late": 0.5}},
		{At: late + 1, Feedback: &storage.Feedback{ID: 1 << 40, Rating: true, CreatedAt: late + 1}},
		{At: late + 2, Property: &storage.Property{Name: "late", Value: "label"}},
	} {
		a.Org, a.RequestID = r.Org, r.ID
		must(t, from.AppendAnnotation(a))
	}
	changeConversations(t, from,
		storage.ConversationChange{ID: "kept", Remove: "1", Metadata: `{"c":"d"}`},
		storage.ConversationChange{ID: "kept", Add: []string{"0"}, Items: []string{`{"id":"0"}`}},
		storage.ConversationChange{ID: "new", Created: true, Metadata: `{}`},
	)
	other := &storage.Record{ID: uuid.Must(uuid.NewV7()), Org: r.Org, CreatedAt: r.CreatedAt, EndState: storage.Complete}
	must(t, from.Append(other, nil))
	second := run(t, from, there)
	expectSame(t, second.Comparison, n+1)
	if second.Copied != 1 || second.Annotations == 0 || first.Conversations != 2 || second.Conversations != 2 || second.Comparison.Conversations != 3 {
		t.Errorf("the second copy: %+v", second)
	}
	expectSame(t, run(t, there, back).Comparison, n+1)
	c, err := back.Conversation(t.Context(), "acme", "kept", storage.AllItems)
	must(t, err)
	if len(c.Items) != 2 || c.Items[0].JSON != `{"id":"2"}` || c.Items[1].ID != "0" || c.Metadata != `{"c":"d"}` || c.User != "ada" {
		t.Errorf("the conversation came back as %+v", c)
	}

	// What is changed in the target later holds, and what differs is named.
	changeConversations(t, back, storage.ConversationChange{ID: "kept", Metadata: `{}`})
	if again := run(t, there, back); again.Conversations != 0 || !again.Comparison.Same() {
		t.Errorf("a copy over what is newer: %+v", again)
	}
	changeConversations(t, there, storage.ConversationChange{ID: "new", Remove: "none", Metadata: `{"e":"f"}`})
	differing, err := compareAll(t.Context(), &Options{From: there, To: back, Window: storage.Always})
	must(t, err)
	if got := differing.DifferentAnswers; len(got) != 1 || got[0] != "acme: the conversation new" {
		t.Errorf("differences are %q", got)
	}
}

// What an erasure in the target has taken out of conversations does not come back.
func TestErasedItemsStayErased(t *testing.T) {
	from, to := openSQLite(t), openSQLite(t)
	var records []*storage.Record
	for range 2 {
		r := &storage.Record{ID: uuid.Must(uuid.NewV7()), Org: "acme", CreatedAt: 1_795_219_200_000, EndState: storage.Complete}
		must(t, from.Append(r, nil))
		records = append(records, r)
	}
	gone, stays := records[0].ID, records[1].ID
	item := func(id string) []string { return []string{`{"id":"` + id + `"}`} }
	changeConversations(t, from,
		storage.ConversationChange{ID: "hers", Created: true, Metadata: `{}`, Add: []string{"client's"}, Items: item("client's"), Record: storage.NoCall},
		storage.ConversationChange{ID: "hers", Add: []string{"hers"}, Items: item("hers"), Record: gone},
		storage.ConversationChange{ID: "shared", Created: true, Metadata: `{}`},
		storage.ConversationChange{ID: "shared", Add: []string{"hers"}, Items: item("hers"), Record: gone},
		storage.ConversationChange{ID: "shared", Add: []string{"other"}, Items: item("other"), Record: stays},
	)
	run(t, from, to)
	must(t, to.Erase(journal.Erasure{ID: uuid.New(), Org: "acme", Scope: storage.EraseContent, Records: 1, Items: 2}, []journal.Chosen{{ID: gone}}))
	for deadline := time.Now().Add(10 * time.Second); to.Erasures("acme")[0].DoneAt == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the erasure does not end")
		}
	}
	changeConversations(t, from, storage.ConversationChange{ID: "shared", Metadata: `{"a":"b"}`}, storage.ConversationChange{ID: "hers", Metadata: `{"a":"b"}`})
	must(t, copyAll(t.Context(), &Options{From: from, To: to, Window: storage.Always}, new(Summary)))
	found, err := to.Backend().Conversations(t.Context(), "acme", "", 10)
	must(t, err)
	if len(found) != 1 || found[0].Metadata != `{"a":"b"}` || len(found[0].Items) != 1 || found[0].Items[0].ID != "other" || found[0].Items[0].Record != stays {
		t.Errorf("the target has %+v", found)
	}
}

// What was learned in the target since, stays.
func TestNewerAnnotationsStay(t *testing.T) {
	from, to := openSQLite(t), openSQLite(t)
	r := &storage.Record{ID: uuid.Must(uuid.NewV7()), Org: "acme", CreatedAt: 1_795_219_200_000, UpdatedAt: 1_795_219_200_000}
	must(t, from.Append(r, nil))
	score := func(j *journal.Journal, at storage.Timestamp, name string, value float64) {
		must(t, j.AppendAnnotation(&storage.Annotation{Org: r.Org, RequestID: r.ID, At: r.CreatedAt + at, Scores: map[string]float64{name: value}}))
	}
	score(from, 1, "quality", 1)
	run(t, from, to)
	score(from, 2, "missed", 2)
	score(to, 3, "quality", 3)
	if _, err := Run(t.Context(), Options{From: from, To: to, Window: storage.Always}); err != nil {
		t.Fatal(err)
	}
	got, err := to.Request(t.Context(), r.Key())
	must(t, err)
	if got.Scores["quality"] != 3 || got.Scores["missed"] != 2 {
		t.Errorf("the scores are %v", got.Scores)
	}
}

// A copy that is cut short goes on where it was, and doubles nothing.
func TestCutShort(t *testing.T) {
	const n = 2 * pageRecords
	from, to := openSQLite(t), openSQLite(t)
	for i := range n {
		r := &storage.Record{ID: uuid.Must(uuid.NewV7()), Org: "acme", CreatedAt: storage.Timestamp(1_795_219_200_000 + i/2), Cost: plugins.KnownCost(1)}
		must(t, from.Append(r, nil))
	}
	ctx, cancel := context.WithCancel(t.Context())
	s, err := Run(ctx, Options{From: from, To: to, Window: storage.Always, Report: func(Progress) { cancel() }})
	if !errors.Is(err, context.Canceled) || s.Copied == 0 || s.Copied == n {
		t.Fatalf("the copy ended after %d records: %v", s.Copied, err)
	}
	again := run(t, from, to)
	expectSame(t, again.Comparison, n)
	if again.Copied != n-s.Copied {
		t.Errorf("after %d records, %d were copied", s.Copied, again.Copied)
	}
}

// A copy that is cut short after any of its changes of a conversation goes on with the rest.
func TestConversationCutShort(t *testing.T) {
	change := func(ms storage.Timestamp, c storage.ConversationChange) *storage.Annotation {
		c.ID = "c"
		for _, id := range c.Add {
			c.Items = append(c.Items, fmt.Sprintf(`{"id":%q}`, id))
		}
		return &storage.Annotation{Org: "acme", At: 1_795_219_200_000 + ms, Conversation: &c}
	}
	all := func() []*storage.Annotation {
		return []*storage.Annotation{
			change(0, storage.ConversationChange{Created: true, User: "ada", Metadata: `{}`, Add: []string{"1", "2"}}),
			change(1, storage.ConversationChange{Add: []string{"3", "4"}}),
			change(2, storage.ConversationChange{Remove: "1"}),
			change(3, storage.ConversationChange{Remove: "3"}),
			change(4, storage.ConversationChange{Metadata: `{"a":"b"}`}),
			change(5, storage.ConversationChange{Add: []string{"5", "6"}}),
		}
	}
	write := func(t *testing.T, j *journal.Journal, changes []*storage.Annotation) {
		for _, a := range changes {
			must(t, j.AppendAnnotation(a))
		}
	}
	for has := range all() {
		t.Run(fmt.Sprint(has+1), func(t *testing.T) {
			t.Parallel() // it waits for the disk
			from, changes := openSQLite(t), all()
			write(t, from, changes[:has+1])
			for known := range has + 1 {
				noted := &noting{Backend: sqlite.New(filepath.Join(t.TempDir(), "weir.db"))}
				to := open(t, noted)
				write(t, to, changes[:known])
				must(t, to.Flush(t.Context()))
				noted.annotations = nil
				run(t, from, to)
				for cut := range noted.annotations {
					to := openSQLite(t)
					write(t, to, changes[:known])
					write(t, to, noted.annotations[:cut])
					if c := run(t, from, to).Comparison; !c.Same() || c.Conversations != 1 {
						got, _ := to.Conversation(t.Context(), "acme", "c", storage.AllItems)
						t.Errorf("of %d changes the target knew %d, and %d entries of a copy; then it has %+v", has+1, known, cut, got)
					}
				}
			}
		})
	}
}

// noting notes the annotations that a backend is given.
type noting struct {
	storage.Backend
	annotations []*storage.Annotation
}

func (n *noting) Write(ctx context.Context, b *storage.Batch) error {
	n.annotations = append(n.annotations, b.Annotations...)
	return n.Backend.Write(ctx, b)
}

// What differs is named by its hour, and by the query that shows it.
func TestDifferences(t *testing.T) {
	const hours = 4
	from, to := openSQLite(t), openSQLite(t)
	start := storage.Timestamp(1_795_219_200_000)
	record := func(i int) *storage.Record {
		at := start + storage.Timestamp(i)*hour + 1
		return &storage.Record{ID: uuid.Must(uuid.NewV7()), Org: "acme", CreatedAt: at, UpdatedAt: at, Cost: plugins.KnownCost(1)}
	}
	var records []*storage.Record
	for i := range hours {
		records = append(records, record(i))
		must(t, from.Append(records[i], storagetest.Kept(records[i], &storage.Content{Request: storage.Body{Type: "text/plain", Data: []byte("asked")}})))
	}
	expectSame(t, run(t, from, to).Comparison, hours)

	dearer := *records[1] // newer than what the source has, which therefore replaces nothing
	dearer.Cost, dearer.UpdatedAt = plugins.KnownCost(2), dearer.UpdatedAt+1
	must(t, to.Append(&dearer, storagetest.Kept(&dearer, &storage.Content{Request: storage.Body{Type: "text/plain", Data: []byte("asked")}})))
	must(t, to.Append(record(2), nil))
	other := *records[3]
	other.UpdatedAt++
	must(t, to.Append(&other, storagetest.Kept(&other, &storage.Content{Request: storage.Body{Type: "text/plain", Data: []byte("answered")}})))

	c := run(t, from, to).Comparison
	var named []string
	for _, h := range c.DifferentHours {
		named = append(named, fmt.Sprintf("%d: %d missing, %d more, %d different, %d bodies, %v", (h.Start-start)/hour, h.Missing, h.More, h.Different, h.Bodies, h.To.Cost-h.From.Cost))
	}
	want := []string{
		"1: 0 missing, 0 more, 1 different, 0 bodies, " + plugins.Nanodollars(1).String(),
		"2: 0 missing, 1 more, 0 different, 0 bodies, " + plugins.Nanodollars(1).String(),
		"3: 0 missing, 0 more, 0 different, 1 bodies, " + plugins.Nanodollars(0).String(),
	}
	if fmt.Sprint(named) != fmt.Sprint(want) {
		t.Errorf("differences %q, want %q", named, want)
	}
	if len(c.DifferentAnswers) == 0 {
		t.Error("no query shows them")
	}
}

// Records outside the window are not copied.
func TestWindow(t *testing.T) {
	from, to := openSQLite(t), openSQLite(t)
	start := storage.Timestamp(1_795_219_200_000)
	for i := range 10 {
		must(t, from.Append(&storage.Record{ID: uuid.Must(uuid.NewV7()), Org: "acme", CreatedAt: start + storage.Timestamp(i)}, nil))
	}
	s, err := Run(t.Context(), Options{From: from, To: to, Window: storage.Window{From: start + 2, To: start + 6}, Verify: true})
	must(t, err)
	expectSame(t, s.Comparison, 5)
}
