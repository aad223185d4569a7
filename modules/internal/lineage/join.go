package lineage

import (
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
	index  *Index
	call   *call
	scope  uint64
	before *call // the turn before, nil of a first one
	edited int   // the position of the first message that is not as before, -1 if all are
}

// Join finds which call goes before that of r, tells r, and remembers the call for
// those that follow. Calls of two organisations, keys, users or sessions are never
// linked. previous is the record that the caller knows the call to go on from, the
// zero UUID if it knows none.
func (x *Index) Join(r *storage.Record, o *observe.Outline, previous uuid.UUID) *Link {
	q := newQuery(r, o)
	q.previous = previous
	c := &call{id: r.ID, created: r.CreatedAt, agent: q.agent, messages: q.messages, outline: *o}
	c.outline.Messages, c.outline.Tasks = nil, nil
	l := &Link{index: x, call: c, scope: q.scope, edited: -1}

	x.mu.Lock()
	defer x.mu.Unlock()
	parent, kind := x.find(q)
	switch kind {
	case repeats:
		c.parent, c.root, c.turn = parent.parent, parent.root, parent.turn
	case continues:
		l.before, l.edited = parent, q.edited(parent)
		c.parent, c.root = parent.id, rootOf(parent)
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
	x.add(c, key(byMessages, q.scope, q.prefixes[len(q.prefixes)-1]))
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

// Answered tells what came of the call, so that others can go on from it: tasks are
// the texts in the arguments of the tools that the model called, by observe.TextHash,
// and account is at which the provider keeps what it caches.
func (l *Link) Answered(r *storage.Record, account uint64, tasks []uint64) {
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
		for _, task := range tasks {
			x.add(c, key(byTask, l.scope, task))
		}
	}
	c.answered, c.account, c.model, c.input = true, account, r.Model, r.Usage.Input
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
	all := make([]uint64, 2*len(o.Messages))
	q.messages, q.prefixes = all[:len(o.Messages):len(o.Messages)], all[len(o.Messages):]
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
	var before *call
	length := n - 1 // of what the call before has in common
	for ; length > 0 && before == nil; length-- {
		before = x.calls[key(byMessages, q.scope, q.prefixes[length-1])]
	}
	if later := x.edited(q, length); later != nil {
		before = later
	}
	switch {
	case before != nil && before.agent == q.agent:
		return before, continues
	case before != nil:
		return before, delegated
	case !q.history:
		for _, task := range q.Tasks {
			if c := x.calls[key(byTask, q.scope, task)]; c != nil {
				return c, delegated
			}
		}
	}
	return x.inSession(q)
}

// edited returns the call that the query goes on from although not all of its messages
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
