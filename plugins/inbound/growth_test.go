package inbound_test

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/anthropic"
	"github.com/weirhq/weir/plugins/inbound"
	"github.com/weirhq/weir/plugins/translate"
)

// many is a request with many elements of a kind: %s in the body is their list, and # in an element its
// number.
type many struct{ name, body, element string }

// requestsWithMany are such requests of a dialect.
func requestsWithMany(d plugins.Dialect) []many {
	const long = "mcp__a_server_with_quite_a_long_name__a_tool_with_quite_a_long_name_#"
	switch d {
	case plugins.Chat:
		const messages = `{"model":"m","messages":[{"role":"user","content":"hi"},%s]}`
		call := func(id, name string) string {
			return `{"role":"assistant","tool_calls":[{"id":"` + id + `","type":"function","function":{"name":"` + name + `","arguments":"{}"}}]},{"role":"tool","tool_call_id":"` + id + `","content":"a"}`
		}
		return []many{
			{"messages", messages, `{"role":"user","content":"a"},{"role":"assistant","content":"b"}`},
			{"messages of a developer", messages, `{"role":"developer","content":"a"},{"role":"user","content":"b"}`},
			{"messages with fields of OpenAI's", messages, `{"role":"user","content":"a","name":"n","x":1}`},
			{"parts", `{"model":"m","messages":[{"role":"user","content":[%s]}]}`, `{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}`},
			{"calls", messages, call("c#", "f")}, {"calls of one id", messages, call("c", "f")}, {"calls of odd ids", messages, call("functions.f:#", "f")},
			{"calls of long names", messages, call("c#", long)},
			{"calls in one message", `{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","tool_calls":[%s]}]}`, `{"id":"c#","type":"function","function":{"name":"f","arguments":"{}"}}`},
			{"calls while one waits", `{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","tool_calls":[{"id":"w","type":"function","function":{"name":"f","arguments":"{}"}}]},%s,{"role":"tool","tool_call_id":"w","content":"a"}]}`, call("c#", "f")},
			{"tools", `{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[%s]}`, `{"type":"function","function":{"name":"` + long + `","parameters":{"type":"object","properties":{"a":{"type":"string"}}}}}`},
			{"hosted tools", `{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[%s]}`, `{"type":"unknown_#"}`},
			{"choices of tools", `{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[%s]}}}`, `{"type":"function","function":{"name":"f"}}`},
			{"a field", `{"model":"m",%s,"messages":[{"role":"user","content":"hi"}]}`, `"logit_bias":{}`},
			{"fields", `{"model":"m",%s,"messages":[{"role":"user","content":"hi"}]}`, `"field_#":1`},
		}
	case plugins.Messages:
		const messages = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"},%s]}`
		call := func(id, name string) string {
			return `{"role":"assistant","content":[{"type":"tool_use","id":"` + id + `","name":"` + name + `","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"` + id + `","content":"a"}]}`
		}
		return []many{
			{"messages", messages, `{"role":"assistant","content":"b"},{"role":"user","content":"a"}`},
			{"messages of the system", messages, `{"role":"system","content":"a"},{"role":"user","content":"b"}`},
			{"parts", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[%s]}]}`, `{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"1h","scope":"global"}}`},
			{"cited documents", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[%s]}]}`, `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a"},"citations":{"enabled":true}}`},
			{"thoughts", messages, `{"role":"assistant","content":[{"type":"thinking","thinking":"a","signature":"s"},{"type":"text","text":"b"}]},{"role":"user","content":"a"}`},
			{"calls", messages, call("c#", "f")}, {"calls of one id", messages, call("c", "f")}, {"calls of odd ids", messages, call("functions.f:#", "f")},
			{"calls of long names", messages, call("c#", long)},
			{"results", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"},{"role":"user","content":[%s]}]}`, `{"type":"tool_result","tool_use_id":"c.#","content":"a"}`},
			{"tools", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"tools":[%s]}`, `{"name":"` + long + `","input_schema":{"type":"object","properties":{"a":{"type":"string"}}},"cache_control":{"type":"ephemeral","scope":"global"}}`},
			{"texts of the system", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"system":[%s]}`, `{"type":"text","text":"a","cache_control":{"type":"ephemeral","scope":"global"}}`},
			{"a field", `{"model":"m","max_tokens":9,%s,"messages":[{"role":"user","content":"hi"}]}`, `"thinking":{"type":"disabled"}`},
			{"fields", `{"model":"m","max_tokens":9,%s,"messages":[{"role":"user","content":"hi"}]}`, `"field_#":1`},
		}
	}
	const input = `{"model":"m","input":[{"role":"user","content":"hi"},%s]}`
	call := func(id, name string) string {
		return `{"type":"function_call","call_id":"` + id + `","name":"` + name + `","arguments":"{}"},{"type":"function_call_output","call_id":"` + id + `","output":"a"}`
	}
	return []many{
		{"messages", input, `{"role":"assistant","content":"b"},{"role":"user","content":"a"}`},
		{"messages of a developer", input, `{"role":"developer","content":"a"},{"role":"user","content":"b"}`},
		{"parts", `{"model":"m","input":[{"role":"user","content":[%s]}]}`, `{"type":"input_text","text":"a"}`},
		{"pictures", `{"model":"m","input":[{"role":"user","content":[%s]}]}`, `{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo=","detail":"low"}`},
		{"reasoning", input, `{"type":"reasoning","summary":[{"type":"summary_text","text":"a"}]},{"role":"assistant","content":"b"},{"role":"user","content":"a"}`},
		{"calls", input, call("c#", "f")}, {"calls of one id", input, call("c", "f")}, {"calls of odd ids", input, call("functions.f:#", "f")},
		{"calls of long ids", input, call("a_call_with_an_id_that_is_longer_than_the_sixty_four_bytes_of_openai_#", "f")},
		{"calls of long names", input, call("c#", long)},
		{"calls while one waits", `{"model":"m","input":[{"type":"function_call","call_id":"w","name":"f","arguments":"{}"},%s,{"type":"function_call_output","call_id":"w","output":"a"}]}`, call("c#", "f")},
		{"searches", input, `{"type":"web_search_call","id":"ws_#","status":"completed","action":{"type":"search","query":"q"}}`},
		{"tools", `{"model":"m","input":"hi","tools":[%s]}`, `{"type":"function","name":"` + long + `","parameters":{"type":"object","properties":{"a":{"type":"string"}}}}`},
		{"tools of a namespace", `{"model":"m","input":"hi","tools":[{"type":"namespace","name":"n","tools":[%s]}]}`, `{"type":"function","name":"f#","parameters":{"type":"object"}}`},
		{"hosted tools", `{"model":"m","input":"hi","tools":[%s]}`, `{"type":"unknown_#"}`},
		{"servers of tools", `{"model":"m","input":"hi","tools":[%s]}`, `{"type":"mcp","server_label":"s#","server_url":"https://x","authorization":"t"}`},
		{"choices of tools", `{"model":"m","input":"hi","tools":[{"type":"function","name":"f"}],"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[%s]}}`, `{"type":"function","name":"f"}`},
		{"values of include", `{"model":"m","input":"hi","include":[%s]}`, `"include_#"`},
		{"a field", `{"model":"m",%s,"input":"hi"}`, `"reasoning":{"effort":"low"}`},
		{"fields", `{"model":"m",%s,"input":"hi"}`, `"field_#":1`},
	}
}

// with returns the request with n elements.
func (m many) with(n int) string {
	elements := make([]string, n)
	for i := range elements {
		elements[i] = strings.ReplaceAll(m.element, "#", fmt.Sprint(i))
	}
	return fmt.Sprintf(m.body, strings.Join(elements, ","))
}

// few is how many elements there are at first, and then four times as many. What is done for one element
// may allocate as much as before, and lists double as they grow. What is done for all elements for each of
// them allocates sixteen times as much.
const few, mostGrowth = 100, 6

// grows fails the test if four times as many elements take much more than four times as much memory.
func grows(t *testing.T, name string, run func(n int)) {
	t.Helper()
	allocated := func(n int) float64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		run(n)
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc - before.TotalAlloc)
	}
	run(few) // what is made once
	less, more := allocated(few), allocated(4*few)
	if more > mostGrowth*less {
		t.Errorf("%s: %d elements take %.0f KB, and %d take %.0f KB, %.1f times as much", name, few, less/1e3, 4*few, more/1e3, more/less)
	}
}

// What a request takes in memory, and so in time, grows with its length alone, whatever it has much of,
// in every pair of a client's API and a provider.
func TestRequestsGrowLinearly(t *testing.T) {
	for _, d := range []plugins.Dialect{plugins.Chat, plugins.Messages, plugins.Responses} {
		kinds := []kind{{"anthropic", anthropic.Provider{}, "claude-sonnet-4-5"}, {"vertex", anthropic.Vertex{}, "claude-sonnet-4-5"}}
		for _, k := range kindsOf(plugins.Messages) {
			switch k.name {
			case "bedrock", "cohere", "gemini", "openai", "mistral":
				kinds = append(kinds, k)
			}
		}
		for _, m := range requestsWithMany(d) {
			bodies := map[int]string{few: m.with(few), 4 * few: m.with(4 * few)}
			for _, k := range kinds {
				grows(t, fmt.Sprintf("%s at %s: %s", d, k.name, m.name), func(n int) { _, _, _ = k.send(d, bodies[n]) }) // whether it is valid or not
			}
		}
	}
}

// answersWithMany let a model say much of a kind.
var answersWithMany = map[string]func(a *translate.Assembler, i int){
	"pieces of a text": func(a *translate.Assembler, _ int) { a.Text(0, "a ") },
	"texts":            func(a *translate.Assembler, i int) { a.Text(i, "a") },
	"thoughts":         func(a *translate.Assembler, i int) { a.Summary(0, i, "a") },
	"calls":            func(a *translate.Assembler, i int) { a.Call(i, fmt.Sprint("c", i), "f"); a.Args(i, "{}"); a.Close(i) },
	"calls at once":    func(a *translate.Assembler, i int) { a.Call(i, fmt.Sprint("c", i), "f"); a.Args(i, "{}") },
	"citations": func(a *translate.Assembler, _ int) {
		a.Text(0, "a")
		a.Cite(0, translate.Citation{URL: "https://x", End: 1})
	},
	"pictures": func(a *translate.Assembler, _ int) { a.Image("image/png", "AA==") },
	"searches": func(a *translate.Assembler, _ int) { a.WebSearch(translate.HostedCall{Queries: []string{"q"}}) },
}

// So does an answer.
func TestAnswersGrowLinearly(t *testing.T) {
	for _, d := range []plugins.Dialect{plugins.Chat, plugins.Messages, plugins.Responses} {
		api, _ := inbound.Of(d)
		for name, say := range answersWithMany {
			for _, stream := range []bool{false, true} {
				grows(t, fmt.Sprintf("%s, streamed %t: %s", d, stream, name), func(n int) {
					p := &translate.Request{Model: "m", Stream: stream}
					a := translate.NewAssembler(p, io.Discard, translate.Options{Encoder: api.Encoder(p)})
					for i := range n {
						say(a, i)
					}
					a.Finish(translate.ReasonStop)
					if answer := a.End(); !stream {
						_ = api.Stream(gjson.ParseBytes(answer))
					}
				})
			}
		}
	}
}
