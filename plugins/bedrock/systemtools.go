package bedrock

import (
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"
)

// serverCall is a call of a tool that Bedrock hosts.
type serverCall struct {
	id, name string
	input    []byte
}

// webSearchCall is the item of a search.
type webSearchCall struct {
	ID     string       `json:"id"`
	Type   string       `json:"type"`
	Status string       `json:"status"`
	Action searchAction `json:"action"`
}

type searchAction struct {
	Type  string `json:"type"`
	Query string `json:"query"`
}

// codeInterpreterCall is the item of code that was run.
type codeInterpreterCall struct {
	ID          string      `json:"id"`
	Type        string      `json:"type"`
	Status      string      `json:"status"`
	Code        string      `json:"code"`
	ContainerID string      `json:"container_id"`
	Outputs     []logOutput `json:"outputs"`
}

type logOutput struct {
	Type string `json:"type"`
	Logs string `json:"logs"`
}

// result reads the result of a hosted tool, and tells call and result as one item.
// Tools that the Responses API does not have are left out.
func (d *decoder) result(content gjson.Result) {
	i := slices.IndexFunc(d.calls, func(c serverCall) bool { return c.id == d.block.result })
	if i < 0 {
		return
	}
	call := d.calls[i]
	d.calls = slices.Delete(d.calls, i, i+1)
	input, result := gjson.ParseBytes(call.input), content.Get("#.json").Get("0")
	status := "completed"
	if result.Get("isError").Bool() {
		status = "failed"
	}
	var item any
	switch call.name {
	case webSearch:
		item = webSearchCall{call.id, "web_search_call", status, searchAction{"search", input.Get("query").Str}}
	case codeInterpreter:
		logs := result.Get("stdOut").Str + result.Get("stdErr").Str
		item = codeInterpreterCall{call.id, "code_interpreter_call", status, input.Get("snippet").Str, "", []logOutput{{"logs", logs}}}
	default:
		return
	}
	raw, _ := json.Marshal(item) // strings and lists of them
	d.a.Item(raw)
}
