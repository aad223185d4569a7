package lineage

import "slices"

// LoopProperty is the property of a record that names a tool which the model calls in it
// as it did in several earlier turns of the conversation.
const LoopProperty = "Tool-Loop"

// MinLoop is from how many calls of a tool with the same arguments on a record has a
// LoopProperty.
const MinLoop = 5

// ToolCall is what a model asks for: the tool's name, and the Hash of that and of the
// arguments.
type ToolCall struct {
	Name string
	Hash uint64
}

// toolCounts are in how many turns a conversation has called tools with the same
// arguments, the last ones last. Its calls share them.
type toolCounts []toolCount

type toolCount struct {
	hash  uint64
	turns int
	turn  int64 // the last that was counted
}

// maxToolCounts bounds what a conversation remembers: a loop may be as long.
const maxToolCounts = 16

// add counts the calls of a turn, 0 for one that is not known, and returns the name of a
// tool in a loop, "" if there is none. Another try of a turn does not count.
func (t *toolCounts) add(turn int64, calls []ToolCall) (loop string) {
	for _, call := range calls {
		i := slices.IndexFunc(*t, func(c toolCount) bool { return c.hash == call.Hash })
		count := toolCount{hash: call.Hash}
		if i >= 0 {
			count = (*t)[i]
		} else if len(*t) == maxToolCounts {
			i = 0
		}
		if i >= 0 {
			*t = slices.Delete(*t, i, i+1)
		}
		if count.turns == 0 || turn == 0 || turn != count.turn {
			count.turns++
			count.turn = turn
		}
		*t = append(*t, count)
		if count.turns >= MinLoop && loop == "" {
			loop = call.Name
		}
	}
	return loop
}
