package recording

import (
	"bytes"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/lineage"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/transcript"
	"github.com/weirhq/weir/storage"
)

// Join finds which call the exchange continues, once. The record knows its caller,
// and o is the outline of its request, nil if that is no conversation. previous is the
// record that the request names, the zero UUID if it names none.
func (x *Exchange) Join(o *observe.Outline, previous uuid.UUID) {
	if x.link == nil && o != nil && x.site.Calls != nil && !x.Record.Dialect.CountsTokens() {
		x.link = x.site.Calls.Join(&x.Record, o, previous)
	}
}

// maxToolName bounds the name of a tool in a property, in bytes.
const maxToolName = 128

// maxAnswer bounds the answers that are read for what others go on from, in bytes.
const maxAnswer = 1 << 20

// toolCalls are what is in each answer that calls a tool, of any dialect. In Chat
// Completions, tool_calls is also why an answer ended, without the colon.
var toolCalls = [][]byte{[]byte(`"tool_use"`), []byte(`"tool_calls":`), []byte(`"function_call"`), []byte(`"functionCall"`), []byte(`"toolUse"`)}

// textsOf are the tools that an answer calls, and the texts that say what goes on from it:
// tasks where the call has tools, and what the model said where the call is ambiguous.
func textsOf(d plugins.Dialect, body storage.Body, tools, ambiguous bool) (calls []lineage.ToolCall, tasks, answer []uint64) {
	has := func(sign []byte) bool { return bytes.Contains(body.Data, sign) }
	if len(body.Data) == 0 || len(body.Data) > maxAnswer || !ambiguous && !(tools && slices.ContainsFunc(toolCalls, has)) {
		return nil, nil, nil
	}
	f := observe.Transcript(d)
	stored, _ := f.Stored(body.Type, body.Data)
	turns := f.Response(stored)
	if ambiguous {
		answer = answerHashes(turns)
	}
	for _, turn := range turns {
		for _, call := range turn.Calls {
			calls = append(calls, lineage.ToolCall{Name: strings.ToValidUTF8(call.Name[:min(len(call.Name), maxToolName)], ""), Hash: lineage.Hash(call.Name, call.Arguments)})
		}
	}
	return calls, taskHashes(turns), answer
}

// taskHashes are those of the texts in the arguments of the tools that an answer calls.
func taskHashes(turns []transcript.Turn) (hashes []uint64) {
	for _, turn := range turns {
		for _, call := range turn.Calls {
			gjson.Parse(call.Arguments).ForEach(func(_, argument gjson.Result) bool {
				hashes = appendHash(hashes, argument.Str, observe.TaskLetters)
				return true
			})
		}
	}
	return hashes
}

// answerHashes are those of all texts that a client sends again of an answer.
func answerHashes(turns []transcript.Turn) (hashes []uint64) {
	for _, turn := range turns {
		for _, text := range turn.Texts {
			hashes = appendHash(hashes, text, observe.AnswerLetters)
		}
		for _, call := range turn.Calls {
			hashes = appendHash(hashes, call.ID, observe.AnswerLetters)
			hashes = appendHash(hashes, call.Arguments, observe.AnswerLetters)
			gjson.Parse(call.Arguments).ForEach(func(_, argument gjson.Result) bool {
				hashes = appendHash(hashes, argument.Str, observe.AnswerLetters)
				return true
			})
		}
	}
	return hashes
}

func appendHash(hashes []uint64, text string, letters int) []uint64 {
	if hash, ok := observe.TextHash(text, letters); ok {
		hashes = append(hashes, hash)
	}
	return hashes
}
