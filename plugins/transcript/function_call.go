package transcript

import (
	"strings"

	"github.com/tidwall/gjson"
)

// continues is true where next is a further piece of the function call that
// Vertex streams argument by argument (streamFunctionCallArguments).
func continues(call *node, next gjson.Result) bool {
	if call.none() || !next.IsObject() || next.Get("name").Exists() {
		return false
	}
	more := call.get("willContinue")
	return more != nil && more.raw == "true"
}

// finishFunctionCall puts the arguments of a call together from their pieces.
func finishFunctionCall(call *node) {
	if call.none() {
		return
	}
	call.remove("willContinue")
	partial := call.get("partialArgs")
	if partial.none() {
		return
	}
	var args node
	args.setKind(object)
	gjson.ParseBytes(partial.appendJSON(nil)).ForEach(func(_, arg gjson.Result) bool {
		value := args.atPath(arg.Get("jsonPath").Str)
		for _, kind := range []string{"stringValue", "numberValue", "boolValue", "nullValue"} {
			if piece := arg.Get(kind); piece.Exists() {
				value.add(piece, Join)
			}
		}
		return true
	})
	call.remove("partialArgs")
	*call.at("args") = args
}

// atPath returns the node at a JSONPath (RFC 9535) of names and indices, such as
// $.rooms[0].name.
func (n *node) atPath(path string) *node {
	path = strings.TrimPrefix(path, "$")
	for depth := 0; path != "" && depth < deepest; depth++ {
		end := 1 + strings.IndexAny(path[1:], ".[")
		if end == 0 {
			end = len(path)
		}
		key := strings.Trim(path[:end], ".[]'\"")
		if path[0] == '[' && !strings.ContainsAny(path[:end], "'\"") {
			n.setKind(list)
		}
		n = n.at(key)
		path = path[end:]
	}
	return n
}
