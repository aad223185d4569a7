package lineage

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// TestLoops holds that a conversation is in a loop from the fifth turn on in which it
// calls a tool with the same arguments, whatever it calls between.
func TestLoops(t *testing.T) {
	tool := func(name string, arguments int) ToolCall {
		return ToolCall{name, Hash(name, fmt.Sprint(arguments))}
	}
	for name, c := range map[string]struct {
		calls func(turn int) []ToolCall
		tries int // of each turn
		first int // turn in the loop, 0 for none
	}{
		"the same":              {func(int) []ToolCall { return []ToolCall{tool("wait", 1)} }, 1, 5},
		"other arguments":       {func(turn int) []ToolCall { return []ToolCall{tool("read", turn)} }, 1, 0},
		"beside others":         {func(turn int) []ToolCall { return []ToolCall{tool("read", turn), tool("wait", 1)} }, 1, 5},
		"every third":           {func(turn int) []ToolCall { return []ToolCall{tool("wait", turn%3)} }, 1, 13},
		"twice in a turn":       {func(turn int) []ToolCall { return []ToolCall{tool("wait", 1), tool("wait", 1)} }, 1, 5},
		"three tries of a turn": {func(turn int) []ToolCall { return []ToolCall{tool("wait", turn/4)} }, 3, 0},
		"no call":               {func(int) []ToolCall { return nil }, 1, 0},
	} {
		x := new(Index)
		messages := []said{user("Go " + name)}
		for turn := 1; turn <= 20; turn++ {
			for range c.tries {
				r := newRecord()
				shared := map[string]string{"Env": "prod"}
				r.Properties = shared
				l := x.Join(r, outline(t, "S", messages...), uuid.Nil)
				l.Answered(r, 0, c.calls(turn), nil, nil)
				l.Answered(r, 0, c.calls(turn), nil, nil) // a later version of the record
				in := c.first > 0 && turn >= c.first
				if loop := r.Properties[LoopProperty]; (loop != "") != in {
					t.Errorf("%s: turn %d is in a loop of %q", name, turn, loop)
				}
				if len(shared) != 1 {
					t.Errorf("%s: the properties of another record change", name)
				}
			}
			messages = append(messages, model(fmt.Sprint("turn ", turn)), user("result"))
		}
	}
	x, r := new(Index), new(storage.Record)
	*r = *newRecord()
	x.Join(r, outline(t, "S", user("another")), uuid.Nil).Answered(r, 0, []ToolCall{tool("wait", 1)}, nil, nil)
	if r.Properties != nil {
		t.Errorf("a conversation that begins has %v", r.Properties)
	}
}
