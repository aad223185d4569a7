package journal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/storage"
)

// eraseAt erases records at the first of two nodes that run.
func eraseAt(t *testing.T, journals [2]*Journal, records ...*storage.Record) {
	t.Helper()
	requestErasure(t, journals[0], records...)
	exchangeUntil(t, "the erasure is done", func() bool { return journals[0].Erasures("acme")[0].DoneAt != 0 }, journals[:]...)
}

// requestErasure erases records, and nothing that nodes bring later.
func requestErasure(t *testing.T, j *Journal, records ...*storage.Record) {
	t.Helper()
	e := erasurePerson(storage.EraseRecord)
	e.Filter = []byte(`{"request_response_rmt":{"user_id":{"equals":"nobody"}}}`)
	var chosen []Chosen
	for _, r := range records {
		chosen = append(chosen, Chosen{ID: r.ID, Content: r.Content})
	}
	if err := j.Erase(e, chosen); err != nil {
		t.Fatal(err)
	}
}

// A node that is restored from a backup brings nothing back that it has erased since, whether it had erased before
// or not.
func TestRestoredNodeKnowsWhatItHasErased(t *testing.T) {
	for name, before := range map[string]bool{"the first": false, "later": true} {
		t.Run(name, func(t *testing.T) {
			nodes, journals := twoNodes(t)
			if before {
				requestErasure(t, journals[1], &storage.Record{ID: uuid.New()})
			}
			all := appendPersonal(t, journals[1])
			kill(t, journals[1])
			backup := t.TempDir()
			if err := os.CopyFS(backup, os.DirFS(journals[1].dir)); err != nil {
				t.Fatal(err)
			}
			nodes[1].write()
			journals[1] = open(t, nodes[1], Options{Dir: journals[1].dir})
			flush(t, journals[1])
			eraseAt(t, [2]*Journal{journals[1], journals[0]}, all[0], all[3], all[6])
			kill(t, journals[1])
			journals[1] = open(t, nodes[1], Options{Dir: backup})
			flush(t, journals[1])
			eventually(t, "its segments are gone", func() bool {
				signal(journals[1].maintenance.wake)
				return journals[1].log.newestRaw() == 0
			})
			wantErased(t, all, storage.EraseRecord, journals[1], journals[0])
		})
	}
}

// What is lost of the parts that a node has published is published again within renewEvery. Until then, erasures of
// the node wait for those that have not read it.
func TestPartsThatAreLost(t *testing.T) {
	nodes, journals := twoNodes(t)
	nodes[1].write()
	all := appendPersonal(t, journals[0])
	flush(t, journals[0])
	for _, r := range all[:3] {
		eraseAt(t, journals, r)
	}
	if err := nodes[0].ForgetErased(journals[0].identity, 2); err != nil {
		t.Fatal(err)
	}
	journals[1].Close(t.Context())
	journals[1] = open(t, nodes[1], Options{Dir: t.TempDir()})
	requestErasure(t, journals[0], all[3])
	exchangeUntil(t, "the erasure waits for the new node", func() bool { return waitsForOne(t, journals[0]) }, journals[:]...)
	compareSoon(journals[0])
	exchangeUntil(t, "the erasure is done", func() bool { return journals[0].Erasures("acme")[0].DoneAt != 0 }, journals[:]...)
	for _, r := range all[:4] {
		if journals[1].Erased(r.Key()) != storage.EraseRecord {
			t.Errorf("the new node does not know that %s was erased", r.ID)
		}
	}
}

// A node that could not read for a while reads parts that have the numbers of lost ones.
func TestPartsThatReplaceLostOnes(t *testing.T) {
	nodes, journals := twoNodes(t)
	nodes[1].write()
	all := appendPersonal(t, journals[0])
	flush(t, journals[0])
	eraseAt(t, journals, all[0])
	eraseAt(t, journals, all[1])
	journals[1].nodes.turn.Lock()
	giveTurn := sync.OnceFunc(journals[1].nodes.turn.Unlock)
	defer giveTurn()
	if err := nodes[0].ForgetNodes(); err != nil {
		t.Fatal(err)
	}
	exchangeUntil(t, "all that was erased is published again", func() bool { return stateOf(t, nodes[0], journals[0]).ErasedParts == 1 }, journals[0])
	requestErasure(t, journals[0], all[2])
	exchangeUntil(t, "another part is published", func() bool { return stateOf(t, nodes[0], journals[0]).ErasedParts == 2 }, journals[0])
	giveTurn()
	exchangeUntil(t, "the erasure is done", func() bool { return journals[0].Erasures("acme")[0].DoneAt != 0 }, journals[:]...)
	if journals[1].Erased(all[2].Key()) != storage.EraseRecord {
		t.Error("the other node has flushed without what was erased")
	}
}

// A list of erasures that cannot be read stays as it is when another node joins: each start says so.
func TestUnreadableErasuresAreNotReplaced(t *testing.T) {
	nodes, journals := twoNodes(t)
	nodes[1].write()
	all := appendPersonal(t, journals[0])
	flush(t, journals[0])
	eraseAt(t, journals, all[0])
	journals[0].Close(t.Context())
	path := filepath.Join(journals[0].dir, ErasuresName)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		journals[0] = open(t, nodes[0], Options{Dir: journals[0].dir})
		if err := journals[0].Connected(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, j := range journals {
			j.nodes.tryExchange(t.Context())
		}
		if err := journals[0].erasures.reopen(); err != nil {
			t.Fatal(err)
		}
		if now, err := os.ReadFile(path); journals[0].erasures.refused == nil || string(now) != string(text) {
			t.Errorf("the list is %q, %v", now, err)
		}
		journals[0].Close(t.Context())
	}
}

// Nodes write no list of erasures before there are some.
func TestNodesWithoutErasures(t *testing.T) {
	nodes, journals := twoNodes(t)
	nodes[1].write()
	for _, j := range append(journals[:], journals[:]...) {
		j.nodes.tryExchange(t.Context())
		if err := j.erasures.reopen(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(journals[0].dir, ErasuresName)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a list of erasures: %v", err)
	}
}

// A part that has the number of a lost one is read by those that have read the lost one.
func TestPartsWithTheNumbersOfLostOnes(t *testing.T) {
	nodes, journals := twoNodes(t)
	nodes[1].write()
	all := appendPersonal(t, journals[0])
	flush(t, journals[0])
	eraseAt(t, journals, all[0])
	eraseAt(t, journals, all[1])
	if err := nodes[0].ForgetErased(journals[0].identity, stateOf(t, nodes[0], journals[0]).ErasedParts); err != nil {
		t.Fatal(err)
	}
	compareSoon(journals[0])
	requestErasure(t, journals[0], all[2])
	exchangeUntil(t, "the erasure is done", func() bool { return journals[0].Erasures("acme")[0].DoneAt != 0 }, journals[:]...)
	if journals[1].Erased(all[2].Key()) != storage.EraseRecord {
		t.Error("the other node has flushed without what was erased")
	}
}

// compareSoon has the next exchange compare what the backend has of what was erased.
func compareSoon(j *Journal) {
	j.nodes.turn.Lock()
	defer j.nodes.turn.Unlock()
	j.nodes.comparedAt -= storage.Timestamp(renewEvery.Milliseconds())
}

// What is not published yet is published once, also if the node compares meanwhile.
func TestComparingPublishesWhatIsLackingAlone(t *testing.T) {
	nodes, journals := twoNodes(t)
	nodes[1].write()
	all := appendPersonal(t, journals[0])
	flush(t, journals[0])
	for _, r := range all[:4] {
		compareSoon(journals[0])
		eraseAt(t, journals, r)
	}
	parts, err := nodes[0].ErasedBy(t.Context(), journals[0].identity, 0)
	entries := 0
	for _, part := range parts {
		entries += (len(part) - erasedKeyBytes) / erasedEntry
	}
	if err != nil || entries != 4 {
		t.Errorf("%d records are published of 4, %v", entries, err)
	}
}

// A node that erases something for the first time takes a key that others have, so that looking a record up costs no
// more with many nodes that have erased.
func TestNodesShareAKey(t *testing.T) {
	nodes, journals := twoNodes(t)
	nodes[1].write()
	all := appendPersonal(t, journals[0])
	flush(t, journals[0])
	eraseAt(t, journals, all[0])
	eraseAt(t, [2]*Journal{journals[1], journals[0]}, all[1])
	for _, r := range all[:2] {
		if journals[0].Erased(r.Key()) != storage.EraseRecord || journals[1].Erased(r.Key()) != storage.EraseRecord {
			t.Errorf("a node does not know that %s was erased", r.ID)
		}
	}
	for _, j := range journals {
		if r := j.erasures.records.Load(); len(r.others) != 1 || r.others[string(r.key)] == nil {
			t.Errorf("beside the node's own key, there are those of %d others", len(r.others))
		}
	}
}

// An erasure for which another node brings more records than it takes at once takes them all.
func TestErasureTakesManyLateRecordsInParts(t *testing.T) {
	nodes, journals := twoNodes(t)
	o := *journals[0].options.Load()
	o.maxErased = erasePage / 2
	journals[0].options.Store(&o)
	var hers []*storage.Record
	for n := range erasePage + 9 {
		r, c := personal(3 * n)
		if err := journals[1].Append(r, storagetest.Kept(r, c)); err != nil {
			t.Fatal(err)
		}
		hers = append(hers, r)
	}
	if err := journals[0].Erase(erasurePerson(storage.EraseRecord), nil); err != nil {
		t.Fatal(err)
	}
	nodes[1].write()
	exchangeUntil(t, "the erasure is done", func() bool {
		e := journals[0].Erasures("acme")[0]
		return e.DoneAt != 0 && e.Records == int64(len(hers)) && e.Erased == e.Records
	}, journals[:]...)
	wantErased(t, hers, storage.EraseRecord, journals[0], journals[1])
}

// A node reads what others erase while its maintenance is busy.
func TestNodesKnowWhatOthersEraseDuringMaintenance(t *testing.T) {
	nodes, journals := twoNodes(t)
	nodes[1].write()
	all := appendPersonal(t, journals[0])
	flush(t, journals[0])
	m := &journals[1].maintenance
	m.turn <- struct{}{}
	defer m.giveTurn()
	signal(m.wake)
	eventually(t, "maintenance waits for its turn", func() bool { return len(m.wake) == 0 })
	requestErasure(t, journals[0], all[0])
	eventually(t, "the other node knows of it", func() bool { return journals[1].Erased(all[0].Key()) == storage.EraseRecord })
}
