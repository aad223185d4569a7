package recording

import (
	"bytes"
	"slices"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"
)

// Join finds which call the exchange goes on from, once. The record knows its caller,
// and o is the outline of its request, nil if that is no conversation. previous is the
// record that the request names, the zero UUID if it names none.
func (x *Exchange) Join(o *observe.Outline, previous uuid.UUID) {
	if x.link == nil && o != nil && x.site.Calls != nil && !x.Record.Dialect.CountsTokens() {
		x.link = x.site.Calls.Join(&x.Record, o, previous)
	}
}

// maxTasks bounds the answers in which the tasks of sub-agents are looked for, in bytes.
const maxTasks = 1 << 20

// toolCalls are what is in each answer that calls a tool, of any dialect. In Chat
// Completions, tool_calls is also why an answer ended, without the colon.
var toolCalls = [][]byte{[]byte(`"tool_use"`), []byte(`"tool_calls":`), []byte(`"function_call"`), []byte(`"functionCall"`), []byte(`"toolUse"`)}

// tasks are the hashes of the texts in the arguments of the tools that an answer calls.
func tasks(d plugins.Dialect, answer storage.Body) (hashes []uint64) {
	calls := func(sign []byte) bool { return bytes.Contains(answer.Data, sign) }
	if len(answer.Data) > maxTasks || !slices.ContainsFunc(toolCalls, calls) {
		return nil
	}
	f := observe.Transcript(d)
	stored, _ := f.Stored(answer.Type, answer.Data)
	for _, turn := range f.Response(stored) {
		for _, call := range turn.Calls {
			gjson.Parse(call.Arguments).ForEach(func(_, argument gjson.Result) bool {
				if hash, ok := observe.TextHash(argument.Str); ok {
					hashes = append(hashes, hash)
				}
				return true
			})
		}
	}
	return hashes
}
