package plugins

import "encoding/json"

// Object is the arguments as a JSON object: {} for none, {"input": "..."} for a
// custom tool. The error is a 400 that names the item.
func (c *ToolCall) Object() (json.RawMessage, error) { return nil, nil }
