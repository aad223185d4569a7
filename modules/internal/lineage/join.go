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
	edited   int32 // as the call's
	before   ref   // the turn before, or of another try the try before; zero for a first call
	prefix   ref   // the call that sent what this one begins with, zero if there is none
}

// Join finds which call goes before that of r, tells r, and remembers the call for
// those that follow. Calls of two organisations, keys, users or sessions are never
// linked. previous is the record that the caller knows the call to continue, the
// zero UUID if it knows none.
func (x *Index) Join(r *storage.Record, o *observe.Outline, previous uuid.UUID) *Link {
	q := newQuery(r, o)
	q.previous = previous
	x.mu.Lock()
	defer x.mu.Unlock()
	parent, kind := x.find(q)
	c := x.remember(call{id: r.ID, created: r.CreatedAt, agent: q.agent, features: featuresOf(o), edited: -1, input: unknown})
	x.keep(c, o.Messages)
	l := &Link{index: x, call: c.ref, scope: q.scope, messages: key(byMessages, q.scope, q.prefixes[len(q.prefixes)-1]), features: c.features}
	switch kind {
	case repeats:
		c.parent, c.root, c.turn = parent.parent, parent.root, parent.turn
		x.shareTools(c, parent)
		if l.before = parent.ref; parent.input == unknown { // it has failed
			c.before, c.edited = parent.before, parent.edited
			l.before = c.before
		}
	case continues:
		c.before, c.edited = parent.ref, x.firstEdited(q, parent)
		l.before = c.before
		c.parent, c.root = parent.id, rootOf(parent)
		x.shareTools(c, parent)
		if parent.turn > 0 {
			c.turn = parent.turn + 1
		}
		x.letGo(parent)
	case delegated:
		c.parent, c.root, c.turn = parent.id, rootOf(parent), 1
	default:
		c.parent = previous
		if !q.history && previous == uuid.Nil {
			c.turn = 1
		}
	}
	if l.turn, l.edited = c.turn, c.edited; beginsAs(parent, c.features) {
		l.prefix = parent.ref
	}
	r.ParentID, r.RootID = c.parent, c.root
	if c.turn > 0 {
		r.Turn = plugins.Known(int64(c.turn))
	}
	if r.Dialect == plugins.Responses {
		x.add(c, key(byID, Hash(q.org), Hash(r.ID.String())))
	}
	c.same = x.add(c, l.messages)
	x.add(c, key(byLast, q.scope, o.Messages[len(o.Messages)-1].Hash))
	if r.SessionID != "" {
		x.add(c, key(byAgent, q.scope, q.agent))
		if !q.named {
			x.add(c, key(byInstructions, q.scope, q.role()))
		}
	}
	x.trim()
	return l
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

// ambiguous reports whether another call has the same messages, so that nothing but their
// answers says which of them a later call continues. A single question without tools is
// not ambiguous: programs repeat such questions, and seldom continue them.
func (l *Link) ambiguous(c *call) bool {
	return (l.features.tools != 0 || l.turn != 1) && (c.same != ref{} || l.index.calls[l.messages] != l.call)
}

// Answered notes what came of the call, so that others can continue it, and tells r
// whether the conversation is in a loop. account is the one at which the provider keeps
// what it caches, and target the account with the model that was asked for, 0 if nobody chose
// it. body is the answer, empty if its content is omitted.
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
	if !c.answer.came {
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
			x.offer(c, l.scope, task)
		}
	}
	if len(body.Data) > 0 && l.ambiguous(c) {
		c.answer.unread = x.unread.keep(r.Dialect, body)
	}
	c.answer.came, c.account, c.target, c.model, c.input = true, account, target, Hash(r.Model), unknown
	if r.Usage.Input.Valid {
		c.before, c.input = ref{}, r.Usage.Input.N
	}
	x.trim()
}

// relation is what a call is to the one before it.
type relation int

const (
	begins    relation = iota
	continues          // the conversation of the call before
	repeats            // the call before: it is a second try
	delegated          // by the call before, to a sub-agent
)

// query is what is looked for.
type query struct {
	*observe.Outline
	previous           uuid.UUID
	org, session       string
	scope              uint64
	agent, parentAgent uint64
	named              bool     // the agent has a name
	prefixes           []uint64 // of the messages up to each
	history            bool     // a model has said something
	set                map[uint64]bool
}

func newQuery(r *storage.Record, o *observe.Outline) *query {
	q := &query{Outline: o, org: r.Org, session: r.SessionID}
	agent := r.Properties[AgentProperty]
	q.scope = Hash(r.Org, r.AuthHash, r.UserID, r.SessionID)
	q.agent, q.parentAgent, q.named = Hash(agent), Hash(r.Properties[ParentAgentProperty]), agent != ""
	q.prefixes = make([]uint64, len(o.Messages))
	var prefix uint64
	for i, m := range o.Messages {
		prefix = key(byMessages, prefix, m.Hash)
		q.prefixes[i] = prefix
		q.history = q.history || m.Model
	}
	return q
}

// role tells agents of a session by their instructions.
func (q *query) role() uint64 { return key(byInstructions, q.agent, q.Instructions) }

func (x *Index) find(q *query) (*call, relation) {
	if q.PreviousResponse != "" {
		if c := x.by(key(byResponse, Hash(q.org), Hash(q.PreviousResponse))); c != nil {
			return c, continues
		}
		if c := x.by(key(byID, Hash(q.org), Hash(q.previous.String()))); c != nil {
			return c, continues
		}
		return nil, begins
	}
	n := len(q.Messages)
	if c := x.by(key(byMessages, q.scope, q.prefixes[n-1])); c != nil && c.agent == q.agent && q.history {
		return c, repeats
	}
	before, length, repeated := x.longest(q)
	if later := x.edited(q, length); later != nil && (!repeated || rootOf(later) == rootOf(before)) {
		before = later
	}
	switch {
	case before != nil && before.agent == q.agent:
		return before, continues
	case before != nil:
		return before, delegated
	case !q.history:
		for _, task := range q.Tasks {
			if c := x.take(q.scope, task); c != nil {
				return c, delegated
			}
		}
		if c := x.by(key(byMessages, q.scope, q.prefixes[n-1])); c != nil && c.agent == q.agent && c.parent != uuid.Nil {
			return c, repeats // of a sub-agent
		}
	}
	return x.inSession(q)
}

// offer makes a task be found, behind the same ones that other calls asked for before.
func (x *Index) offer(c *call, scope, task uint64) {
	k := key(byTask, scope, task)
	waiting := x.waiting(k)
	x.wait(k, append(waiting[:min(len(waiting), maxSameTasks-1)], c.ref))
	x.addKey(c, k)
}

// take returns the first call that asked for a task which no sub-agent has begun, nil if
// there is none.
func (x *Index) take(scope, task uint64) *call {
	k := key(byTask, scope, task)
	waiting := x.waiting(k)
	if len(waiting) == 0 {
		return nil
	}
	x.wait(k, waiting[1:])
	return x.get(waiting[0])
}

// asked returns the calls that wait for a sub-agent, the first one first.
func (x *Index) waiting(k uint64) (refs []ref) {
	for word := range words(&x.blocks, x.tasks[k]) {
		refs = append(refs, refOfWord(word))
	}
	return refs
}

// wait keeps the calls that wait for a sub-agent.
func (x *Index) wait(k uint64, refs []ref) {
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

// maxSameMessages bounds the calls with the same messages that are looked at.
const maxSameMessages = 64

// longest returns the call with the most messages, all of which the query begins with, and
// how many they are less one. Of several calls with the same messages, it is the one whose
// answer the query repeats next.
func (x *Index) longest(q *query) (before *call, length int, repeated bool) {
	for length = len(q.Messages) - 1; length > 0 && before == nil; length-- {
		before = x.by(key(byMessages, q.scope, q.prefixes[length-1]))
	}
	if before == nil {
		return nil, length, false
	}
	next, longest := &q.Messages[length+1], 0
	ambiguous := before.same != ref{}
	var unread *call // was answered before another one had its messages
	for c, i := before, 0; c != nil && i < maxSameMessages; c, i = x.get(c.same), i+1 {
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
		return unread, length, ambiguous
	}
	return before, length, longest > 0
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

// edited returns the call that the query continues although not all of its messages
// are as they were: half of them, and the last, are still there. It has more messages
// than so many.
func (x *Index) edited(q *query, messages int) *call {
	for i := len(q.Messages) - 1; i > messages; i-- {
		c := x.by(key(byLast, q.scope, q.Messages[i].Hash))
		if c == nil || int(c.count) <= messages+1 || c.agent != q.agent {
			continue
		}
		if q.set == nil {
			q.set = make(map[uint64]bool, len(q.Messages))
			for _, m := range q.Messages {
				q.set[m.Hash] = true
			}
		}
		remaining := 0
		for m := range words(&x.blocks, c.messages) {
			if q.set[m] {
				remaining++
			}
		}
		if 2*remaining >= int(c.count) {
			return c
		}
	}
	return nil
}

// inSession returns the call before by what the caller says of the session. A
// conversation that has no message in common with the one before it was compacted.
func (x *Index) inSession(q *query) (*call, relation) {
	if q.session == "" {
		return nil, begins
	}
	k := key(byInstructions, q.scope, q.role())
	if q.named {
		k = key(byAgent, q.scope, q.agent)
	}
	if c := x.by(k); c != nil {
		if q.history || c.turn != 1 {
			return c, continues
		}
		return nil, begins
	}
	if c := x.by(key(byAgent, q.scope, q.parentAgent)); c != nil && q.named {
		return c, delegated
	}
	return nil, begins
}

// firstEdited returns the position in the request of the first message that is not as in
// the call before, -1 if all are.
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
