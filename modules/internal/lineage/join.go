package lineage

import (
	"maps"

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
	call     *call
	scope    uint64
	messages uint64 // the key of its messages
	before   *call  // the turn before, or of another try the one before, nil of a first one
}

// Join finds which call goes before that of r, tells r, and remembers the call for
// those that follow. Calls of two organisations, keys, users or sessions are never
// linked. previous is the record that the caller knows the call to continue, the
// zero UUID if it knows none.
func (x *Index) Join(r *storage.Record, o *observe.Outline, previous uuid.UUID) *Link {
	q := newQuery(r, o)
	q.previous = previous
	c := &call{id: r.ID, created: r.CreatedAt, agent: q.agent, messages: q.messages, outline: *o, edited: -1}
	c.outline.Messages, c.outline.Tasks = nil, nil
	l := &Link{index: x, call: c, scope: q.scope, messages: key(byMessages, q.scope, q.prefixes[len(q.prefixes)-1])}

	x.mu.Lock()
	defer x.mu.Unlock()
	parent, kind := x.find(q)
	switch kind {
	case repeats:
		c.parent, c.root, c.turn, c.tools = parent.parent, parent.root, parent.turn, parent.tools
		if l.before = parent; !parent.input.Valid { // it has failed
			c.before, c.edited = parent.before, parent.edited
			l.before = c.before
		}
	case continues:
		c.before, c.edited = parent, q.edited(parent)
		l.before = parent
		c.parent, c.root, c.tools = parent.id, rootOf(parent), parent.tools
		if parent.turn > 0 {
			c.turn = parent.turn + 1
		}
		x.extend(parent)
	case delegated:
		c.parent, c.root, c.turn = parent.id, rootOf(parent), 1
	default:
		c.parent = previous
		if !q.history && previous == uuid.Nil {
			c.turn = 1
		}
	}
	r.ParentID, r.RootID = c.parent, c.root
	if c.turn > 0 {
		r.Turn = plugins.Known(c.turn)
	}
	if r.Dialect == plugins.Responses {
		x.add(c, key(byID, Hash(q.org), Hash(r.ID.String())))
	}
	c.same = x.add(c, l.messages)
	x.add(c, key(byLast, q.scope, c.messages[len(c.messages)-1]))
	if r.SessionID != "" {
		x.add(c, key(byAgent, q.scope, q.agent))
		if !q.named {
			x.add(c, key(byInstructions, q.scope, q.role()))
		}
	}
	x.remember(c)
	return l
}

func rootOf(c *call) uuid.UUID {
	if c.root == uuid.Nil {
		return c.id
	}
	return c.root
}

// HasTools reports whether the call has tools, so that its answer may call one.
func (l *Link) HasTools() bool { return l.call.outline.Tools != 0 }

// Ambiguous reports whether another call has the same messages, so that nothing but their
// answers says from which of them a later one goes on. A single question without tools is
// not: it is often asked again, mostly by programs, and seldom goes on.
func (l *Link) Ambiguous() bool {
	if !l.HasTools() && l.call.turn == 1 {
		return false
	}
	l.index.mu.Lock()
	defer l.index.mu.Unlock()
	return l.call.same != nil || l.index.calls[l.messages] != l.call
}

// Answered notes what came of the call, so that others can go on from it, and whether the
// conversation is in a loop: calls are those of tools that the model asked for, tasks
// the texts in their arguments, and answer those of what
// it said where the link is ambiguous, by observe.TextHash of as many letters as they
// count by. account is at which the provider keeps what it caches.
func (l *Link) Answered(r *storage.Record, account uint64, calls []ToolCall, tasks, answer []uint64) {
	x, c := l.index, l.call
	x.mu.Lock()
	defer x.mu.Unlock()
	if c.keys == nil { // it is forgotten
		return
	}
	if !c.answered {
		if r.ResponseID != "" {
			x.add(c, key(byResponse, Hash(r.Org), Hash(r.ResponseID)))
		}
		if c.tools == nil && len(calls) > 0 {
			c.tools = new(toolCounts)
		}
		if loop := c.tools.add(c.turn, calls); loop != "" {
			r.Properties = maps.Clone(r.Properties) // which the attempts of a call share
			if r.Properties == nil {
				r.Properties = make(map[string]string, 1)
			}
			r.Properties[LoopProperty] = loop
		}
		for _, task := range tasks {
			x.offer(c, l.scope, task)
		}
	}
	if r.Usage.Input.Valid {
		c.before = nil
	}
	x.size += 8 * (len(answer) - len(c.answer))
	c.answered, c.account, c.model, c.input, c.answer = true, account, r.Model, r.Usage.Input, answer
}

// relation is what a call is to the one before it.
type relation int

const (
	begins    relation = iota
	continues          // its conversation
	repeats            // it: a second try
	delegated          // by it, to a sub-agent
)

// query is what is looked for.
type query struct {
	*observe.Outline
	previous           uuid.UUID
	org, session       string
	scope              uint64
	agent, parentAgent uint64
	named              bool // the agent has a name
	messages           []uint64
	prefixes           []uint64 // of the messages up to each
	history            bool     // a model has said something
	set                map[uint64]bool
}

func newQuery(r *storage.Record, o *observe.Outline) *query {
	q := &query{Outline: o, org: r.Org, session: r.SessionID}
	agent := r.Properties[AgentProperty]
	q.scope = Hash(r.Org, r.AuthHash, r.UserID, r.SessionID)
	q.agent, q.parentAgent, q.named = Hash(agent), Hash(r.Properties[ParentAgentProperty]), agent != ""
	q.messages, q.prefixes = make([]uint64, len(o.Messages)), make([]uint64, len(o.Messages)) // the index keeps the former
	var prefix uint64
	for i, m := range o.Messages {
		prefix = key(byMessages, prefix, m.Hash)
		q.messages[i], q.prefixes[i] = m.Hash, prefix
		q.history = q.history || m.Model
	}
	return q
}

// role tells agents of a session by their instructions.
func (q *query) role() uint64 { return key(byInstructions, q.agent, q.Instructions) }

func (x *Index) find(q *query) (*call, relation) {
	if q.PreviousResponse != "" {
		if c := x.calls[key(byResponse, Hash(q.org), Hash(q.PreviousResponse))]; c != nil {
			return c, continues
		}
		if c := x.calls[key(byID, Hash(q.org), Hash(q.previous.String()))]; c != nil {
			return c, continues
		}
		return nil, begins
	}
	n := len(q.messages)
	if c := x.calls[key(byMessages, q.scope, q.prefixes[n-1])]; c != nil && c.agent == q.agent && q.history {
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
		if c := x.calls[key(byMessages, q.scope, q.prefixes[n-1])]; c != nil && c.agent == q.agent && c.parent != uuid.Nil {
			return c, repeats // of a sub-agent
		}
	}
	return x.inSession(q)
}

// offer makes a task be found, behind the same ones that other calls asked for before.
func (x *Index) offer(c *call, scope, task uint64) {
	k := key(byTask, scope, task)
	asked := x.tasks[k]
	x.wait(k, append(asked[:min(len(asked), maxSameTasks-1)], c))
	c.keys = append(c.keys, k)
	x.size += keySize
}

// take returns the first call that asked for a task which no sub-agent has begun, nil if
// there is none.
func (x *Index) take(scope, task uint64) *call {
	k := key(byTask, scope, task)
	asked := x.tasks[k]
	if len(asked) == 0 {
		return nil
	}
	x.wait(k, asked[1:])
	return asked[0]
}

// wait keeps the calls that wait for a sub-agent.
func (x *Index) wait(k uint64, asked []*call) {
	switch {
	case len(asked) == 0:
		delete(x.tasks, k)
	case x.tasks == nil:
		x.tasks = map[uint64][]*call{k: asked}
	default:
		x.tasks[k] = asked
	}
}

// maxSameMessages bounds the calls with the same messages that are looked at.
const maxSameMessages = 64

// longest returns the call with most messages that the query has, too, and more, and how
// many these are less one. Of several with the same ones it is the one whose answer the
// query repeats next.
func (x *Index) longest(q *query) (before *call, length int, repeated bool) {
	for length = len(q.messages) - 1; length > 0 && before == nil; length-- {
		before = x.calls[key(byMessages, q.scope, q.prefixes[length-1])]
	}
	if before == nil {
		return nil, length, false
	}
	next, most := &q.Messages[length+1], 0
	var unread *call // was answered before another one had its messages
	for c, i := before, 0; c != nil && i < maxSameMessages; c, i = c.same, i+1 {
		if n := next.Matches(c.answer); n > most && c.agent == q.agent {
			before, most = c, n
		}
		if c.answer == nil && c.agent == q.agent {
			unread = c
		}
	}
	if most == 0 && unread != nil && next.Texts[0] != 0 {
		return unread, length, before.same != nil
	}
	return before, length, most > 0
}

// edited returns the call that the query continues although not all of its messages
// are as they were: half of them, and the last, are still there. It has more messages
// than so many.
func (x *Index) edited(q *query, messages int) *call {
	for i := len(q.messages) - 1; i > messages; i-- {
		c := x.calls[key(byLast, q.scope, q.messages[i])]
		if c == nil || len(c.messages) <= messages+1 || c.agent != q.agent {
			continue
		}
		if q.set == nil {
			q.set = make(map[uint64]bool, len(q.messages))
			for _, m := range q.messages {
				q.set[m] = true
			}
		}
		kept := 0
		for _, m := range c.messages {
			if q.set[m] {
				kept++
			}
		}
		if 2*kept >= len(c.messages) {
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
	if c := x.calls[k]; c != nil {
		if q.history || c.turn != 1 {
			return c, continues
		}
		return nil, begins
	}
	if c := x.calls[key(byAgent, q.scope, q.parentAgent)]; c != nil && q.named {
		return c, delegated
	}
	return nil, begins
}

// edited is the position in the request of the first message that is not as it was in
// the call before, -1 if there is none.
func (q *query) edited(before *call) int {
	if q.PreviousResponse != "" {
		return -1 // what came before is not in the request
	}
	for i, m := range before.messages {
		if i == len(q.messages) {
			return int(q.Messages[i-1].At) + 1
		}
		if m != q.messages[i] {
			return int(q.Messages[i].At)
		}
	}
	return -1
}
