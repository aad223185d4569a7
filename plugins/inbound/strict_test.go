package inbound_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/anthropic"
	"github.com/weirhq/weir/plugins/inbound"
	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

// names are names of tools that clients send, and ids of calls.
var (
	names = []string{
		"f", strings.Repeat("mcp__server__", 5) + "tool_a", "2fa-code", strings.Repeat("mcp__server__", 5) + "tool_b", strings.Repeat("n", 128),
	}
	ids = []string{
		"call_1", "functions.Bash:0", "toolu_01", strings.Repeat("i", 65), strings.Repeat("i", 200), "chatcmpl-tool-1/2", "é", "123456789",
	}
)

// schema is one as Pydantic, zod and schemars write it.
const schema = `{"type":"object","properties":{"u":{"allOf":[{"type":"object","properties":{"x":{"type":"string"}}},{"properties":{"y":true}}]},"e":{"type":["string","null"],"enum":["a",null]},"t":{"$ref":"#/$defs/T","description":"d"},"k":{"const":"x"},"n":{"anyOf":[{"type":"integer"},{"type":"null"}]}},"required":["t"],"$defs":{"T":{"type":"object","properties":{"a":{"type":"string","enum":["b"]}}}}}`

// requests returns what clients of a dialect may send, which differ in names, ids and choices. Each
// has two turns whose calls have the same id.
func requests(d plugins.Dialect) (bodies []string) {
	for i, name := range names {
		other := names[(i+1)%len(names)]
		for _, id := range ids {
			for _, chooses := range []bool{false, true} {
				bodies = append(bodies, request(d, name, other, id, chooses))
			}
		}
	}
	switch d {
	case plugins.Chat:
		bodies = append(bodies, `{"model":"m","stop":["a","b","c","d","\n"],"messages":[{"role":"user","content":"hi"}]}`)
	case plugins.Messages:
		bodies = append(bodies, `{"model":"m","max_tokens":99,"stop_sequences":["a","b","c","d","e"],"messages":[{"role":"user","content":"hi"}]}`)
	}
	if d == plugins.Chat {
		for _, id := range ids {
			bodies = append(bodies, fmt.Sprintf(`{"model":"m","tools":[{"type":"function","function":{"name":"f"}}],"messages":[{"role":"user","content":"hi"},
				{"role":"assistant","tool_calls":[{"id":%[1]q,"type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":%[1]q,"content":"a"}]}`, id))
		}
		for _, format := range []string{`{"type":"json_object"}`, `{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object","properties":{},"required":[],"additionalProperties":false}}}`} {
			for _, more := range []string{``, `,"tools":[{"type":"function","function":{"name":"f"}}]`} {
				bodies = append(bodies, `{"model":"m","response_format":`+format+more+`,"messages":[{"role":"user","content":"answer in json"}]}`)
			}
		}
		bodies = append(bodies, `{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","reasoning_content":"hm","content":"a"},{"role":"user","content":"b"}]}`)
	}
	return bodies
}

func request(d plugins.Dialect, name, other, id string, chooses bool) string {
	choice := ""
	if d == plugins.Responses {
		if chooses {
			choice = fmt.Sprintf(`,"tool_choice":{"type":"function","name":%q}`, name)
		}
		turn := fmt.Sprintf(`{"type":"function_call","call_id":%[1]q,"name":%q,"arguments":"{}"},{"type":"function_call_output","call_id":%[1]q,"output":"a"}`, id, name)
		return fmt.Sprintf(`{"model":"m","tools":[{"type":"function","name":%[1]q,"parameters":%[5]s},{"type":"function","name":%[2]q,"parameters":null}],
			"input":[{"role":"developer","content":"be brief"},{"role":"user","content":"hi"},%[3]s,{"role":"system","content":"now"},%[3]s]%[4]s}`, name, other, turn, choice, schema)
	}
	if d == plugins.Messages {
		if chooses {
			choice = fmt.Sprintf(`,"tool_choice":{"type":"tool","name":%q}`, name)
		}
		turn := fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":%[1]q,"name":%q,"input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":%[1]q,"content":"a"}]}`, id, name)
		return fmt.Sprintf(`{"model":"m","max_tokens":99,"tools":[{"name":%q,"input_schema":{"type":"object"}},{"name":%q,"input_schema":{"type":"object"}}],
			"messages":[{"role":"user","content":"hi"},%[3]s,%[3]s]%s}`, name, other, turn, choice)
	}
	if chooses {
		choice = fmt.Sprintf(`,"tool_choice":{"type":"function","function":{"name":%q}}`, name)
	}
	turn := fmt.Sprintf(`{"role":"assistant","tool_calls":[{"id":%[1]q,"type":"function","function":{"name":%q,"arguments":"{}"}}]},
		{"role":"tool","tool_call_id":%[1]q,"content":"a"}`, id, name)
	return fmt.Sprintf(`{"model":"m","tools":[{"type":"function","function":{"name":%q}},{"type":"function","function":{"name":%q}}],
		"messages":[{"role":"user","content":"hi"},%[3]s,%[3]s]%s}`, name, other, turn, choice)
}

// send returns what a provider is sent for a request: the client's bytes, adapted, if the provider
// speaks the client's dialect.
func (k kind) send(d plugins.Dialect, body string) (sent string, native bool, err error) {
	speaker, ok := k.provider.(translate.Native)
	if !ok {
		sent, _, err = k.ask(d, body, false)
		return sent, false, err
	}
	target := translate.Target{Model: k.model, BaseURL: "https://example.com", Key: "k", Capabilities: &able}
	if k.name == "openai" {
		target.BaseURL = "https://api.openai.com/v1"
	}
	object, _ := plugins.ParseObject([]byte(body))
	if adapter, ok := k.provider.(translate.Adapter); ok {
		adapted, _ := adapter.Adapt(d, object, target)
		object, _ = plugins.ParseObject(adapted)
	}
	req, err := speaker.PrepareNative(context.Background(), d, object, target)
	if errors.Is(err, errors.ErrUnsupported) {
		sent, _, err = k.ask(d, body, false)
		return sent, false, err
	}
	text, err := io.ReadAll(req.Body)
	return string(text), true, err
}

// Whatever a client sends, a strict provider takes, or the client gets a 400 that names the field.
func TestStrictProvidersTakeWhateverClientsSend(t *testing.T) {
	paths := map[string]string{"anthropic": "/v1/messages", "bedrock": "/converse", "cohere": "/v2/chat", "gemini": ":generateContent", "openai": "/responses", "perplexity": "/responses"}
	for _, d := range []plugins.Dialect{plugins.Messages, plugins.Chat, plugins.Responses} {
		bodies := requests(d)
		named := len(bodies)
		bodies = append(bodies, conversations(d)...)
		kinds := append(kindsOf(plugins.Messages), kind{"anthropic", anthropic.Provider{}, "claude-sonnet-4-5"})
		if d == plugins.Responses { // OpenAI and Perplexity get the client's bytes
			kinds = slices.DeleteFunc(kinds, func(k kind) bool { return k.name == "openai" || k.name == "perplexity" })
		}
		for _, k := range kinds {
			path := paths[k.name]
			if path == "" {
				path = "/chat/completions"
			}
			strict := plugintest.Strict{Vendor: k.name, Model: &able}
			for i, body := range bodies {
				sent, native, err := k.send(d, body)
				if native && i >= named { // what its own clients say passes
					continue
				}
				if e, ok := errors.AsType[*plugins.Error](err); ok && e.Param != "" {
					continue
				}
				path := path
				if native {
					path = map[plugins.Dialect]string{plugins.Messages: "/v1/messages", plugins.Chat: "/chat/completions"}[d]
				}
				if err == nil {
					err = strict.Refusal(path, []byte(sent))
				}
				if err != nil {
					t.Errorf("%s to %s, natively %t: %v\nof %s\nsent %s", d, k.name, native, err, body, sent)
					if i < named {
						break
					}
				}
			}
		}
	}
}

// fragments are parts of conversations as clients of a dialect send them, each a list of messages or items.
var fragments = map[plugins.Dialect][]string{
	plugins.Chat: {
		`{"role":"user","content":""}`, `{"role":"user","content":" \n"}`, `{"role":"user","content":[]}`, `{"role":"user","content":[{"type":"text","text":""}]}`,
		`{"role":"user","content":[{"type":"text","text":" "},{"type":"text","text":"hi"}]}`, `{"role":"user","name":"ann","content":"hi"}`,
		`{"role":"user","content":"a"},{"role":"user","content":"b"}`, `{"role":"system","content":""}`, `{"role":"developer","content":"now"}`, `{"role":"system","content":[{"type":"text","text":"a"}]}`,
		`{"role":"assistant","content":""}`, `{"role":"assistant","content":null}`, `{"role":"assistant"}`, `{"role":"assistant","content":"a \n"}`, `{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":""}]}`,
		`{"role":"assistant","content":null,"refusal":"no"}`, `{"role":"assistant","content":"a"},{"role":"assistant","content":"b"}`,
		`{"role":"assistant","content":" ","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":""}}]},{"role":"tool","tool_call_id":"c1","content":""}`,
		`{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":"}}]},{"role":"tool","tool_call_id":"c1","content":" "}`,
		`{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"null"}}]},{"role":"tool","tool_call_id":"c1","content":[]}`,
		`{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"[1]"}}]},{"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":""}]}`,
		`{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"g","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c2","content":"2"},{"role":"tool","tool_call_id":"c1","content":"1"}`,
		`{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"g","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":"1"}`,
		`{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":"stop"}`,
		`{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":"wait"},{"role":"tool","tool_call_id":"c1","content":"1"}`,
		`{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}]}`,
		`{"role":"assistant","content":"a","tool_calls":[]}`, `{"role":"assistant","content":"","reasoning_content":"hm"}`, `{"role":"tool","tool_call_id":"gone","content":"1"}`,
	},
	plugins.Messages: {
		`{"role":"user","content":""}`, `{"role":"user","content":" "}`, `{"role":"user","content":[]}`, `{"role":"user","content":[{"type":"text","text":""}]}`, `{"role":"user","content":[{"type":"text","text":" "},{"type":"text","text":"hi"}]}`,
		`{"role":"user","content":"a"},{"role":"user","content":"b"}`, `{"role":"assistant","content":""}`, `{"role":"assistant","content":[]}`, `{"role":"assistant","content":"a "}`, `{"role":"system","content":"now"}`,
		`{"role":"assistant","content":[{"type":"text","text":""},{"type":"tool_use","id":"t1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1"}]}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":""},{"type":"text","text":"x"}]}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{}}]},{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":" "}],"is_error":true}]}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}]}]}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{}},{"type":"tool_use","id":"t2","name":"g","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":"2"},{"type":"tool_result","tool_use_id":"t1","content":"1"}]}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{}},{"type":"tool_use","id":"t2","name":"g","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"1"}]}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{}}]},{"role":"user","content":"stop"}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":""},{"type":"text","text":"a"}]}`, `{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"s"}]}`,
		`{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}]}`,
	},
	plugins.Responses: {
		`{"role":"user","content":""}`, `{"role":"user","content":[]}`, `{"role":"user","content":[{"type":"input_text","text":""}]}`, `{"role":"assistant","content":""}`, `{"role":"developer","content":""}`,
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"","annotations":[]}]}`, `{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"no"}]}`,
		`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA"}`, `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}]}`,
		`{"type":"function_call","call_id":"c1","name":"f","arguments":""},{"type":"function_call_output","call_id":"c1","output":""}`,
		`{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"a\":"},{"type":"function_call_output","call_id":"c1","output":[]}`,
		`{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":[{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,iVBORw0KGgo="}]}`,
		`{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},{"type":"function_call","call_id":"c2","name":"g","arguments":"{}"},{"type":"function_call_output","call_id":"c2","output":"2"},{"type":"function_call_output","call_id":"c1","output":"1"}`,
		`{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},{"type":"reasoning","id":"rs_1","summary":[]},{"type":"function_call","call_id":"c2","name":"g","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"1"},{"type":"function_call_output","call_id":"c2","output":"2"}`,
		`{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},{"role":"user","content":"stop"}`,
		`{"type":"custom_tool_call","call_id":"c1","name":"p","input":""},{"type":"custom_tool_call_output","call_id":"c1","output":[{"type":"input_text","text":"ok"}]}`,
		`{"type":"agent_message","author":"/root/sub","recipient":"/root","content":[{"type":"input_text","text":"done"}]}`, `{"type":"agent_message","author":"/root/sub","recipient":"/root","content":[{"type":"encrypted_content","encrypted_content":"gAAA"}]}`,
		`{"type":"function_call_output","call_id":"gone","output":"1"}`, `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}}`,
	},
}

// conversations returns requests with each fragment first, in the middle and last, and with tools that
// are there twice or have alternatives.
func conversations(d plugins.Dialect) (bodies []string) {
	form := map[plugins.Dialect]string{
		plugins.Chat:      `{"model":"m","tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"g"}}],"messages":[%s]}`,
		plugins.Messages:  `{"model":"m","max_tokens":99,"tools":[{"name":"f","input_schema":{"type":"object"}},{"name":"g","input_schema":{"type":"object"}}],"messages":[%s]}`,
		plugins.Responses: `{"model":"m","tools":[{"type":"function","name":"f","parameters":{}},{"type":"function","name":"g","parameters":{}},{"type":"custom","name":"p"}],"input":[%s]}`,
	}[d]
	twice, alternatives := map[plugins.Dialect]string{
		plugins.Chat:      `{"model":"m","tools":[{"type":"function","function":{"name":"f","parameters":%[1]s}},{"type":"function","function":{"name":"f","parameters":%[1]s}}],"messages":[{"role":"user","content":"hi"}]}`,
		plugins.Messages:  `{"model":"m","max_tokens":9,"tools":[{"name":"f","input_schema":%[1]s},{"name":"f","input_schema":%[1]s}],"messages":[{"role":"user","content":"hi"}]}`,
		plugins.Responses: `{"model":"m","tools":[{"type":"function","name":"f","parameters":%[1]s},{"type":"function","name":"f","parameters":%[1]s}],"input":"hi"}`,
	}[d], []string{
		`{"type":"object"}`,
		`{"type":"object","anyOf":[{"properties":{"a":{"type":"string"},"c":{"type":"string"}},"required":["a","c"]},{"properties":{"b":{"type":"string"},"c":{"type":"integer"}},"required":["b","c"]}]}`,
		`{"oneOf":[{"$ref":"#/$defs/A"},{"type":"object","allOf":[{"properties":{"b":{"type":"string"}}}]}],"$defs":{"A":{"type":"object","properties":{"a":{"type":"string"}}}}}`,
		`{"type":"object","properties":{"x":{"anyOf":[{"type":"string"},{"type":"null"}]}},"allOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"if":{"properties":{"a":{"const":"b"}}},"then":{"required":["x"]}}]}`,
	}
	for _, s := range alternatives {
		bodies = append(bodies, fmt.Sprintf(twice, s))
	}
	stop := map[plugins.Dialect]string{plugins.Chat: "stop", plugins.Messages: "stop_sequences", plugins.Responses: "stop"}[d]
	bodies = append(bodies, strings.Replace(fmt.Sprintf(form, `{"role":"user","content":"hi"}`), `{`, `{"`+stop+`":["a","b","c","d","e","f"],`, 1))
	const hi, more = `{"role":"user","content":"hi"}`, `{"role":"user","content":"go on"}`
	for _, fragment := range fragments[d] {
		for _, messages := range []string{fragment, fragment + "," + more, hi + "," + fragment, hi + "," + fragment + "," + more} {
			bodies = append(bodies, fmt.Sprintf(form, messages))
		}
	}
	return bodies
}

// A client gets its own names of tools back, in streams too, whatever names a provider has for them; the
// provider has one name for a tool, in its tools, choices and calls.
func TestNamesComeBack(t *testing.T) {
	for _, d := range []plugins.Dialect{plugins.Messages, plugins.Chat, plugins.Responses} {
		api, _ := inbound.Of(d)
		for _, k := range append(kindsOf(plugins.Messages), kind{"anthropic", anthropic.Provider{}, "claude-sonnet-4-5"}) {
			for i, name := range names {
				other := names[(i+1)%len(names)]
				for _, stream := range []bool{false, true} {
					p, err := api.Parse([]byte(request(d, name, other, "call_1", true)))
					if err != nil {
						t.Fatal(err)
					}
					p.Stream = stream
					req, err := k.provider.Prepare(context.Background(), p, translate.Target{Model: k.model, BaseURL: "https://example.com", Key: "k", Capabilities: &able})
					if err != nil {
						t.Errorf("%s to %s: %v", d, k.name, err)
						continue
					}
					sent, _ := io.ReadAll(req.Body) // of the test
					if fitted := p.Tools[0].Name; fitted != name && (strings.Contains(string(sent), `"`+name+`"`) || strings.Count(string(sent), `"`+fitted+`"`) < 3) {
						t.Errorf("%s to %s: %s is sent as %s, not everywhere: %s", d, k.name, name, fitted, sent)
					}
					var answer strings.Builder
					a := translate.NewAssembler(p, &answer, translate.Options{Encoder: api.Encoder(p)})
					for i := range p.Tools {
						a.Call(i, fmt.Sprint("c", i), p.Tools[i].Name)
						a.Args(i, "{}")
					}
					a.Finish(translate.ReasonStop)
					answer.Write(a.End())
					for _, own := range []string{name, other} {
						if !strings.Contains(answer.String(), `"name":"`+own+`"`) {
							t.Errorf("%s from %s, streamed %t: no call of %s in %s", d, k.name, stream, own, answer.String())
						}
					}
				}
			}
		}
	}
}
