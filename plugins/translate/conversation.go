package translate

import (
	"github.com/weirhq/weir/plugins"
)

// conversation puts the items of an input, which clients interleave in any order,
// into turns: what the assistant says until all its calls have their outputs is one
// turn, and these outputs are the next.
type conversation struct {
	groups   []*group
	pending  map[string]pendingCall // by call_id
	calls    []*ToolCall
	searches map[string]bool // the call_ids of searches of tools that the client has run
	results  []*ToolOutput   // of calls of MCP tools: those in a row are of one turn
}

// group is a turn, with the outputs that follow it.
type group struct {
	role    Role
	items   []Item
	outputs []Item
	pending int             // calls that have no output yet
	answers map[string]bool // the ids of the calls that have one
}

type pendingCall struct {
	*ToolCall
	group *group
}

// addMessage adds a message. Messages of one role in a row are one turn.
func (c *conversation) addMessage(m *Message) {
	if m.Role == RoleAssistant {
		c.addAssistantItem(m)
		return
	}
	g := c.last()
	if g == nil || g.role != m.Role {
		g = c.newGroup(m.Role)
	}
	g.items = append(g.items, m)
}

// addAssistantItem adds to the assistant's turn, which ends when its last output is in.
func (c *conversation) addAssistantItem(item Item) *group {
	g := c.last()
	if g == nil || g.role != RoleAssistant || len(g.outputs) > 0 && g.pending == 0 {
		g = c.newGroup(RoleAssistant)
	}
	g.items = append(g.items, item)
	return g
}

func (c *conversation) addCall(call *ToolCall) error {
	_, pending := c.pending[call.CallID]
	g := c.addAssistantItem(call)
	if pending || g.answers[call.CallID] {
		return plugins.Invalid(indexPath("input", call.Index)+".call_id", "Duplicate call_id '%s': every call needs its own.", call.CallID)
	}
	g.pending++
	if c.pending == nil {
		c.pending = make(map[string]pendingCall)
	}
	c.pending[call.CallID] = pendingCall{call, g}
	c.calls = append(c.calls, call)
	return nil
}

// addOutput adds an output to the turn of its call, which may be anywhere in the input.
func (c *conversation) addOutput(o *ToolOutput) error {
	call, ok := c.pending[o.CallID]
	if !ok || call.Custom != o.Custom {
		return plugins.Invalid(indexPath("input", o.Index)+".call_id", "No tool call found for %s output with call_id %s.",
			callNoun(o.Custom), o.CallID)
	}
	delete(c.pending, o.CallID)
	o.Name = call.Name
	call.group.outputs = append(call.group.outputs, o)
	if call.group.answers == nil {
		call.group.answers = make(map[string]bool)
	}
	call.group.answers[o.CallID] = true
	call.group.pending--
	return nil
}

// addResults ends the turn whose calls of MCP tools have results.
func (c *conversation) addResults() error {
	results := c.results
	c.results = nil
	for _, o := range results {
		if err := c.addOutput(o); err != nil {
			return err
		}
	}
	return nil
}

// turns returns all turns. It is an error if a call has no output.
func (c *conversation) turns() ([]Turn, error) {
	if err := c.addResults(); err != nil {
		return nil, err
	}
	for _, call := range c.calls {
		if p, ok := c.pending[call.CallID]; ok && p.ToolCall == call {
			return nil, plugins.Invalid(indexPath("input", call.Index)+".call_id", "No tool output found for %s %s.",
				callNoun(call.Custom), call.CallID)
		}
	}
	var turns []Turn
	for _, g := range c.groups {
		turns = append(turns, Turn{g.role, g.items})
		if len(g.outputs) > 0 {
			turns = append(turns, Turn{RoleTool, g.outputs})
		}
	}
	return turns, nil
}

func (c *conversation) last() *group {
	if len(c.groups) == 0 {
		return nil
	}
	return c.groups[len(c.groups)-1]
}

func (c *conversation) newGroup(r Role) *group {
	g := &group{role: r}
	c.groups = append(c.groups, g)
	return g
}

func callNoun(custom bool) string {
	if custom {
		return "custom tool call"
	}
	return "function call"
}
