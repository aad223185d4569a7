package anthropic

import (
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/translate"
)

// result reads the block with the result of a hosted tool, and adds the call and
// its result to the response as one item. Tools that the Responses API does not
// have are left out.
func (d *decoder) result(v gjson.Result) {
	call, ok := d.calls.Take(v.Get("tool_use_id").Str)
	if !ok {
		return
	}
	input, content := gjson.ParseBytes(call.Input), v.Get("content")
	item := translate.HostedCall{Failed: content.Get("error_code").Exists()}
	switch call.Name {
	case webSearch:
		item.Queries = []string{input.Get("query").Str}
		for _, page := range content.Array() {
			if url := page.Get("url").Str; url != "" {
				item.Sources = append(item.Sources, url)
			}
		}
		d.a.WebSearch(item)
	case codeExecution, "bash_code_execution":
		item.Code = input.Get("code").Str + input.Get("command").Str
		item.Logs = content.Get("stdout").Str + content.Get("stderr").Str
		d.a.CodeInterpreter(item)
	}
}
