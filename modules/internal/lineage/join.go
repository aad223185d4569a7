package lineage

import (
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"
)

// The properties of a record that say which agent of its session a call is of.
const (
	AgentProperty       = "Agent-Id"
	ParentAgentProperty = "Parent-Agent-Id"
)

// Link is a call in an index.
type Link struct {
	index    *Index
	call     ref
	scope    uint64
	messages uint64 // the key of its messages
	features features
	turn     int32 // 0 is unknown
	edited   int32 // position of the first message that the turn before did not have, -1 if it had all
	before   ref   // the turn before, or the earlier try of the same turn; zero for a first call
	prefix   ref   // the call that sent the beginning of this one, zero if there is none
}

// Join finds the call before that of r, sets ParentID, RootID and Turn of r, and remembers the
// call for those that follow. It never links calls of two organisations, keys, users or sessions.
// previous is the record that the call continues, the zero UUID if the caller does not know one.
func (x *Index) Join(r *storage.Record, o *observe.Outline, previous uuid.UUID) *Link {
	q := newQuery(r, o)
	q.previous = previous
	x.mu.Lock()
	defer x.mu.Unlock()
	parent, kind := x.find(q)
	c := x.remember(call{id: r.ID, created: r.CreatedAt, agent: q.agent, features: featuresOf(o), edited: -1, input: unknown})
	x.storeMessages(c, o.Messages)
	before := x.follow(c, q, parent, kind)
	l := &Link{
		index: x, call: c.ref, scope: q.scope, messages: key(byMessages, q.scope, q.prefixes[len(q.prefixes)-1]),
		features: c.features, turn: c.turn, edited: c.edited, before: before,
	}
	if beginsAs(parent, c.features) {
		l.prefix = parent.ref
	}
	r.ParentID, r.RootID = c.parent, c.root
	if c.turn > 0 {
		r.Turn = plugins.Known(int64(c.turn))
	}
	if r.Dialect == plugins.Responses {
		x.add(c, key(byID, Hash(q.org), Hash(r.ID.String())))
	}
	c.twin = x.add(c, l.messages)
	x.add(c, key(byLast, q.scope, o.Messages[len(o.Messages)-1].Hash))
	if r.SessionID != "" {
		x.add(c, key(byAgent, q.scope, q.agent))
		if !q.hasName {
			x.add(c, key(byInstructions, q.scope, q.role()))
		}
	}
	x.trim()
	return l
}

// follow sets the parent, the root and the turn of c, which follows parent as kind says. It
// returns the turn before c, or the earlier try of the same turn; zero for a first call.
func (x *Index) follow(c *call, q *query, parent *call, kind relation) (before ref) {
	switch kind {
	case repeats:
		c.parent, c.root, c.turn = parent.parent, parent.root, parent.turn
		x.shareTools(c, parent)
		if parent.input != unknown {
			return parent.ref
		}
		// The earlier try has failed: the provider has what the turn before that one sent.
		c.before, c.edited = parent.before, parent.edited
	case continues:
		c.before, c.edited = parent.ref, x.firstEdited(q, parent)
		c.parent, c.root = parent.id, rootOf(parent)
		x.shareTools(c, parent)
		if parent.turn > 0 {
			c.turn = parent.turn + 1
		}
		x.dropMessages(parent)
	case delegated:
		c.parent, c.root, c.turn = parent.id, rootOf(parent), 1
	default:
		c.parent = q.previous
		if !q.hasHistory && q.previous == uuid.Nil {
			c.turn = 1
		}
	}
	return c.before
}

func featuresOf(o *observe.Outline) features {
	return features{
		tools: o.Tools, instructions: o.Instructions, cacheKey: o.CacheKey,
		cacheLife: cacheLife(o.CacheLife), marked: o.Marked, messagesMarked: o.MarkedMessages > 0,
	}
}

func rootOf(c *call) uuid.UUID {
	if c.root == uuid.Nil {
		return c.id
	}
	return c.root
}

// isAmbiguous reports whether another call has the same messages, so that only the answers tell
// which of them a later call continues. A single question without tools is not ambiguous:
// programs repeat such questions, and seldom continue them.
func (l *Link) isAmbiguous(c *call) bool {
	return (l.features.tools != 0 || l.turn != 1) && (c.twin != ref{} || l.index.calls[l.messages] != l.call)
}

// Answered stores the answer of the call, so that later calls can continue it, and gives r the
// loopProperty if the conversation is in a loop. account is the one in which the provider caches.
// target is that account with the requested model, 0 if a proxy passed the call on. body is the
// answer, empty if its content is omitted.
func (l *Link) Answered(r *storage.Record, account, target uint64, body storage.Body) {
	if len(body.Data) > maxAnswer {
		body = storage.Body{}
	}
	var calls []toolCall
	var tasks []uint64
	if l.features.tools != 0 && observe.Transcript(r.Dialect).MayCallTools(body.Data) {
		calls, tasks = toolCalls(turnsOf(r.Dialect, body))
	}
	x := l.index
	x.mu.Lock()
	defer x.mu.Unlock()
	c := x.get(l.call)
	if c == nil {
		return
	}
	if !c.answer.arrived {
		if r.ResponseID != "" {
			x.add(c, key(byResponse, Hash(r.Org), Hash(r.ResponseID)))
		}
		if loop := x.countTools(c, calls); loop != "" {
			r.Properties = maps.Clone(r.Properties) // which the attempts of a call share
			if r.Properties == nil {
				r.Properties = make(map[string]string, 1)
			}
			r.Properties[loopProperty] = loop
		}
		for _, task := range tasks {
			x.addTask(c, l.scope, task)
		}
	}
	if len(body.Data) > 0 && l.isAmbiguous(c) {
		c.answer.unread = x.unread.keep(r.Dialect, body)
	}
	c.answer.arrived, c.account, c.target, c.model, c.input = true, account, target, Hash(r.Model), unknown
	if r.Usage.Input.Valid {
		c.before, c.input = ref{}, r.Usage.Input.N
	}
	x.trim()
}

// relation says how a call follows the one before it.
type relation int

const (
	begins    relation = iota // no call comes before it
	continues                 // the next turn of the conversation
	repeats                   // another try of the same turn
	delegated                 // the first call of a sub-agent that the call before asked for
)

// query is a call whose predecessor is looked for.
type query struct {
	*observe.Outline
	previous           uuid.UUID
	org, session       string
	scope              uint64
	agent, parentAgent uint64
	hasName            bool            // the agent has a name
	prefixes           []uint64        // for each message, the key of the messages up to it
	hasHistory         bool            // a model has written one of the messages
	hashes             map[uint64]bool // of the messages, nil until findEdited needs them
}

func newQuery(r *storage.Record, o *observe.Outline) *query {
	q := &query{Outline: o, org: r.Org, session: r.SessionID}
	agent := r.Properties[AgentProperty]
	q.scope = Hash(r.Org, r.AuthHash, r.UserID, r.SessionID)
	q.agent, q.parentAgent, q.hasName = Hash(agent), Hash(r.Properties[ParentAgentProperty]), agent != ""
	q.prefixes = make([]uint64, len(o.Messages))
	var prefix uint64
	for i, m := range o.Messages {
		prefix = key(byMessages, prefix, m.Hash)
		q.prefixes[i] = prefix
		q.hasHistory = q.hasHistory || m.Model
	}
	return q
}

// role is the key of an agent without a name, by its instructions.
func (q *query) role() uint64 { return key(byInstructions, q.agent, q.Instructions) }

// find returns the call before that of a query, nil if it begins a conversation.
func (x *Index) find(q *query) (*call, relation) {
	if q.PreviousResponse != "" {
		if c := x.lookup(key(byResponse, Hash(q.org), Hash(q.PreviousResponse))); c != nil {
			return c, continues
		}
		if c := x.lookup(key(byID, Hash(q.org), Hash(q.previous.String()))); c != nil {
			return c, continues
		}
		return nil, begins
	}
	n := len(q.Messages)
	if c := x.lookup(key(byMessages, q.scope, q.prefixes[n-1])); c != nil && c.agent == q.agent && q.hasHistory {
		return c, repeats
	}
	before, last, repeated := x.findLongest(q)
	later, at := x.findEdited(q, last)
	if later != nil && (before == nil || rootOf(later) == rootOf(before) || !repeated && (at < n-1 || x.beginAlike(later, q, last+1))) {
		before = later
	}
	switch {
	case before != nil && before.agent == q.agent:
		return before, continues
	case before != nil:
		return before, delegated
	case !q.hasHistory:
		for _, task := range q.Tasks {
			if c := x.takeTask(q.scope, task); c != nil {
				return c, delegated
			}
		}
		if c := x.lookup(key(byMessages, q.scope, q.prefixes[n-1])); c != nil && c.agent == q.agent && c.parent != uuid.Nil {
			return c, repeats // of a sub-agent
		}
	}
	return x.findInSession(q)
}

// addTask adds c to the calls that wait for a sub-agent with this task, after those that asked for
// the same task earlier.
func (x *Index) addTask(c *call, scope, task uint64) {
	k := key(byTask, scope, task)
	waiting := x.waitingCalls(k)
	x.setWaitingCalls(k, append(waiting[:min(len(waiting), maxSameTasks-1)], c.ref))
	x.addKey(c, k)
}

// takeTask removes and returns the first call that waits for a sub-agent with this task, nil if
// none does.
func (x *Index) takeTask(scope, task uint64) *call {
	k := key(byTask, scope, task)
	waiting := x.waitingCalls(k)
	if len(waiting) == 0 {
		return nil
	}
	x.setWaitingCalls(k, waiting[1:])
	return x.get(waiting[0])
}

// waitingCalls returns the calls that wait for a sub-agent, in the order in which they asked.
func (x *Index) waitingCalls(k uint64) (refs []ref) {
	for word := range words(&x.blocks, x.tasks[k]) {
		refs = append(refs, refOfWord(word))
	}
	return refs
}

// setWaitingCalls replaces the calls that wait for a sub-agent.
func (x *Index) setWaitingCalls(k uint64, refs []ref) {
	if x.tasks == nil {
		x.tasks = make(map[uint64]stack)
	}
	waiting := x.tasks[k]
	x.size -= drop(&x.blocks, &waiting)
	for _, r := range slices.Backward(refs) {
		x.size += push(&x.blocks, &waiting, r.word())
	}
	if x.tasks[k] = waiting; waiting == 0 {
		delete(x.tasks, k)
	}
}

// maxSameMessages bounds the calls with the same messages that findLongest looks at.
const maxSameMessages = 64

// findLongest returns the call with the most messages among those whose messages the query begins
// with, and the index of its last message. Of several calls with the same messages, it is the one
// whose answer the query repeats next: repeated is true if the query repeats one.
func (x *Index) findLongest(q *query) (before *call, last int, repeated bool) {
	for last = len(q.Messages) - 1; last > 0 && before == nil; last-- {
		before = x.lookup(key(byMessages, q.scope, q.prefixes[last-1]))
	}
	if before == nil {
		return nil, last, false
	}
	next, longest := &q.Messages[last+1], 0
	ambiguous := before.twin != ref{}
	var unread *call // its answer was not kept: no other call had its messages then
	for c, i := before, 0; c != nil && i < maxSameMessages; c, i = x.get(c.twin), i+1 {
		if c.agent != q.agent {
			continue
		}
		answer := x.answerOf(c)
		if n := next.Matches(answer); n > longest {
			before, longest = c, n
		}
		if answer == nil {
			unread = c
		}
	}
	if longest == 0 && unread != nil && next.Texts[0] != 0 {
		return unread, last, ambiguous
	}
	return before, last, longest > 0
}

// answerOf returns the hashes of the texts in the answer of a call, nil if they are not
// known.
func (x *Index) answerOf(c *call) []uint64 {
	for _, hash := range x.unread.texts(c.answer.unread) {
		x.size += push(&x.blocks, &c.answer.texts, hash)
	}
	c.answer.unread = place{}
	return slices.Collect(words(&x.blocks, c.answer.texts))
}

// findEdited returns the call that the query continues with edited messages: half of the call's
// messages, and its last one, which has the index at, are still there. It has more messages than the
// call of findLongest, whose last message has the index last.
func (x *Index) findEdited(q *query, last int) (c *call, at int) {
	for i := len(q.Messages) - 1; i > last; i-- {
		c = x.lookup(key(byLast, q.scope, q.Messages[i].Hash))
		if c == nil || int(c.count) <= last+1 || c.agent != q.agent {
			continue
		}
		if q.hashes == nil {
			q.hashes = make(map[uint64]bool, len(q.Messages))
			for _, m := range q.Messages {
				q.hashes[m.Hash] = true
			}
		}
		remaining := 0
		for m := range words(&x.blocks, c.messages) {
			if q.hashes[m] {
				remaining++
			}
		}
		if 2*remaining >= int(c.count) {
			return c, i
		}
	}
	return nil, 0
}

// beginAlike reports whether a call has the first n messages of the query. Another conversation may end
// alike, as with an ok and the request to go on: without a message that is new, nothing else tells them
// apart.
func (x *Index) beginAlike(c *call, q *query, n int) bool {
	i := 0
	for m := range words(&x.blocks, c.messages) {
		if i == n {
			break
		}
		if m != q.Messages[i].Hash {
			return false
		}
		i++
	}
	return i == n
}

// findInSession returns the call before by the session and the agent that the caller names. A
// conversation without a message of the one before it was compacted.
func (x *Index) findInSession(q *query) (*call, relation) {
	if q.session == "" {
		return nil, begins
	}
	k := key(byInstructions, q.scope, q.role())
	if q.hasName {
		k = key(byAgent, q.scope, q.agent)
	}
	if c := x.lookup(k); c != nil {
		if q.hasHistory || c.turn != 1 {
			return c, continues
		}
		return nil, begins
	}
	if c := x.lookup(key(byAgent, q.scope, q.parentAgent)); c != nil && q.hasName {
		return c, delegated
	}
	return nil, begins
}

// firstEdited returns the position in the request of the first message that differs from the call
// before, -1 if none does.
func (x *Index) firstEdited(q *query, before *call) int32 {
	if q.PreviousResponse != "" {
		return -1 // what came before is not in the request
	}
	i := 0
	for m := range words(&x.blocks, before.messages) {
		if i == len(q.Messages) {
			return q.Messages[i-1].At + 1
		}
		if m != q.Messages[i].Hash {
			return q.Messages[i].At
		}
		i++
	}
	return -1
}
