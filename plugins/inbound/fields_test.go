package inbound_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/anthropic"
	"github.com/weirhq/weir/plugins/bedrock"
	chatvendor "github.com/weirhq/weir/plugins/chat"
	"github.com/weirhq/weir/plugins/cohere"
	"github.com/weirhq/weir/plugins/gemini"
	"github.com/weirhq/weir/plugins/inbound"
	"github.com/weirhq/weir/plugins/openai"
	"github.com/weirhq/weir/plugins/perplexity"
	"github.com/weirhq/weir/plugins/translate"
)

var update = flag.Bool("update", false, "write docs/fields.md")

// field is one of an API, in a request that is complete with it.
type field struct {
	name        string
	path, value string // where it is set, and to what
	with        string // other fields, as an object
	without     string // the value without it, for one of a message
	quiet       bool   // it has no effect on the answer, so that it may be left out without a warning
	enforced    bool   // the gateway does what it asks, at providers that do not take it
	history     bool   // it is of an earlier answer, which a strict request may have too
}

// kind is a kind of provider, and a model of it.
type kind struct {
	name     string
	provider translate.Provider
	model    string
}

// translated are the kinds to which requests of Chat Completions are translated.
var translated = []kind{
	{"anthropic", anthropic.Provider{}, "claude-sonnet-4-5"},
	{"bedrock", new(bedrock.Provider), "anthropic.claude-sonnet-4-20250514-v1:0"},
	{"cohere", cohere.Provider{}, "command-a-vision-07-2025"},
	{"gemini", gemini.Provider{}, "gemini-2.5-flash"},
	{"perplexity", perplexity.Provider{}, "perplexity/sonar"},
}

// able is what there is to know of a model that can do all.
var able = plugins.Capabilities{
	Input: []string{"text", "image", "audio", "pdf"}, Output: []string{"text"}, MaxOutput: 8000, Reasoning: true,
	Efforts: []string{"low", "medium", "high"}, ToolCall: true, StructuredOutput: true, Temperature: true,
}

// kindsOf are the kinds that do not speak an API themselves.
func kindsOf(d plugins.Dialect) []kind {
	if d == plugins.Chat {
		return translated
	}
	kinds := append(translated[1:len(translated):len(translated)], kind{"openai", openai.Provider{}, "gpt-5"})
	for _, name := range []string{
		"azure", "cerebras", "compatible", "deepseek", "fireworks", "groq", "lmstudio", "mistral", "ollama", "openrouter", "together", "vercel", "vllm", "xai",
	} {
		kinds = append(kinds, kind{name, chatvendor.For(name), "m"})
	}
	return kinds
}

const (
	user     = `[{"role":"user","content":"hi"}]`
	pixel    = `{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}`
	pdf      = `{"type":"base64","media_type":"application/pdf","data":"JVBERi0xLjQ="}`
	textOf   = `{"type":"text","media_type":"text/plain","data":"hello"}`
	aTool    = `{"tools":[{"name":"f","input_schema":{"type":"object"}}]}`
	toolUse  = `{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{}}]}`
	toolCall = `{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}`
)

func block(block string) string { return `[{"role":"user","content":[` + block + `]}]` }

func result(block string) string {
	return `[` + toolUse + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[` + block + `]}]}]`
}

var messagesFields = []field{
	{name: "`system`", path: "system", value: `"s"`},
	{name: "`stop_sequences`", path: "stop_sequences", value: `["a"]`, enforced: true},
	{name: "`temperature`", path: "temperature", value: `0.5`},
	{name: "`top_p`", path: "top_p", value: `0.5`},
	{name: "`top_k`", path: "top_k", value: `5`},
	{name: "`thinking`: `enabled`", path: "thinking", value: `{"type":"enabled","budget_tokens":2000}`},
	{name: "`thinking`: `adaptive`", path: "thinking", value: `{"type":"adaptive"}`},
	{name: "`output_config.effort`", path: "output_config", value: `{"effort":"high"}`},
	{name: "`output_config.format`", path: "output_config", value: `{"format":{"type":"json_schema","schema":{"type":"object","properties":{},"required":[],"additionalProperties":false}}}`},
	{name: "`tools`: functions", path: "tools", value: `[{"name":"f","input_schema":{"type":"object"}}]`},
	{name: "`tools`: `defer_loading`, `input_examples`, …", path: "tools", value: `[{"name":"f","input_schema":{"type":"object"},"defer_loading":true}]`},
	{name: "`tools`: `web_search`", path: "tools", value: `[{"type":"web_search_20250305","name":"web_search"}]`},
	{name: "`tools`: `code_execution`", path: "tools", value: `[{"type":"code_execution_20250825","name":"code_execution"}]`},
	{name: "`tools`: others of Anthropic's", path: "tools", value: `[{"type":"memory_20250818","name":"memory"}]`},
	{name: "`tool_choice`: `any`", with: `{"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"any"}}`},
	{name: "`disable_parallel_tool_use`", with: `{"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"auto","disable_parallel_tool_use":true}}`},
	{name: "`metadata.user_id`", path: "metadata", value: `{"user_id":"u"}`, quiet: true},
	{name: "`service_tier`", path: "service_tier", value: `"standard_only"`, quiet: true},
	{name: "`cache_control`", path: "messages", value: block(`{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}`), quiet: true},
	{name: "`thread`", path: "thread", value: `{"type":"create"}`},
	{name: "`container`, `context_management`, `inference_geo`, `mcp_servers`, `speed`, …", path: "speed", value: `"fast"`},
	{name: "image: `base64`", path: "messages", value: block(`{"type":"image","source":` + pixel + `}`)},
	{name: "image: `url`", path: "messages", value: block(`{"type":"image","source":{"type":"url","url":"https://x/y.png"}}`)},
	{name: "image: `file`", path: "messages", value: block(`{"type":"image","source":{"type":"file","file_id":"file_1"}}`)},
	{name: "document: `base64`", path: "messages", value: block(`{"type":"document","source":` + pdf + `}`)},
	{name: "document: `url`", path: "messages", value: block(`{"type":"document","source":{"type":"url","url":"https://x/y.pdf"}}`)},
	{name: "document: `file`", path: "messages", value: block(`{"type":"document","source":{"type":"file","file_id":"file_1"}}`)},
	{name: "document: `text`, `content`", path: "messages", value: block(`{"type":"document","title":"t","context":"c","source":` + textOf + `}`)},
	{name: "document: `content` with images", path: "messages", value: block(`{"type":"document","source":{"type":"content","content":[{"type":"image","source":` + pixel + `}]}}`)},
	{name: "document: `context` of a file", path: "messages", value: block(`{"type":"document","context":"c","source":` + pdf + `}`)},
	{name: "document: `citations`", path: "messages", value: block(`{"type":"document","source":` + textOf + `,"citations":{"enabled":true}}`)},
	{name: "`search_result`", path: "messages", value: block(`{"type":"search_result","source":"https://x","title":"t","content":[{"type":"text","text":"hi"}]}`)},
	{name: "`tool_result` with an image", with: aTool, path: "messages", value: result(`{"type":"image","source":` + pixel + `}`)},
	{name: "`tool_result` with a `tool_reference`", with: aTool, path: "messages", value: result(`{"type":"tool_reference","tool_name":"f"}`)},
	{name: "`citations` of an earlier answer", path: "messages", history: true,
		value: `[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"text","text":"a","citations":[{"type":"web_search_result_location"}]}]},{"role":"user","content":"?"}]`},
	{name: "`server_tool_use` and its result", path: "messages", history: true,
		value: `[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"server_tool_use","id":"1","name":"web_search","input":{}},{"type":"text","text":"a"}]},{"role":"user","content":"?"}]`},
	{name: "`container_upload`", path: "messages", value: block(`{"type":"container_upload","file_id":"f"}`)},
}

var chatFields = []field{
	{name: "`max_completion_tokens`, `max_tokens`", path: "max_tokens", value: `50`},
	{name: "`stop`", path: "stop", value: `["a"]`, enforced: true},
	{name: "`temperature`", path: "temperature", value: `0.5`},
	{name: "`top_p`", path: "top_p", value: `0.5`},
	{name: "`top_k`", path: "top_k", value: `5`},
	{name: "`seed`", path: "seed", value: `1`},
	{name: "`presence_penalty`, `frequency_penalty`", path: "presence_penalty", value: `0.5`},
	{name: "`logprobs`", path: "logprobs", value: `true`},
	{name: "`top_logprobs`", path: "top_logprobs", value: `2`},
	{name: "`logit_bias`", path: "logit_bias", value: `{"1":1}`},
	{name: "`n`: more than 1", path: "n", value: `2`},
	{name: "`prediction`", path: "prediction", value: `{"type":"content","content":"a"}`},
	{name: "`modalities`: other than text", with: `{"modalities":["text","audio"],"audio":{"voice":"a","format":"mp3"}}`},
	{name: "`reasoning_effort`", path: "reasoning_effort", value: `"high"`},
	{name: "`verbosity`", path: "verbosity", value: `"low"`},
	{name: "`response_format`: `json_object`", path: "response_format", value: `{"type":"json_object"}`},
	{name: "`response_format`: `json_schema`", path: "response_format", value: `{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object","properties":{},"required":[],"additionalProperties":false}}}`},
	{name: "`tools`: functions", path: "tools", value: `[{"type":"function","function":{"name":"f"}}]`},
	{name: "`tools`: custom", path: "tools", value: `[{"type":"custom","custom":{"name":"f"}}]`},
	{name: "`tool_choice`: `required`", with: `{"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"required"}`},
	{name: "`parallel_tool_calls`: false", with: `{"tools":[{"type":"function","function":{"name":"f"}}],"parallel_tool_calls":false}`},
	{name: "`functions`, `function_call`", path: "functions", value: `[]`},
	{name: "`web_search_options`", path: "web_search_options", value: `{}`},
	{name: "`moderation`", path: "moderation", value: `{"model":"m"}`},
	{name: "`metadata`", path: "metadata", value: `{"k":"v"}`, quiet: true},
	{name: "`user`, `safety_identifier`", path: "user", value: `"u"`, quiet: true},
	{name: "`store`, `stream_options`", path: "store", value: `true`, quiet: true},
	{name: "`prompt_cache_key`", path: "prompt_cache_key", value: `"k"`, quiet: true},
	{name: "`prompt_cache_breakpoint`, `cache_control`", path: "messages", value: block(`{"type":"text","text":"hi","prompt_cache_breakpoint":{"mode":"explicit"}}`), quiet: true},
	{name: "`service_tier`", path: "service_tier", value: `"flex"`},
	{name: "image inline", path: "messages", value: block(`{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}`)},
	{name: "image by URL", path: "messages", value: block(`{"type":"image_url","image_url":{"url":"https://x/y.png"}}`)},
	{name: "`file`: `file_data`", path: "messages", value: block(`{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0xLjQ="}}`)},
	{name: "`file`: `file_id`", path: "messages", value: block(`{"type":"file","file":{"file_id":"file-1"}}`)},
	{name: "`input_audio`", path: "messages", value: block(`{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}`)},
	{name: "`name` of a message", path: "messages", value: `[{"role":"user","name":"ann","content":"hi"}]`},
	{name: "`refusal`", path: "messages", value: `[{"role":"user","content":"hi"},{"role":"assistant","refusal":"no"}]`},
	{name: "`annotations` of an earlier answer", path: "messages", quiet: true, without: `[{"role":"user","content":"hi"},{"role":"assistant","content":"a"}]`,
		value: `[{"role":"user","content":"hi"},{"role":"assistant","content":"a","annotations":[{"type":"url_citation"}]}]`},
	{name: "`tool` message with an image", with: `{"tools":[{"type":"function","function":{"name":"f"}}]}`, path: "messages",
		value: `[` + toolCall + `,{"role":"tool","tool_call_id":"1","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}]}]`},
	{name: "whatever else", path: "whatever", value: `1`},
}

// What becomes of a field.
const (
	sent    = "✓"
	leftOut = "left out"
	unsent  = "–"
	refused = "400"
)

// TestFields holds docs/fields.md, which says what becomes of each field of the APIs with
// each kind of provider, against what does. No field is left out in silence, and with
// Service-Strict none that matters.
func TestFields(t *testing.T) {
	var page strings.Builder
	page.WriteString(fieldsIntro)
	for _, api := range []struct {
		title   string
		dialect plugins.Dialect
		base    string
		fields  []field
	}{
		{"Messages", plugins.Messages, `{"model":"m","max_tokens":4000,"messages":` + user + `}`, messagesFields},
		{"Chat Completions", plugins.Chat, `{"model":"m","messages":` + user + `}`, chatFields},
	} {
		kinds := kindsOf(api.dialect)
		columns := make([][]string, len(kinds))
		for i, k := range kinds {
			plain, _, err := k.ask(api.dialect, api.base, false)
			if err != nil {
				t.Fatal(k.name, err)
			}
			for _, f := range api.fields {
				columns[i] = append(columns[i], f.outcome(t, k, api.dialect, api.base, plain))
			}
		}
		fmt.Fprintf(&page, "\n## %s\n\n%s", api.title, fieldTable(kinds, api.fields, columns))
	}
	const path = "../../docs/fields.md"
	if *update {
		if err := os.WriteFile(path, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != page.String() {
		t.Errorf("%s is not what came of the test (error %v): go test ./plugins/inbound -run TestFields -update writes it\n%s", path, err, &page)
	}
}

const fieldsIntro = `# Fields of Chat Completions and Messages

What happens to each field of a request if the provider does not speak the client's API, for a
model with all abilities of its kind. If the provider speaks the API, the body passes unchanged.

| | |
|---|---|
| ✓ | translated, or done by the gateway |
| left out | left out, with a line in ` + "`Service-Warnings`" + `; a 400 with ` + "`Service-Strict: true`" + `, unless it belongs to an earlier answer |
| – | not sent, because it has no effect on the answer |
| 400 | refused, with the name of the field |
`

// outcome is what becomes of the field.
func (f field) outcome(t *testing.T, k kind, d plugins.Dialect, base, plain string) string {
	t.Helper()
	body := base
	if f.path != "" {
		body, _ = sjson.SetRaw(base, f.path, f.value)
	}
	gjson.Parse(f.with).ForEach(func(key, v gjson.Result) bool {
		body, _ = sjson.SetRaw(body, key.Str, v.Raw)
		return true
	})
	if f.without != "" {
		without, _ := sjson.SetRaw(base, f.path, f.without)
		plain, _, _ = k.ask(d, without, false)
	}
	got, warnings, err := k.ask(d, body, false)
	if err != nil {
		if e, ok := errors.AsType[*plugins.Error](err); !ok || e.Status != 400 || e.Param == "" {
			t.Errorf("%s with %s: got %v, want a 400 that names a field", f.name, k.name, err)
		}
		return refused
	}
	warnings = slices.DeleteFunc(warnings, func(w string) bool { // which are not about the field
		return strings.HasPrefix(w, "messages: with messages between")
	})
	if len(warnings) > 0 {
		if _, _, err := k.ask(d, body, true); (err == nil) != f.history {
			t.Errorf("%s with %s: strictly, got error %v in place of the warnings %q", f.name, k.name, err, warnings)
		}
		return leftOut
	}
	if got == plain && !f.enforced {
		if !f.quiet {
			t.Errorf("%s with %s: it is left out in silence", f.name, k.name)
		}
		return unsent
	}
	return sent
}

// ask is what a provider is sent for a request, and the warnings.
func (k kind) ask(d plugins.Dialect, body string, strict bool) (sent string, warnings []string, err error) {
	parse := translate.ParseRequest
	if api, ok := inbound.Of(d); ok {
		parse = api.Parse
	}
	p, err := parse([]byte(body))
	if err != nil {
		return "", nil, err
	}
	p.Strict = strict
	req, err := k.provider.Prepare(context.Background(), p, translate.Target{Model: k.model, BaseURL: "https://example.com", Key: "k", Capabilities: &able})
	if err != nil {
		return "", nil, p.Names.Error(err)
	}
	b, err := io.ReadAll(req.Body)
	return string(b), p.Names.Warnings(p.Warnings), err
}

// fieldTable is a table, in which the kinds that are alike are one column.
func fieldTable(kinds []kind, fields []field, columns [][]string) string {
	var names []string
	var distinct [][]string
	for i, k := range kinds {
		j := slices.IndexFunc(distinct, func(c []string) bool { return slices.Equal(c, columns[i]) })
		if j < 0 {
			names, distinct = append(names, "`"+k.name+"`"), append(distinct, columns[i])
		} else {
			names[j] += ", `" + k.name + "`"
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| | %s |\n|---|%s\n", strings.Join(names, " | "), strings.Repeat("---|", len(names)))
	for row, f := range fields {
		fmt.Fprintf(&b, "| %s |", f.name)
		for _, column := range distinct {
			fmt.Fprintf(&b, " %s |", column[row])
		}
		b.WriteByte('\n')
	}
	return b.String()
}
