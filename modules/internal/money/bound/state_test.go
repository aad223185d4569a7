package bound

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// What is nested too deep to be looked at may name what the provider keeps: the request is
// treated so, and nothing below is read.
func TestDeepRequestsNameState(t *testing.T) {
	for depth, want := range map[int]int{200: 0, 9000: 1} {
		object, valid := plugins.ParseObject([]byte(`{"messages":` + strings.Repeat("[", depth) + `{"audio":null}` + strings.Repeat("]", depth) + `}`))
		if ids := StateOf(plugins.Chat, object).IDs; !valid || len(ids) != want {
			t.Errorf("depth %d: %v", depth, ids)
		}
	}
}

// The model may have written what is nested too deep to be looked at.
func TestDeepAnswersAreSaid(t *testing.T) {
	for depth, want := range map[int]int64{200: 2, 9000: 9000 - maxDepth} {
		if said := TextLength(gjson.Parse(strings.Repeat("[", depth) + `{"text":"ab"}` + strings.Repeat("]", depth))); said < want {
			t.Errorf("depth %d: %d bytes", depth, said)
		}
	}
}
