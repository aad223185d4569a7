package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/internal/testkit/storagetest/remote"
	"github.com/weirhq/weir/storage"
)

// node is a journal's connection to a backend that it shares with others.
type node struct {
	*remote.Backend
	// writes is closed by write: from then on batches can be written.
	writes chan struct{}
	write  func()
	// cut is true while the backend cannot be reached.
	cut atomic.Bool
	// older is added to the ages of states.
	older atomic.Int64
}

func (n *node) Open(ctx context.Context, h *storage.Host) (storage.Position, error) {
	if n.cut.Load() {
		return storage.Position{}, storage.ErrUnavailable
	}
	return n.Backend.Open(ctx, h)
}

func (n *node) Write(ctx context.Context, b *storage.Batch) error {
	select {
	case <-n.writes:
		return n.Backend.Write(ctx, b)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (n *node) Nodes(ctx context.Context) (map[uuid.UUID]storage.Node, error) {
	nodes, err := n.Backend.Nodes(ctx)
	for id, node := range nodes {
		node.Age += time.Duration(n.older.Load())
		nodes[id] = node
	}
	return nodes, err
}

// twoNodes opens two journals with one backend, to which the second one cannot write yet.
func twoNodes(t *testing.T) (nodes [2]*node, journals [2]*Journal) {
	t.Helper()
	server, socket := listening(t, remote.Faults{})
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	for i := range nodes {
		writes := make(chan struct{})
		nodes[i] = &node{Backend: remote.New(socket), writes: writes, write: sync.OnceFunc(func() { close(writes) })}
		journals[i] = open(t, nodes[i], Options{Dir: t.TempDir()})
		t.Cleanup(nodes[i].write)
	}
	nodes[0].write()
	return nodes, journals
}

// kill ends a journal as a kill would: it brings nothing to the backend any more, and says nothing.
func kill(t *testing.T, j *Journal) {
	t.Helper()
	ended, stop := context.WithCancel(t.Context())
	stop()
	j.Close(ended)
}

// waitsForOne reports whether the erasure of a journal waits for one other, which runs here.
func waitsForOne(t *testing.T, j *Journal) bool {
	t.Helper()
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	e := j.Erasures("acme")[0]
	return e.DoneAt == 0 && slices.Equal(j.Unflushed(&e), []string{name})
}

// exchangeUntil lets journals exchange their states, and go on with erasures, until something is so.
func exchangeUntil(t *testing.T, what string, ok func() bool, journals ...*Journal) {
	t.Helper()
	eventually(t, what, func() bool {
		for _, j := range journals {
			j.nodes.tryExchange(t.Context())
			signal(j.maintenance.wake)
		}
		return ok()
	})
}

// appendPersonal appends some records, of which every third is the person's.
func appendPersonal(t *testing.T, j *Journal) (all []*storage.Record) {
	t.Helper()
	for n := range 9 {
		r, c := personal(n)
		j.Begin(r)
		if err := j.Append(r, storagetest.Kept(r, c)); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// erasurePerson erases whatever the filter chooses of the person.
func erasurePerson(scope storage.ErasureScope) Erasure {
	return Erasure{
		ID: uuid.New(), Org: "acme", Scope: scope, RequestedAt: storage.Millis(time.Now()),
		Filter: fmt.Appendf(nil, `{"request_response_rmt":{"user_id":{"equals":%q}}}`, person),
	}
}

// wantErased holds that nothing of the person is left, and that all of the others is there.
func wantErased(t *testing.T, all []*storage.Record, scope storage.ErasureScope, journals ...*Journal) {
	t.Helper()
	for _, j := range journals {
		if names := holding(t, j.dir, []byte(person)); names != nil {
			t.Errorf("the person is in %v", names)
		}
	}
	j := journals[0]
	for _, r := range all {
		got, err := j.Backend().Request(t.Context(), r.Key())
		hers := r.UserID == person
		if gone := hers && scope == storage.EraseRecord; gone != errors.Is(err, storage.ErrNotFound) || !gone && err != nil {
			t.Fatalf("record %s: %v, %v", r.ID, got, err)
		}
		if err == nil && hers && scope == storage.EraseIdentity && got.UserID != "" {
			t.Errorf("the user is %s", got.UserID)
		}
		if c, err := j.Backend().(storage.ContentKeeper).Content(t.Context(), r); (c == nil) != hers || err != nil {
			t.Errorf("the content of %s: %v, %v", r.ID, c, err)
		}
	}
}

// What another node brings to the backend after an erasure was requested is erased if it ended before, also
// if either node is killed meanwhile, and is in no file of that node.
func TestErasureOfWhatAnotherNodeWritesLater(t *testing.T) {
	for _, scope := range []storage.ErasureScope{storage.EraseContent, storage.EraseIdentity, storage.EraseRecord} {
		for _, killed := range []int{-1, 0, 1} {
			t.Run(fmt.Sprint(scope, " killed ", killed), func(t *testing.T) {
				nodes, journals := twoNodes(t)
				all := appendPersonal(t, journals[1])
				if err := journals[0].Erase(erasurePerson(scope), nil); err != nil {
					t.Fatal(err)
				}
				exchangeUntil(t, "the other node flushes", func() bool {
					n := &journals[1].nodes
					n.turn.Lock()
					defer n.turn.Unlock()
					return len(n.flushes) > 0
				}, journals[0], journals[1])
				exchangeUntil(t, "the erasure waits for the other node", func() bool { return waitsForOne(t, journals[0]) }, journals[:]...)
				if killed >= 0 {
					kill(t, journals[killed])
					journals[killed] = open(t, nodes[killed], Options{Dir: journals[killed].dir})
				}
				if e := journals[0].Erasures("acme")[0]; e.DoneAt != 0 {
					t.Fatalf("the erasure is done without the other node: %+v", e)
				}
				nodes[1].write()
				exchangeUntil(t, "the erasure is done", func() bool {
					e := journals[0].Erasures("acme")[0]
					return e.DoneAt != 0 && e.Records == 3 && e.Erased == 3 && e.Filter == nil
				}, journals[:]...)
				wantErased(t, all, scope, journals[0], journals[1])
			})
		}
	}
}

// A node knows what others have erased: it takes no import of it, and writes nothing of a later version, also
// after a start.
func TestNodesKnowWhatOthersErase(t *testing.T) {
	nodes, journals := twoNodes(t)
	nodes[1].write()
	all := appendPersonal(t, journals[1])
	flush(t, journals[1])
	var chosen []Chosen
	for n := 0; n < len(all); n += 3 {
		chosen = append(chosen, Chosen{ID: all[n].ID, Content: all[n].Content})
	}
	done := func() bool { return journals[0].Erasures("acme")[0].DoneAt != 0 }
	erase := func(chosen []Chosen) {
		t.Helper()
		e := erasurePerson(storage.EraseRecord)
		e.Records = int64(len(chosen))
		if err := journals[0].Erase(e, chosen); err != nil {
			t.Fatal(err)
		}
		exchangeUntil(t, "the erasure is done", done, journals[:]...)
	}
	erase(chosen[:1])
	erase(chosen[1:])
	for _, again := range []bool{false, true} {
		if again {
			journals[1].Close(t.Context())
			journals[1] = open(t, nodes[1], Options{Dir: journals[1].dir})
		}
		for n := 0; n < len(all); n += 3 {
			r, c := personal(n)
			if journals[1].Claim(t.Context(), r.Key()) || journals[1].Erased(r.Key()) != storage.EraseRecord {
				t.Fatal("the id can be used again")
			}
			if err := journals[1].Append(r, storagetest.Kept(r, c)); err != nil {
				t.Fatal(err)
			}
		}
		flush(t, journals[1])
		wantErased(t, all, storage.EraseRecord, journals[0], journals[1])
	}
	if r, _ := personal(1); journals[1].Erased(r.Key()) != 0 {
		t.Error("what nobody has erased counts as erased")
	}
}

// The version of a record that another node writes before it knows of an erasure is erased, too.
func TestErasureOfAVersionThatAnotherNodeWritesLater(t *testing.T) {
	nodes, journals := twoNodes(t)
	all := appendPersonal(t, journals[0])
	flush(t, journals[0])
	var chosen []Chosen
	for n := 0; n < len(all); n += 3 {
		r, c := personal(n)
		if err := journals[1].Append(r, storagetest.Kept(r, c)); err != nil {
			t.Fatal(err)
		}
		chosen = append(chosen, Chosen{ID: r.ID, Content: all[n].Content})
	}
	e := erasurePerson(storage.EraseRecord)
	e.RequestedAt -= storage.Timestamp(2 * flushTimeout.Milliseconds()) // the backend does not wait for the other node
	e.Records = int64(len(chosen))
	if err := journals[0].Erase(e, chosen); err != nil {
		t.Fatal(err)
	}
	gone := func() bool {
		_, err := journals[0].Backend().Request(t.Context(), all[0].Key())
		return errors.Is(err, storage.ErrNotFound)
	}
	eventually(t, "the backend has erased the records", gone)
	nodes[1].write()
	exchangeUntil(t, "the erasure is done", func() bool { return journals[0].Erasures("acme")[0].DoneAt != 0 }, journals[:]...)
	wantErased(t, all, storage.EraseRecord, journals[0], journals[1])
}

// Nobody waits for a node that has stopped and left nothing behind, nor for ever for one that is gone: the
// erasure names it.
func TestErasureWithoutANode(t *testing.T) {
	nodes, journals := twoNodes(t)
	nodes[1].write()
	all := appendPersonal(t, journals[1])
	flush(t, journals[1])
	done := func() bool { return journals[0].Erasures("acme")[0].DoneAt != 0 }
	if err := journals[1].Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := journals[0].Erase(erasurePerson(storage.EraseIdentity), nil); err != nil {
		t.Fatal(err)
	}
	exchangeUntil(t, "the erasure is done", done, journals[0])
	wantErased(t, all, storage.EraseIdentity, journals[0], journals[1])

	journals[1] = open(t, nodes[1], Options{Dir: journals[1].dir})
	kill(t, journals[1])
	if err := journals[0].Erase(erasurePerson(storage.EraseRecord), nil); err != nil {
		t.Fatal(err)
	}
	exchangeUntil(t, "the erasure waits", func() bool { return waitsForOne(t, journals[0]) }, journals[0])
	if done() {
		t.Error("the erasure is done without the other node")
	}
	nodes[0].older.Store(int64(maxSilence))
	exchangeUntil(t, "the erasure is done", done, journals[0])
	if e := journals[0].Erasures("acme")[0]; len(e.Silent) == 0 || slices.Contains(e.Silent, "") {
		t.Errorf("the erasure names %q", e.Silent)
	}
}

// A node that takes calls while it cannot reach the backend, and for which nobody waits, because it is new, has left or
// was silent, has them erased once it joins: the erasure that was done goes on. Meanwhile no file names the person.
func TestErasureGoesOnWhenANodeJoins(t *testing.T) {
	for name, c := range map[string]struct{ isNew, silent, killed bool }{
		"new":            {isNew: true},
		"new and killed": {isNew: true, killed: true},
		"left":           {},
		"silent":         {silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			nodes, journals := twoNodes(t)
			nodes[1].write()
			if c.silent {
				kill(t, journals[1])
			} else if err := journals[1].Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			nodes[1].cut.Store(true)
			options := Options{Dir: journals[1].dir, firstSegment: 1}
			if c.isNew {
				options.Dir = t.TempDir()
			}
			start := func() {
				t.Helper()
				j, err := Open(t.Context(), nodes[1], options)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { j.Close(t.Context()) })
				journals[1] = j
			}
			start()
			all := appendPersonal(t, journals[1])
			if err := journals[0].Erase(erasurePerson(storage.EraseRecord), nil); err != nil {
				t.Fatal(err)
			}
			if c.silent {
				nodes[0].older.Store(int64(maxSilence))
			}
			done := func() bool { return journals[0].Erasures("acme")[0].DoneAt != 0 }
			exchangeUntil(t, "the erasure is done without the node", done, journals[0])
			nodes[0].older.Store(0)
			if names := holding(t, journals[0].dir, []byte(person)); names != nil {
				t.Errorf("the person is in %v", names)
			}
			if c.killed {
				kill(t, journals[1])
				start()
			}
			if c.silent {
				nodes[1].older.Store(int64(maxSilence))
			}
			nodes[1].cut.Store(false)
			eventually(t, "the node joins", func() bool {
				signal(journals[1].delivery.wake)
				return journals[1].delivery.isConnected()
			})
			nodes[1].older.Store(0)
			exchangeUntil(t, "the erasure is done again", func() bool { return done() && journals[0].Erasures("acme")[0].Records == 3 }, journals[:]...)
			wantErased(t, all, storage.EraseRecord, journals[0], journals[1])
		})
	}
}

// A node that joins with calls that are all later than an erasure has nothing that this chooses.
func TestErasureStaysDoneWhenANodeJoins(t *testing.T) {
	nodes, journals := twoNodes(t)
	nodes[1].write()
	if err := journals[1].Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	e := erasurePerson(storage.EraseRecord)
	e.RequestedAt -= 1000
	if err := journals[0].Erase(e, nil); err != nil {
		t.Fatal(err)
	}
	done := func() bool { return journals[0].Erasures("acme")[0].DoneAt != 0 }
	exchangeUntil(t, "the erasure is done", done, journals[0])
	joined := open(t, nodes[1], Options{Dir: t.TempDir()})
	exchangeUntil(t, "the node is known", func() bool {
		l := &journals[0].erasures
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.joined[joined.identity] != 0
	}, journals[0])
	if e := journals[0].Erasures("acme")[0]; e.DoneAt == 0 || e.EncryptedFilter == nil {
		t.Errorf("the erasure goes on: %+v", e)
	}
}

// The filter of an erasure that is done stays no longer than a node that joins may bring what it chooses.
func TestFilterOfAnErasureIsForgotten(t *testing.T) {
	_, journals := twoNodes(t)
	if err := journals[1].Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	e := erasurePerson(storage.EraseRecord)
	for _, age := range []time.Duration{maxAbsence - time.Hour, maxAbsence} {
		e.ID, e.RequestedAt = uuid.New(), storage.Millis(time.Now().Add(-age))
		if err := journals[0].Erase(e, nil); err != nil {
			t.Fatal(err)
		}
	}
	exchangeUntil(t, "the older filter is forgotten", func() bool {
		all := journals[0].Erasures("acme") // the newest first
		return all[0].DoneAt != 0 && all[0].Filter == nil && all[0].EncryptedFilter == nil
	}, journals[0])
	if e := journals[0].Erasures("acme")[1]; e.DoneAt == 0 || e.EncryptedFilter == nil {
		t.Errorf("the newer one has %+v", e)
	}
}

// The state of a node that stops in peace has all that it had before, also if it was killed and saved nothing since.
func TestStateOfANodeThatStops(t *testing.T) {
	nodes, journals := twoNodes(t)
	all := appendPersonal(t, journals[0])
	flush(t, journals[0])
	nodes[1].write()
	if err := journals[0].Erase(erasurePerson(storage.EraseRecord), []Chosen{{ID: all[0].ID, Content: all[0].Content}}); err != nil {
		t.Fatal(err)
	}
	exchangeUntil(t, "the erasure is done", func() bool { return journals[0].Erasures("acme")[0].DoneAt != 0 }, journals[:]...)
	kill(t, journals[0])
	before := stateOf(t, nodes[1], journals[0])
	journals[0] = open(t, nodes[0], Options{Dir: journals[0].dir})
	if err := journals[0].Connected(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := journals[0].Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := stateOf(t, nodes[1], journals[0])
	if !after.Left || after.Host == "" || after.ErasedParts == 0 || after.ErasedParts != before.ErasedParts || after.FlushRequest != before.FlushRequest {
		t.Errorf("it is %+v, and was %+v", after, before)
	}
}

// stateOf reads the state of a journal.
func stateOf(t *testing.T, n *node, j *Journal) (state nodeState) {
	t.Helper()
	nodes, err := n.Nodes(t.Context())
	if text := nodes[j.identity].State; err == nil && text != "" {
		err = json.Unmarshal([]byte(text), &state)
	}
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// An erasure waits for a node that has saved no state, and names it: one of an earlier version.
func TestErasureBesideANodeWithoutAState(t *testing.T) {
	server, socket := listening(t, remote.Faults{})
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	silent := open(t, struct{ storage.Backend }{remote.New(socket)}, Options{Dir: t.TempDir()})
	if err := silent.Connected(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := &node{Backend: remote.New(socket), writes: make(chan struct{})}
	close(n.writes)
	j := open(t, n, Options{Dir: t.TempDir()})
	if err := j.Erase(erasurePerson(storage.EraseRecord), nil); err != nil {
		t.Fatal(err)
	}
	exchangeUntil(t, "the erasure names the node", func() bool {
		e := j.Erasures("acme")[0]
		waits := j.Unflushed(&e)
		if e.DoneAt != 0 {
			t.Fatal("the erasure is done without the node")
		}
		return len(waits) == 1 && strings.Contains(waits[0], silent.identity.String())
	}, j)
	n.older.Store(int64(maxSilence))
	exchangeUntil(t, "the erasure is done", func() bool { return j.Erasures("acme")[0].DoneAt != 0 }, j)
	if e := j.Erasures("acme")[0]; len(e.Silent) != 1 || !strings.Contains(e.Silent[0], silent.identity.String()) {
		t.Errorf("the erasure names %q", e.Silent)
	}

	n.older.Store(int64(maxAbsence))
	if err := j.Erase(erasurePerson(storage.EraseRecord), nil); err != nil {
		t.Fatal(err)
	}
	exchangeUntil(t, "the next erasure is done", func() bool { return j.Erasures("acme")[0].DoneAt != 0 }, j)
	if e := j.Erasures("acme")[0]; len(e.Silent) != 0 {
		t.Errorf("a month later, an erasure names %q", e.Silent)
	}
}

// Nodes whose table was emptied while they run save again what they have erased, and others read it.
func TestStatesThatAreLost(t *testing.T) {
	nodes, journals := twoNodes(t)
	nodes[1].write()
	all := appendPersonal(t, journals[0])
	flush(t, journals[0])
	erase := func(r *storage.Record) {
		t.Helper()
		e := erasurePerson(storage.EraseRecord)
		e.Filter = fmt.Appendf(nil, `{"request_response_rmt":{"user_id":{"equals":"nobody"}}}`)
		if err := journals[0].Erase(e, []Chosen{{ID: r.ID, Content: r.Content}}); err != nil {
			t.Fatal(err)
		}
		exchangeUntil(t, "the erasure is done", func() bool { return journals[0].Erasures("acme")[0].DoneAt != 0 }, journals[:]...)
	}
	erase(all[0])
	erase(all[1])
	if err := nodes[0].ForgetNodes(); err != nil {
		t.Fatal(err)
	}
	exchangeUntil(t, "the states are there again", func() bool { return stateOf(t, nodes[0], journals[0]).ErasedParts > 0 }, journals[:]...)
	erase(all[2])
	if journals[1].Erased(all[2].Key()) != storage.EraseRecord {
		t.Error("the other node does not know what was erased since")
	}
	journals[1].Close(t.Context())
	journals[1] = open(t, nodes[1], Options{Dir: t.TempDir()})
	if err := journals[1].Connected(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, r := range all[:3] {
		if journals[1].Erased(r.Key()) != storage.EraseRecord {
			t.Errorf("a new node does not know that %s was erased", r.ID)
		}
	}
}

// A state that cannot be read stops no node: erasures wait for its node, and name it. The node itself replaces it.
func TestStateThatCannotBeRead(t *testing.T) {
	nodes, journals := twoNodes(t)
	broken := uuid.New()
	if err := nodes[0].SaveNode(t.Context(), broken, "{"); err != nil {
		t.Fatal(err)
	}
	if err := nodes[0].SaveNode(t.Context(), journals[1].identity, "{"); err != nil {
		t.Fatal(err)
	}
	kill(t, journals[0])
	journals[0] = open(t, nodes[0], Options{Dir: journals[0].dir})
	if err := journals[0].Connected(t.Context()); err != nil {
		t.Fatal(err)
	}
	appendPersonal(t, journals[0])
	flush(t, journals[0])
	if err := journals[0].Erase(erasurePerson(storage.EraseRecord), nil); err != nil {
		t.Fatal(err)
	}
	nodes[1].write()
	exchangeUntil(t, "the erasure names the node of the broken state alone", func() bool {
		e := journals[0].Erasures("acme")[0]
		waits := journals[0].Unflushed(&e)
		return e.DoneAt == 0 && len(waits) == 1 && strings.Contains(waits[0], broken.String())
	}, journals[:]...)
}
