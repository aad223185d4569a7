package inbound_test

import (
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/anthropic"
	"github.com/weirhq/weir/plugins/bedrock"
	chatvendor "github.com/weirhq/weir/plugins/chat"
	"github.com/weirhq/weir/plugins/cohere"
	"github.com/weirhq/weir/plugins/gemini"
	"github.com/weirhq/weir/plugins/inbound"
	"github.com/weirhq/weir/plugins/openai"
	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

var chat, _ = inbound.Of(plugins.Chat)

// asks are fields of a request, what Responses has in their place at a path of the
// body, and the field that a warning may name.
type asks struct{ fields, path, want, warning string }

func (c asks) check(t *testing.T, d plugins.Dialect, rest string) {
	t.Helper()
	api, _ := inbound.Of(d)
	p, err := api.Parse([]byte(`{` + c.fields + `,` + rest + `}`))
	if err != nil {
		t.Fatalf("%s: %v", c.fields, err)
	}
	var got, want any
	if raw := gjson.GetBytes(p.Raw, c.path).Raw; raw != "" {
		got = gjson.Parse(raw).Value()
	}
	if c.want != "" {
		want = gjson.Parse(c.want).Value()
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %s is %s\nwant %s", c.fields, c.path, gjson.GetBytes(p.Raw, c.path).Raw, c.want)
	}
	if err := p.Apply(translate.DefaultPolicy.With(translate.WebSearch)); err != nil {
		if c.warning != "" {
			t.Errorf("%s: %v", c.fields, err)
		}
		return // of a part that only some take
	}
	warnings := p.Names.Warnings(p.Warnings)
	if c.warning == "" && len(warnings) > 0 || c.warning != "" && (len(warnings) != 1 || !strings.HasPrefix(warnings[0], c.warning+": ")) {
		t.Errorf("%s: warnings %q, want one of %q", c.fields, warnings, c.warning)
	}
}

func TestChatRequest(t *testing.T) {
	for _, c := range []asks{
		{`"temperature":0.5,"top_p":0.1`, "temperature", `0.5`, ""},
		{`"max_tokens":7`, "max_output_tokens", `7`, ""},
		{`"max_completion_tokens":8,"max_tokens":7`, "max_output_tokens", `8`, ""},
		{`"stop":["a"]`, "stop", `["a"]`, ""},
		{`"reasoning_effort":"low"`, "reasoning", `{"effort":"low"}`, "reasoning_effort"},
		{`"verbosity":"low"`, "text", `{"format":{"type":"text"},"verbosity":"low"}`, "verbosity"},
		{`"response_format":{"type":"json_object"}`, "text.format", `{"type":"json_object"}`, ""},
		{`"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"type":"object"}}}`, "text.format",
			`{"type":"json_schema","name":"n","strict":true,"schema":{"type":"object"}}`, ""},
		{`"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]`, "tools",
			`[{"type":"function","name":"f","parameters":{"type":"object"}}]`, ""},
		{`"tools":[{"type":"custom","custom":{"name":"c","description":"d","format":{"type":"grammar","grammar":{"syntax":"lark","definition":"x"}}}}]`, "tools",
			`[{"type":"custom","name":"c","description":"d","format":{"type":"grammar","syntax":"lark","definition":"x"}}]`, ""},
		{`"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function","function":{"name":"f"}}`, "tool_choice",
			`{"type":"function","name":"f"}`, ""},
		{`"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"f"}}]}}`,
			"tool_choice", `{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"}]}`, ""},
		{`"web_search_options":{"search_context_size":"low","user_location":{"type":"approximate","approximate":{"city":"Paris"}}}`, "tools",
			`[{"type":"web_search","search_context_size":"low","user_location":{"type":"approximate","city":"Paris"}}]`, ""},
		{`"logprobs":true,"top_logprobs":0`, "include", `["message.output_text.logprobs"]`, "logprobs"},
		{`"logprobs":false,"n":1,"modalities":["text"],"logit_bias":null`, "include", ``, ""},
		{`"store":true`, "store", `true`, ""},
		{`"user":"u"`, "store", `false`, ""},
		{`"prediction":{"type":"content"}`, "prediction", ``, "prediction"},
		{`"background":true`, "background", ``, "background"},
	} {
		c.check(t, plugins.Chat, `"model":"m","messages":[{"role":"user","content":"hi"}]`)
	}
}

func TestChatMessages(t *testing.T) {
	call := `{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},`
	output := `{"role":"tool","tool_call_id":"1","content":"x"}`
	for _, c := range []asks{
		{`{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"t","cache_control":{"type":"ephemeral"}}]}`, "input",
			`[{"role":"system","content":"s"},{"role":"user","content":[{"type":"input_text","text":"t","prompt_cache_breakpoint":{"mode":"explicit"}}]}]`, ""},
		{`{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x/y.png","detail":"low"}},{"type":"image_url","image_url":"https://x/z.png"}]}`, "input.0.content",
			`[{"type":"input_image","image_url":"https://x/y.png","detail":"low"},{"type":"input_image","image_url":"https://x/z.png"}]`, ""},
		{`{"role":"user","content":[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AA=="}}]}`, "input.0.content",
			`[{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,AA=="}]`, ""},
		{`{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AA==","format":"wav"}}]}`, "input.0.content",
			`[{"type":"input_audio","input_audio":{"data":"AA==","format":"wav"}}]`, ""},
		{call + output, "input", `[{"type":"function_call","call_id":"1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"x"}]`, ""},
		{`{"role":"assistant","content":"","reasoning_content":"r","tool_calls":[{"id":"1","type":"custom","custom":{"name":"c","input":"i"}}]},` + output, "input",
			`[{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"r"}]},{"type":"custom_tool_call","call_id":"1","name":"c","input":"i"},` +
				`{"type":"custom_tool_call_output","call_id":"1","output":"x"}]`, ""},
		{`{"role":"assistant","content":[{"type":"text","text":"a"}],"refusal":"no"}`, "input.#.content",
			`[[{"type":"output_text","text":"a","annotations":[]}],[{"type":"refusal","refusal":"no"}]]`, ""},
		{`{"role":"user","name":"ann","content":"hi"}`, "input.0", `{"role":"user","content":"hi"}`, "messages[0].name"},
	} {
		c.fields = `"messages":[` + c.fields + `]`
		c.check(t, plugins.Chat, `"model":"m"`)
	}
}

// Errors name the fields that the client sent.
func TestChatErrors(t *testing.T) {
	user := `"messages":[{"role":"user","content":"hi"}]`
	for body, param := range map[string]string{
		`{`:                                    "",
		`[]`:                                   "",
		`{"model":"m"}`:                        "messages",
		`{"model":"m","messages":[]}`:          "messages",
		`{"model":"m","messages":"hi"}`:        "messages",
		`{"model":"m","messages":["hi"]}`:      "messages[0]",
		`{` + user + `}`:                       "model",
		`{"model":"m","n":2,` + user + `}`:     "n",
		`{"model":"m","tools":1,` + user + `}`: "tools",
		`{"model":"m","functions":[],` + user + `}`:                                                      "functions",
		`{"model":"m","modalities":["text","audio"],` + user + `}`:                                       "modalities",
		`{"model":"m","max_tokens":"x",` + user + `}`:                                                    "max_tokens",
		`{"model":"m","max_completion_tokens":-1,` + user + `}`:                                          "max_completion_tokens",
		`{"model":"m","temperature":"hot",` + user + `}`:                                                 "temperature",
		`{"model":"m","response_format":{"type":"json_schema","json_schema":{"name":"n"}},` + user + `}`: "response_format.schema",
		`{"model":"m","tool_choice":{"type":"function","function":"f"},"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"some",` + user + `}`: "tool_choice",
		`{"model":"m","tools":[{"type":"function"}],` + user + `}`:                                                            "tools[0].function",
		`{"model":"m","tools":[{"type":"function","function":{}}],` + user + `}`:                                              "tools[0].name",
		`{"model":"m","messages":[{"content":"hi"}]}`:                                                                         "messages[0].role",
		`{"model":"m","messages":[{"role":"function","content":"hi"}]}`:                                                       "messages[0].role",
		`{"model":"m","messages":[{"role":"user"}]}`:                                                                          "messages[0].content",
		`{"model":"m","messages":[{"role":"user","content":1}]}`:                                                              "messages[0].content",
		`{"model":"m","messages":[{"role":"user","content":[{"type":"video"}]}]}`:                                             "messages[0].content[0].type",
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url"}]}]}`:              "messages[0].content[1]",
		`{"model":"m","messages":[{"role":"tool","content":"x"}]}`:                                                            "messages[0].tool_call_id",
		`{"model":"m","messages":[{"role":"tool","tool_call_id":"1","content":"x"}]}`:                                         "messages[0]",
		`{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f"}}]}]}`: "messages[0].tool_calls[0]",
		`{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"1","function":{}}]}]}`:                             "messages[0].tool_calls[0].function.name",
		`{"model":"m","messages":[{"role":"assistant"}]}`:                                                                     "messages[0].content",
		`{"model":"m","messages":[{"role":"assistant","content":"a","audio":{"id":"1"}}]}`:                                    "messages[0].audio",
	} {
		_, err := chat.Parse([]byte(body))
		if e, ok := errors.AsType[*plugins.Error](err); !ok || e.Status != 400 || e.Param != param {
			t.Errorf("%s: got %+v, want a 400 that names %q", body, err, param)
		}
	}
}

// A stream has the usage if it was asked for, and else none.
func TestChatUsage(t *testing.T) {
	for asked, want := range map[string]int64{`{"include_usage":true}`: 3, `{"include_usage":false}`: 0, `null`: 0} {
		p, err := chat.Parse([]byte(`{"model":"m","stream":true,"stream_options":` + asked + `,"messages":[{"role":"user","content":"hi"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		var sink strings.Builder
		a := translate.NewAssembler(p, &sink, translate.Options{Encoder: chat.Encoder(p)})
		a.Usage(plugins.Usage{Input: plugins.Known(3), Output: plugins.Known(5)})
		a.Text(0, "hi")
		a.Finish(translate.ReasonStop)
		sink.Write(a.End())
		m, err := plugintest.CheckChat([]byte(sink.String()))
		if err != nil || m.Input != want || strings.Contains(sink.String(), "usage") != (want > 0) {
			t.Errorf("%s: %v\n%s", asked, err, sink.String())
		}
	}
}

// What a reader of one text would run together is separated, in both forms alike.
func TestChatTexts(t *testing.T) {
	p := &translate.Request{Model: "m", Stream: true}
	var sink strings.Builder
	a := translate.NewAssembler(p, &sink, translate.Options{Encoder: chat.Encoder(p)})
	a.Summary(0, 0, "one")
	a.Summary(0, 1, "two")
	a.Text(1, "let me\nsee")
	a.Annotation(1, []byte(`{"type":"url_citation","url":"https://x","title":"t","start_index":0,"end_index":3}`))
	a.Call(2, "c1", "f")
	a.Args(2, `{"a":`)
	a.Call(3, "c2", "g")
	a.Args(3, `{}`)
	a.Args(2, `1}`)
	a.Text(4, "dône")
	a.Annotation(4, []byte(`{"type":"url_citation","url":"https://y","start_index":1,"end_index":9}`))
	a.Annotation(4, []byte(`{"type":"file_citation","file_id":"file-1","filename":"a.pdf","index":4}`))
	a.Image("image/png", "AA==")
	a.Finish(translate.ReasonStop)
	_, _ = sink.Write(a.End())
	m, err := plugintest.CheckChat([]byte(sink.String()))
	if err != nil {
		t.Fatal(err)
	}
	want := plugintest.Message{
		Text: "let me\nsee\n\ndône", Reasoning: "one\n\ntwo", Finish: "tool_calls",
		Citations: []string{ // of what is one text to the client
			`{"url":"https://x","title":"t","start_index":0,"end_index":3}`,
			`{"url":"https://y","title":"https://y","start_index":13,"end_index":16}`,
			`{"url":"file:file-1","title":"a.pdf","start_index":16,"end_index":16}`,
		},
		Calls: []plugintest.Call{{ID: "c1", Name: "f", Arguments: `{"a":1}`}, {ID: "c2", Name: "g", Arguments: `{}`}},
	}
	if !reflect.DeepEqual(*m, want) {
		t.Errorf("got %+v\nwant %+v", *m, want)
	}
	if whole, err := plugintest.ReadChat(a.Response()); err != nil || !slices.Equal(whole.Citations, want.Citations) {
		t.Errorf("the object has the annotations %q, error %v", whole.Citations, err)
	}
	object := gjson.ParseBytes(a.Response())
	for path, want := range map[string]string{
		"choices.0.message.content":                        "let me\nsee\n\ndône",
		"choices.0.message.reasoning_content":              "one\n\ntwo",
		"choices.0.message.annotations.0.url_citation.url": "https://x",
		"choices.0.message.images.0.image_url.url":         "data:image/png;base64,AA==",
		"choices.0.message.tool_calls.1.function.name":     "g",
		"usage": "",
	} {
		if got := object.Get(path).Str; got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}

// Clients of Chat Completions get the images of a provider's tool, in a stream too.
func TestChatImagesOfATool(t *testing.T) {
	p := &translate.Request{Model: "m", Stream: true}
	var out strings.Builder
	a := translate.NewAssembler(p, &out, translate.Options{Encoder: chat.Encoder(p)})
	a.Item([]byte(`{"type":"image_generation_call","id":"ig_1","status":"completed","output_format":"png","result":"AA=="}`))
	a.Item([]byte(`{"type":"image_generation_call","id":"ig_2","status":"failed","result":null}`))
	a.Finish(translate.ReasonStop)
	out.Write(a.End())
	if n := strings.Count(out.String(), `"images":[`); n != 1 || !strings.Contains(out.String(), `"url":"data:image/png;base64,AA=="`) {
		t.Errorf("%d images in %s", n, out.String())
	}
}

// Providers stop where the client asked them to, but for OpenAI's Responses, which
// has nothing of that sort.
func TestStop(t *testing.T) {
	for path, p := range map[string]translate.Provider{
		"stop_sequences":                 anthropic.Provider{},
		"inferenceConfig.stopSequences":  new(bedrock.Provider),
		"stop":                           chatvendor.For("groq"),
		"generationConfig.stopSequences": gemini.Provider{},
		"stop_sequences|@this":           cohere.Provider{},
	} {
		for asked, want := range map[string]string{`"a"`: `["a"]`, `["a","b"]`: `["a","b"]`} {
			plugintest.Maps(t, p, translate.Target{Model: "claude-sonnet-4-5"}, `"stop":`+asked, path, want)
		}
	}
	request, err := chat.Parse([]byte(`{"model":"m","stop":"a","seed":1,"logit_bias":{"1":1},"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	req, err := openai.Provider{}.Prepare(t.Context(), request, translate.Target{BaseURL: "https://example.com"})
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(req.Body)
	sent := gjson.ParseBytes(body)
	if got := sent.Get("[stop,seed,logit_bias,messages,stream_options.include_usage]").Raw; got != "[]" || len(request.Warnings) != 2 {
		t.Errorf("sent %s, with the warnings %q", body, request.Warnings)
	}
	if sent.Get("include.0").Str != "reasoning.encrypted_content" || sent.Get("store").Raw != "false" {
		t.Errorf("the reasoning is neither stored nor encrypted: %s", body)
	}
}

// BenchmarkChat reads a stream of 200 events of text for a client of Chat Completions.
func BenchmarkChat(b *testing.B) {
	plugintest.BenchmarkEncode(b, plugins.Chat, anthropic.Provider{}, stream)
}

var stream = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":\"m\",\"usage\":{\"input_tokens\":9}}}\n\n" +
	strings.Repeat("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" and then some\"}   }\n\n", 197) +
	"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":20}}\n\n" +
	"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
