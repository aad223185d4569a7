package plugins

import (
	"encoding/json"

	"github.com/tidwall/gjson"
)

// Object is the arguments as a JSON object: {} for none, {"input": "..."} for a
// custom tool. The error is a 400 that names the item.
func (c *ToolCall) Object() (json.RawMessage, error) {
	switch {
	case c.Custom:
		b := append([]byte(`{"input":`), appendString(nil, c.Arguments)...)
		return append(b, '}'), nil
	case c.Arguments == "":
		return json.RawMessage("{}"), nil
	case !ValidJSON([]byte(c.Arguments)) || !gjson.Parse(c.Arguments).IsObject():
		return nil, Invalid(at("input", c.Index)+".arguments", "The arguments of the call are not a JSON object.")
	}
	return json.RawMessage(c.Arguments), nil
}
