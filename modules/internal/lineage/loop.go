package lineage

import "slices"

// loopProperty is the property of a record that names a tool which the model calls in it
// as it did in several earlier turns of the conversation.
const loopProperty = "Tool-Loop"

// minLoop is the least number of calls of a tool with the same arguments for which a record gets the
// loopProperty.
const minLoop = 5

// toolCounts count, for each of the last tools that a conversation has called, in how many
// turns it was called with the same arguments. The calls of the conversation share them.
type toolCounts struct {
	counts [maxToolCounts]toolCount // the last called one last
	used   int
	calls  int // that share the counts
}

type toolCount struct {
	hash  uint64
	turns int
	turn  int32 // the last that was counted
}

// maxToolCounts bounds what a conversation remembers: a loop may be as long.
const maxToolCounts = 16

// shareTools gives a call the counts of the call before.
func (x *Index) shareTools(c, before *call) {
	if c.toolCounts = before.toolCounts; c.toolCounts != 0 {
		x.toolCounts.at(c.toolCounts).calls++
	}
}

// leaveTools ends the share of a call that is forgotten.
func (x *Index) leaveTools(n uint32) {
	t := x.toolCounts.at(n)
	if t.calls--; t.calls == 0 {
		x.size -= toolCountsSize
		x.toolCounts.give(n)
	}
}

// countTools counts what a call has called, and returns the name of a tool in a loop, ""
// if there is none.
func (x *Index) countTools(c *call, calls []toolCall) (loop string) {
	if len(calls) == 0 {
		return ""
	}
	if c.toolCounts == 0 {
		c.toolCounts = x.toolCounts.take()
		x.toolCounts.at(c.toolCounts).calls = 1
		x.size += toolCountsSize
	}
	return x.toolCounts.at(c.toolCounts).add(c.turn, calls)
}

// add counts the calls of a turn, 0 for one that is not known, and returns the name of a
// tool in a loop, "" if there is none. Another try of a turn does not count.
func (t *toolCounts) add(turn int32, calls []toolCall) (loop string) {
	for _, call := range calls {
		used := t.counts[:t.used]
		i := slices.IndexFunc(used, func(c toolCount) bool { return c.hash == call.hash })
		count := toolCount{hash: call.hash}
		if i >= 0 {
			count = used[i]
		} else if t.used == maxToolCounts {
			i = 0
		}
		if i >= 0 {
			used = slices.Delete(used, i, i+1)
		}
		if count.turns == 0 || turn == 0 || turn != count.turn {
			count.turns++
			count.turn = turn
		}
		t.used = len(append(used, count))
		if count.turns >= minLoop && loop == "" {
			loop = call.name
		}
	}
	return loop
}
