package bedrock

import (
	"slices"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/translate"
)

// hostedCall is a call of a tool that Bedrock hosts.
type hostedCall struct {
	id, name string
	input    []byte
}

// result reads the result of a hosted tool, and tells call and result as one item.
// Tools that the Responses API does not have are left out.
func (d *decoder) result(content gjson.Result) {
	i := slices.IndexFunc(d.calls, func(c hostedCall) bool { return c.id == d.block.result })
	if i < 0 {
		return
	}
	call := d.calls[i]
	d.calls = slices.Delete(d.calls, i, i+1)
	input, result := gjson.ParseBytes(call.input), content.Get("#.json").Get("0")
	item := translate.HostedCall{Failed: result.Get("isError").Bool()}
	switch call.name {
	case webSearch:
		item.Queries = []string{input.Get("query").Str}
		d.a.WebSearch(item)
	case codeInterpreter:
		item.Code = input.Get("snippet").Str
		item.Logs = result.Get("stdOut").Str + result.Get("stdErr").Str
		d.a.CodeInterpreter(item)
	}
}
