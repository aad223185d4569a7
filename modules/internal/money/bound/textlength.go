package bound

import (
	"bytes"
	"regexp"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"
)

// writtenFields hold what a model has written, or a summary or a seal of what it thought.
var writtenFields = []string{
	"arguments", "encrypted_content", "input", "name", "partial_json", "reasoning", "reasoning_content", "refusal", "signature", "text", "thinking",
}

// TextLength returns how many bytes of an answer the model has written. The model may have written all
// that is nested too deep to be looked at.
func TextLength(v gjson.Result) int64 { return lengthBelow(v, 0) }

func lengthBelow(v gjson.Result, depth int) (n int64) {
	if depth == maxDepth {
		return int64(len(v.Raw))
	}
	v.ForEach(func(key, v gjson.Result) bool {
		switch {
		case slices.Contains(writtenFields, key.Str), key.Str == "content" && v.Type == gjson.String:
			n += int64(len(v.Raw))
			if v.Type == gjson.String {
				n -= int64(len(`""`))
			}
		case v.IsObject(), v.IsArray():
			n += lengthBelow(v, depth+1)
		}
		return true
	})
	return n
}

// Countable reports whether the length of an answer that was broken off, and that has called no
// hosted tool, tells its cost: the provider has stated the input, or has read no more than the
// text of the request.
func Countable(d plugins.Dialect, request *plugins.Object, input plugins.Count) bool {
	r := Of(d, request, nil)
	return len(request.Members) > 0 && (input.Valid || !r.Unbounded && r.Pictures == 0 && r.Audio == 0)
}

// toolItems are the types of items and events in answers of Responses that are calls of tools. Those
// of plainItems are for the client.
var (
	toolItems  = regexp.MustCompile(`"type":\s?"(?:response\.)?([a-z_]+_call|mcp_list_tools)\b`)
	plainItems = []string{"function_call", "custom_tool_call", "local_shell_call", "apply_patch_call", "computer_call"}
)

// MayHaveCalled reports whether the model may have called a tool that the provider runs, by what
// has come of its answer. In Chat Completions and at Google, nothing shows that it has not.
func MayHaveCalled(d plugins.Dialect, answer []byte) bool {
	switch {
	case len(answer) == 0:
		return true
	case d == plugins.Messages:
		return bytes.Contains(answer, []byte(`server_tool_use"`)) || bytes.Contains(answer, []byte(`mcp_tool_use"`))
	case d == plugins.Responses:
		for _, found := range toolItems.FindAllSubmatch(answer, -1) {
			if !slices.Contains(plainItems, string(found[1])) {
				return true
			}
		}
		return false
	}
	return true
}

// Written returns how many bytes of an answer the model has written, and is false if the
// answer does not tell.
func Written(d plugins.Dialect, answer storage.Body) (n int64, ok bool) {
	stored, _ := observe.Transcript(d).Stored(answer.Type, answer.Data)
	for _, list := range gjson.GetManyBytes(stored, "output", "output.message.content", "choices", "content", "candidates", "message") {
		if list.IsArray() || list.IsObject() && d == plugins.CohereChat {
			return TextLength(list), true
		}
	}
	return 0, false
}
