package translate

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// Object is the arguments as a JSON object: {} for none, {"input": "..."} for a
// custom tool. The error is a 400 that names the item.
func (c *ToolCall) Object() (json.RawMessage, error) {
	switch {
	case c.Custom:
		b := append([]byte(`{"input":`), plugins.AppendString(nil, c.Arguments)...)
		return append(b, '}'), nil
	case c.Arguments == "":
		return json.RawMessage("{}"), nil
	case !plugins.ValidJSON([]byte(c.Arguments)) || !gjson.Parse(c.Arguments).IsObject():
		return nil, plugins.Invalid(at("input", c.Index)+".arguments", "The arguments of the call are not a JSON object.")
	}
	return json.RawMessage(c.Arguments), nil
}
