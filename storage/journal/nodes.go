package journal

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
)

const (
	// exchangeEvery is how often a node reads the states of the others.
	exchangeEvery = time.Second
	// renewEvery is how often it saves a state that has not changed.
	renewEvery = time.Hour
	// maxSilence is the age of a state from which on nobody waits for its node: the machine may be gone.
	maxSilence = 7 * 24 * time.Hour
	// maxAbsence is the age of a state from which on no erasure names its node, and how long an erasure can
	// choose again for a node that joins.
	maxAbsence = 30 * 24 * time.Hour
	// flushTimeout is how long an erasure waits for flushes before the backend erases what is known. It erases
	// again after them.
	flushTimeout = 30 * time.Second
)

// nodes are the journals that write to the backend, this one included. By its state, a node says what it has
// erased, and requests flushes: every other node writes to the backend all that it had when it read the
// request, and deletes it from its raw segments. A node that has flushed also knows what the requesting node
// has erased.
type nodes struct {
	j       *Journal
	backend storage.Nodes // nil if the journal is the backend's only one
	// oldestAt is when calls were first appended that are in no sealed segment: 0 if some are from before this
	// process. It never changes.
	oldestAt storage.Timestamp

	// turn is held while states are exchanged. It guards the fields up to mu.
	turn sync.Mutex
	// parts is how many parts the backend has of what this node has erased, and published how many bytes of the
	// file they have, when that was comparedAt, and after what was published since.
	parts, published int64
	comparedAt       storage.Timestamp // 0 before the first exchange
	// read is what this node has read of what each other node has erased.
	read map[uuid.UUID]erasedParts
	// flushes are the requests of other nodes that are not fulfilled yet.
	flushes map[uuid.UUID]pendingFlush
	// state is this node's, as the last exchange has found or saved it.
	state nodeState

	// mu guards the fields.
	mu sync.Mutex
	// states are those of all nodes, as they were read last, nil before the first exchange. The map never
	// changes.
	states map[uuid.UUID]nodeState
	// failing is true if the last exchange has failed.
	failing bool
}

// erasedParts is how many parts were read of what a node has erased. They are read from the first one on if the node
// joins again, because its state is lost, or says that it has lost some: new ones have the numbers of lost ones.
type erasedParts struct {
	joinedAt, lostAt storage.Timestamp
	parts            int64
}

// pendingFlush is a request that is fulfilled once no raw segment up to one is left.
type pendingFlush struct {
	request int64
	segment uint64
}

// nodeState is what a node tells the others, as JSON.
type nodeState struct {
	// Host is where it runs.
	Host string
	// JoinedAt is when nobody waited for it before: it is new, had left, or was silent. The calls that it
	// brought along are from OldestAt on.
	JoinedAt, OldestAt storage.Timestamp `json:",omitempty"`
	// FlushRequest is the number of the last flush that it has requested, ErasedParts how many parts there are
	// of what it has erased.
	FlushRequest, ErasedParts int64 `json:",omitempty"`
	// PartsLostAt is when it has noticed that the backend has lost parts of it, 0 for never.
	PartsLostAt storage.Timestamp `json:",omitempty"`
	// Flushed are the last requests of other nodes that it has fulfilled.
	Flushed map[uuid.UUID]int64 `json:",omitempty"`
	// FilterKey encrypts the filters of its erasures that are done.
	FilterKey []byte `json:",omitempty"`
	// Left is true once it has ended without leaving anything behind.
	Left bool `json:",omitempty"`

	age time.Duration
}

// isAbsent reports whether nobody waits for the node: it joins when it is there again.
func (s *nodeState) isAbsent() bool { return s.JoinedAt == 0 || s.Left || s.age >= maxSilence }

// errNotSaved is what exchange fails with once it has read what other nodes have erased.
var errNotSaved = errors.New("what this node tells the others is not saved")

// run exchanges states until ctx ends, whatever maintenance does meanwhile.
func (n *nodes) run(ctx context.Context) {
	tick := time.NewTicker(exchangeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if n.tryExchange(ctx) {
				signal(n.j.maintenance.wake)
			}
		}
	}
}

// exchange reads the states of all nodes, and saves this node's if it has changed. changed is true if any has.
func (n *nodes) exchange(ctx context.Context) (changed bool, err error) {
	if n.backend == nil {
		return false, nil
	}
	n.turn.Lock()
	defer n.turn.Unlock()
	states, err := n.readStates(ctx)
	if err != nil {
		return false, err
	}
	before := states[n.j.identity]
	isLost := before.ErasedParts < n.state.ErasedParts || before.FlushRequest < n.state.FlushRequest // as all states may be
	if isLost || n.published == 0 || n.j.options.now() >= n.comparedAt+storage.Timestamp(renewEvery.Milliseconds()) {
		n.comparedAt = n.j.options.now()
		switch err := n.compareErased(ctx, states); {
		case err == nil:
			before = states[n.j.identity]
		case isLost || n.published == 0:
			return false, err
		default: // others need not wait for what is only to make sure
			n.j.options.logger().Warn("what the backend has of this node's erasures cannot be compared: this is tried again in an hour", zap.Error(err))
		}
	}
	next := before
	next.Host, _ = os.Hostname()
	if before.isAbsent() {
		next.JoinedAt, next.OldestAt, next.Left = n.j.options.now(), n.oldestAt, false
	}
	if len(next.FilterKey) != filterKeyBytes {
		if next.FilterKey = n.state.FilterKey; next.FilterKey == nil {
			next.FilterKey = make([]byte, filterKeyBytes)
			rand.Read(next.FilterKey)
		}
	}
	if next.Flushed, err = n.flush(ctx, states); err != nil {
		return false, err
	}
	if err := n.tell(ctx, states, &next); err != nil {
		return false, fmt.Errorf("%w: %w", errNotSaved, err)
	}
	changed = !reflect.DeepEqual(next, before)
	n.state = next
	n.mu.Lock()
	defer n.mu.Unlock()
	changed = changed || !maps.EqualFunc(states, n.states, func(a, b nodeState) bool {
		a.age, b.age = 0, 0
		return reflect.DeepEqual(a, b)
	})
	n.states = states
	return changed, nil
}

// tell notes which nodes have joined, publishes what this node has erased, and saves its next state if that differs
// from the one that was read, or is old.
func (n *nodes) tell(ctx context.Context, states map[uuid.UUID]nodeState, next *nodeState) error {
	if err := n.j.erasures.noteJoined(states); err != nil {
		return err
	}
	request, file := n.j.erasures.lastFlush()
	if err := n.publishNew(ctx, file); err != nil {
		return err
	}
	next.FlushRequest, next.ErasedParts = request, n.parts
	if before, isSaved := states[n.j.identity]; isSaved && reflect.DeepEqual(*next, before) && before.age <= renewEvery {
		return nil
	}
	return n.save(ctx, n.j.identity, *next)
}

// tryExchange is an exchange that is tried again a second later.
func (n *nodes) tryExchange(ctx context.Context) (changed bool) {
	if n.backend == nil || !n.j.delivery.isConnected() {
		return false
	}
	changed, err := n.exchange(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil && !n.failing && ctx.Err() == nil {
		n.j.options.logger().Error("this node and the others do not know what each has erased: it is tried again each second", zap.Error(err))
	}
	n.failing = err != nil
	return changed
}

// readStates reads all states. A node without a state, or whose state cannot be read, has flushed nothing.
func (n *nodes) readStates(ctx context.Context) (map[uuid.UUID]nodeState, error) {
	found, err := n.backend.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	states := make(map[uuid.UUID]nodeState, len(found))
	for id, node := range found {
		s := nodeState{}
		if node.State == "" {
			s.Host = id.String() + " (of an earlier version, or it ended before it saved its state)"
			if node.Age == 0 {
				if err := n.save(ctx, id, s); err != nil { // from now on it has an age
					return nil, err
				}
			}
		} else if err := json.Unmarshal([]byte(node.State), &s); err != nil {
			s = nodeState{Host: id.String() + " (its state cannot be read)"}
			if n.states[id].Host != s.Host {
				n.j.options.logger().Error("erasures wait for a node whose state cannot be read: start it, and it saves another", zap.Stringer("node", id), zap.Error(err))
			}
		}
		s.age = node.Age
		states[id] = s
	}
	return states, nil
}

func (n *nodes) save(ctx context.Context, node uuid.UUID, s nodeState) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return n.backend.SaveNode(ctx, node, string(text))
}

// compareErased compares what the backend has of what this node has erased with the journal's file. What the backend
// lacks is published once more. What the file lacks, as after a restore from a backup, is known from then on.
// No flush has the number of an earlier one, also if this node's state is gone.
func (n *nodes) compareErased(ctx context.Context, states map[uuid.UUID]nodeState) error {
	parts, err := n.backend.ErasedBy(ctx, n.j.identity, 0)
	if err != nil {
		return err
	}
	if own := states[n.j.identity]; !own.isAbsent() && int64(len(parts)) < max(own.ErasedParts, n.parts) {
		own.ErasedParts, own.PartsLostAt = int64(len(parts)), max(n.j.options.now(), own.PartsLostAt+1)
		if err := n.save(ctx, n.j.identity, own); err != nil { // before a new part has the number of a lost one
			return err
		}
		states[n.j.identity] = own
	}
	n.parts = int64(len(parts))
	published := make(map[string]erasedSet)
	for _, part := range parts {
		if len(part) > erasedKeyBytes {
			key := string(part[:erasedKeyBytes])
			published[key] = published[key].with(part[erasedKeyBytes:])
		}
	}
	file := n.takeErased(states, published)
	if file == nil || file.key == nil {
		n.published = erasedKeyBytes
		return nil
	}
	if lacking := published[string(file.key)].lacking(file.set); len(lacking) > 0 {
		return n.publish(ctx, slices.Concat(file.key, lacking), file.file.Size)
	}
	n.published = file.file.Size
	return nil
}

// takeErased takes from the backend what the journal's file lacks of what this node has erased and published, by its
// keys, and the number of the last flush. It returns what the node has erased.
func (n *nodes) takeErased(states map[uuid.UUID]nodeState, published map[string]erasedSet) *erasedRecords {
	l := &n.j.erasures
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flushRequest = max(l.flushRequest, states[n.j.identity].FlushRequest)
	for _, s := range states {
		l.flushRequest = max(l.flushRequest, s.Flushed[n.j.identity])
	}
	before := l.records.Load()
	r := before
	for key, set := range published {
		if lacking := r.lacking(key, set); len(lacking) > 0 {
			r = r.withOthers(key, lacking)
		}
	}
	if r != before {
		l.records.Store(r)
		l.j.removals.Add(1)
	}
	return r
}

// publishNew publishes what the file of erased records has up to a size, and the backend lacks.
func (n *nodes) publishNew(ctx context.Context, size int64) error {
	if size <= n.published {
		return nil
	}
	f, err := os.Open(filepath.Join(n.j.dir, erasedName))
	if err != nil {
		return err
	}
	defer f.Close()
	part := make([]byte, erasedKeyBytes+size-n.published)
	if err := readAt(f, part[:erasedKeyBytes], 0); err != nil {
		return err
	}
	if err := readAt(f, part[erasedKeyBytes:], n.published); err != nil {
		return err
	}
	return n.publish(ctx, part, size)
}

// publish adds a part to what the backend has of the file of erased records, and has all of it up to a size then.
func (n *nodes) publish(ctx context.Context, part []byte, size int64) error {
	if err := n.backend.AddErased(ctx, n.j.identity, n.parts+1, part); err != nil {
		n.published = 0 // the backend may have the part all the same: compareErased asks
		return err
	}
	n.parts++
	n.published = size
	return nil
}

// flush reads what other nodes have erased, begins the flushes that they request, and returns the last requests
// that are fulfilled.
func (n *nodes) flush(ctx context.Context, states map[uuid.UUID]nodeState) (flushed map[uuid.UUID]int64, err error) {
	flushed = maps.Clone(states[n.j.identity].Flushed)
	begins := false
	for id, s := range states {
		if id == n.j.identity {
			continue
		}
		read := n.read[id]
		if read.joinedAt != s.JoinedAt || read.lostAt != s.PartsLostAt || read.parts > s.ErasedParts {
			read = erasedParts{joinedAt: s.JoinedAt, lostAt: s.PartsLostAt}
		}
		if s.ErasedParts > read.parts {
			parts, err := n.backend.ErasedBy(ctx, id, read.parts)
			if err != nil {
				return nil, err
			}
			parts = parts[:min(int64(len(parts)), s.ErasedParts-read.parts)] // the next ones are from before others were lost
			n.j.erasures.addOthers(parts)
			read.parts += int64(len(parts))
		}
		n.read[id] = read
		if _, runs := n.flushes[id]; !runs && s.FlushRequest > flushed[id] && s.ErasedParts == read.parts {
			n.flushes[id] = pendingFlush{s.FlushRequest, n.j.log.newestRaw()}
			begins = true
		}
	}
	if begins {
		n.j.log.turn.Lock()
		if s := n.j.log.active; s != nil {
			n.j.log.close(s) // the drain wakes maintenance when the backend has all of it
		}
		n.j.log.turn.Unlock()
	}
	oldest := n.j.log.oldestRaw()
	for id, f := range n.flushes {
		if f.segment < oldest {
			if flushed == nil {
				flushed = make(map[uuid.UUID]int64)
			}
			flushed[id] = f.request
			delete(n.flushes, id)
		}
	}
	return flushed, nil
}

// filterKey is the key of encrypted filters, as the backend has it.
func (n *nodes) filterKey() []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.states[n.j.identity].FilterKey
}

// unflushed lists the nodes that have not fulfilled a request, without those that have left or are silent.
// Before the states were read with the request among them, nobody knows which nodes there are.
func (n *nodes) unflushed(request int64) (hosts []string) {
	if n.backend == nil || request == 0 {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.states[n.j.identity].FlushRequest < request {
		return []string{"all other nodes"}
	}
	for id, s := range n.states {
		if id != n.j.identity && !s.Left && s.age < maxSilence && s.Flushed[n.j.identity] < request {
			hosts = append(hosts, s.Host)
		}
	}
	slices.Sort(hosts)
	return hosts
}

// silent lists the nodes that nobody waits for although they have not left, until they are forgotten.
func (n *nodes) silent() (hosts []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id, s := range n.states {
		if id != n.j.identity && !s.Left && s.age >= maxSilence && s.age < maxAbsence {
			hosts = append(hosts, s.Host)
		}
	}
	slices.Sort(hosts)
	return hosts
}

// leave says that the node has ended, if it leaves nothing behind. Nothing else of it runs any more.
func (n *nodes) leave(ctx context.Context) {
	if n.backend == nil || ctx.Err() != nil || !n.j.delivery.isConnected() {
		return
	}
	m := &n.j.maintenance
	m.sealer.noContent, m.sealer.erased = true, n.j.erasures.records.Load()
	for _, s := range m.deliveredSegments() {
		if err := m.seal(ctx, &m.sealer, s); err != nil {
			return
		}
	}
	if n.j.log.newestRaw() > 0 {
		return
	}
	if _, err := n.exchange(ctx); err != nil {
		return
	}
	last := n.state
	last.Left = true
	if err := n.save(ctx, n.j.identity, last); err != nil {
		n.j.options.logger().Warn("other nodes wait for this one before their erasures are done", zap.Error(err))
	}
}
