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
	called := func(name string, argument int) tool { return tool{name, fmt.Sprintf(`{"n":%d}`, argument)} }
	for name, c := range map[string]struct {
		calls func(turn int) []tool
		tries int // of each turn
		first int // turn in the loop, 0 for none
	}{
		"the same":              {func(int) []tool { return []tool{called("wait", 1)} }, 1, 5},
		"other arguments":       {func(turn int) []tool { return []tool{called("read", turn)} }, 1, 0},
		"beside others":         {func(turn int) []tool { return []tool{called("read", turn), called("wait", 1)} }, 1, 5},
		"every third":           {func(turn int) []tool { return []tool{called("wait", turn%3)} }, 1, 13},
		"twice in a turn":       {func(turn int) []tool { return []tool{called("wait", 1), called("wait", 1)} }, 1, 5},
		"three tries of a turn": {func(turn int) []tool { return []tool{called("wait", turn/4)} }, 3, 0},
		"no call":               {func(int) []tool { return nil }, 1, 0},
	} {
		x := new(Index)
		messages := []said{user("Go " + name)}
		for turn := 1; turn <= 20; turn++ {
			for range c.tries {
				r := newRecord()
				shared := map[string]string{"Env": "prod"}
				r.Properties = shared
				l := x.Join(r, withTools(t, messages...), uuid.Nil)
				l.Answered(r, 0, 0, answer(t, "", c.calls(turn)...))
				l.Answered(r, 0, 0, answer(t, "", c.calls(turn)...)) // a later version of the record
				in := c.first > 0 && turn >= c.first
				if loop := r.Properties[loopProperty]; (loop != "") != in {
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
	x.Join(r, withTools(t, user("another")), uuid.Nil).Answered(r, 0, 0, answer(t, "", called("wait", 1)))
	if r.Properties != nil {
		t.Errorf("a conversation that begins has %v", r.Properties)
	}
}
