package anthropic

import (
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"
)

// serverCall is a call of a tool that the provider hosts.
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
	Type    string         `json:"type"`
	Query   string         `json:"query"`
	Sources []searchSource `json:"sources"`
}

type searchSource struct {
	Type string `json:"type"`
	URL  string `json:"url"`
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

// result reads the block with the result of a hosted tool, and tells call and
// result as one item. Tools that the Responses API does not have are left out.
func (d *decoder) result(v gjson.Result) {
	id := v.Get("tool_use_id").Str
	i := slices.IndexFunc(d.calls, func(c serverCall) bool { return c.id == id })
	if i < 0 {
		return
	}
	call := d.calls[i]
	d.calls = slices.Delete(d.calls, i, i+1)
	input, content := gjson.ParseBytes(call.input), v.Get("content")
	status := "completed"
	if content.Get("error_code").Exists() {
		status = "failed"
	}
	var item any
	switch call.name {
	case webSearch:
		sources := []searchSource{}
		for _, page := range content.Array() {
			if url := page.Get("url").Str; url != "" {
				sources = append(sources, searchSource{"url", url})
			}
		}
		item = webSearchCall{id, "web_search_call", status, searchAction{"search", input.Get("query").Str, sources}}
	case codeExecution, "bash_code_execution":
		code := input.Get("code").Str + input.Get("command").Str
		logs := content.Get("stdout").Str + content.Get("stderr").Str
		item = codeInterpreterCall{id, "code_interpreter_call", status, code, "", []logOutput{{"logs", logs}}}
	default:
		return
	}
	raw, _ := json.Marshal(item) // strings and lists of them
	d.a.Item(raw)
}
