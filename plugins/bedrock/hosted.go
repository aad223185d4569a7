package bedrock

import (
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/translate"
)

// result reads the result of a hosted tool, and adds the call and its result to the
// response as one item. Tools that the Responses API does not have are left out.
func (d *decoder) result(content gjson.Result) {
	call, ok := d.calls.Take(d.block.result)
	if !ok {
		return
	}
	input, result := gjson.ParseBytes(call.Input), content.Get("#.json").Get("0")
	item := translate.HostedCall{Failed: result.Get("isError").Bool()}
	switch call.Name {
	case webSearch:
		item.Queries = []string{input.Get("query").Str}
		d.a.WebSearch(item)
	case codeInterpreter:
		item.Code = input.Get("snippet").Str
		item.Logs = result.Get("stdOut").Str + result.Get("stdErr").Str
		d.a.CodeInterpreter(item)
	}
}
