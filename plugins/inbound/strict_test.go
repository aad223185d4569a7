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
	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

// names are names of tools that clients send, and ids of calls.
var (
	names = []string{
		"f", strings.Repeat("mcp__server__", 5) + "tool_a", strings.Repeat("mcp__server__", 5) + "tool_b", strings.Repeat("n", 128),
	}
	ids = []string{
		"call_1", "functions.Bash:0", "toolu_01", strings.Repeat("i", 65), strings.Repeat("i", 200), "chatcmpl-tool-1/2", "é", "123456789",
	}
)

// schema is one as Pydantic writes it.
const schema = `{"type":"object","properties":{"t":{"$ref":"#/$defs/T","description":"d"},"k":{"const":"x"},"n":{"anyOf":[{"type":"integer"},{"type":"null"}]}},"required":["t"],"$defs":{"T":{"type":"object","properties":{"a":{"type":"string","enum":["b"]}}}}}`

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
			for _, body := range bodies {
				sent, native, err := k.send(d, body)
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
					break
				}
			}
		}
	}
}
