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
	"github.com/weirhq/weir/plugins/inbound"
	"github.com/weirhq/weir/plugins/openai"
	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

var messages, _ = inbound.Of(plugins.Messages)

func TestMessagesRequest(t *testing.T) {
	tool := `"tools":[{"name":"f","description":"d","input_schema":{"type":"object"}}]`
	for _, c := range []asks{
		{`"temperature":0.5`, "temperature", `0.5`, ""},
		{`"temperature":1`, "max_output_tokens", `1000`, ""},
		{`"temperature":1`, "store", `false`, ""},
		{`"stop_sequences":["a"]`, "stop", `["a"]`, ""},
		{`"system":"s"`, "instructions", `"s"`, ""},
		{`"system":[{"type":"text","text":"x-anthropic-billing-header: cch=1"},{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}]`, "input.0",
			`{"role":"system","content":[{"type":"input_text","text":"s","prompt_cache_breakpoint":{"mode":"explicit"}}]}`, ""},
		{`"cache_control":{"type":"ephemeral","ttl":"1h"}`, "input.0",
			`{"role":"user","content":[{"type":"input_text","text":"hi","prompt_cache_breakpoint":{"mode":"explicit","ttl":"1h"}}]}`, ""},
		{`"metadata":{"user_id":"u"}`, "user", `"u"`, ""},
		{`"service_tier":"standard_only"`, "service_tier", `"default"`, ""},
		{`"top_k":5`, "top_k", `5`, "top_k"},
		{`"context_management":{"edits":[]}`, "context_management", ``, "context_management"},
		{`"thinking":{"type":"enabled","budget_tokens":999}`, "reasoning", `{"effort":"max"}`, "thinking"},
		{`"thinking":{"type":"enabled","budget_tokens":300}`, "reasoning", `{"effort":"medium"}`, "thinking"},
		{`"thinking":{"type":"enabled","budget_tokens":1}`, "reasoning", `{"effort":"minimal"}`, "thinking"},
		{`"thinking":{"type":"adaptive"},"output_config":{"effort":"low"}`, "reasoning", `{"effort":"low"}`, "output_config.effort"},
		{`"thinking":{"type":"adaptive"}`, "reasoning", `{"effort":"high"}`, "thinking"},
		{`"thinking":{"type":"disabled"}`, "reasoning", `{"effort":"none"}`, "thinking"},
		{`"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}}`, "text", `{"format":{"type":"json_schema","name":"answer","schema":{"type":"object"}}}`, ""},
		{tool, "tools", `[{"type":"function","name":"f","description":"d","parameters":{"type":"object"}}]`, ""},
		{tool + `,"tool_choice":{"type":"any"}`, "tool_choice", `"required"`, ""},
		{tool + `,"tool_choice":{"type":"tool","name":"f"}`, "tool_choice", `{"type":"function","name":"f"}`, ""},
		{tool + `,"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`, "parallel_tool_calls", `false`, "tool_choice.disable_parallel_tool_use"},
		{`"tools":[{"name":"f","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral","ttl":"1h"}}]`, "tools",
			`[{"type":"function","name":"f","parameters":{"type":"object"},"prompt_cache_breakpoint":{"mode":"explicit","ttl":"1h"}}]`, ""},
		{`"tools":[{"cache_control":{"type":"ephemeral"},"type":"mcp","server_label":"s"}]`, "tools",
			`[{"type":"mcp","server_label":"s","prompt_cache_breakpoint":{"mode":"explicit"}}]`, "tools[0]"},
		{`"tools":[{"type":"web_search_20250305","name":"web_search","max_uses":3,"allowed_domains":["a.b"]}]`, "tools",
			`[{"type":"web_search","filters":{"allowed_domains":["a.b"]}}]`, ""},
		{`"tools":[{"type":"web_search_20250305","name":"web_search"}],"tool_choice":{"type":"tool","name":"web_search"}`, "tool_choice", `{"type":"web_search"}`, ""},
		{`"tools":[{"name":"web_search","input_schema":{}}],"tool_choice":{"type":"tool","name":"web_search"}`, "tool_choice", `{"type":"function","name":"web_search"}`, ""},
		{`"tools":[{"type":"code_execution_20250825","name":"code_execution"}]`, "tools", `[{"type":"code_interpreter","container":{"type":"auto"}}]`, "tools[0]"},
	} {
		c.check(t, plugins.Messages, `"model":"m","max_tokens":1000,"messages":[{"role":"user","content":"hi"}]`)
	}
}

// A model reads the summary in place of what was compacted.
func TestMessagesAreReadFromTheLastCompaction(t *testing.T) {
	for _, c := range []asks{
		{`"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"compaction","content":"old"}]},{"role":"user","content":"a"},` +
			`{"role":"assistant","content":[{"type":"text","text":"b"},{"type":"compaction","content":"sum"},{"type":"text","text":"c"}]},{"role":"user","content":"d"}]`, "input",
			`[{"role":"user","content":[{"type":"input_text","text":"sum"}]},{"role":"assistant","content":[{"type":"output_text","text":"c","annotations":[]}]},{"role":"user","content":"d"}]`, ""},
		{`"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"compaction","content":null},{"type":"text","text":"c"}]}]`, "input.1.content.0.text", `"c"`, ""},
	} {
		c.check(t, plugins.Messages, `"model":"m","max_tokens":10`)
	}
}

func TestMessagesContent(t *testing.T) {
	result := `{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","cache_control":{"type":"ephemeral"},"content":`
	for _, c := range []asks{
		{result + `"r"}]}`, "input.1.output", `[{"type":"input_text","text":"r","prompt_cache_breakpoint":{"mode":"explicit"}}]`, ""},
		{result + `[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}`, "input.1.output",
			`[{"type":"input_text","text":"a"},{"type":"input_text","text":"b","prompt_cache_breakpoint":{"mode":"explicit"}}]`, ""},
		{result + `[{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"1h"}}]}]}`, "input.1.output",
			`[{"type":"input_text","text":"a","prompt_cache_breakpoint":{"mode":"explicit","ttl":"1h"}}]`, ""},
		{`{"role":"user","content":[{"type":"text","text":"t"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}},` +
			`{"type":"image","source":{"type":"url","url":"https://x/y.png"}}]}`, "input",
			`[{"role":"user","content":[{"type":"input_text","text":"t"},{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,AA=="},` +
				`{"type":"input_image","detail":"auto","image_url":"https://x/y.png"}]}]`, ""},
		{`{"role":"user","content":[{"type":"document","title":"a.pdf","source":{"type":"base64","media_type":"application/pdf","data":"AA=="}},` +
			`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"hello"}}]}`, "input.0.content",
			`[{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,AA=="},{"type":"input_text","text":"hello"}]`, ""},
		{`{"role":"assistant","content":[{"type":"thinking","thinking":"h","signature":"s"},{"type":"redacted_thinking","data":"d"},{"type":"text","text":"a"},` +
			`{"type":"tool_use","id":"1","name":"f","input":{"a": 1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","is_error":true,` +
			`"content":[{"type":"text","text":"o"}]},{"type":"text","text":"?"}]}`, "input",
			`[{"type":"reasoning","summary":[{"type":"summary_text","text":"h"}],"encrypted_content":"s"},{"type":"reasoning","summary":[],"encrypted_content":"d"},` +
				`{"role":"assistant","content":[{"type":"output_text","text":"a","annotations":[]}]},{"type":"function_call","call_id":"1","name":"f","arguments":"{\"a\": 1}"},` +
				`{"type":"function_call_output","call_id":"1","status":"incomplete","output":[{"type":"input_text","text":"o"}]},` +
				`{"role":"user","content":[{"type":"input_text","text":"?"}]}]`, ""},
		{`{"role":"assistant","content":[{"type":"server_tool_use","id":"1","name":"web_search","input":{}},{"type":"text","text":"a"}]}`, "input",
			`[{"role":"assistant","content":[{"type":"output_text","text":"a","annotations":[]}]}]`, "messages[0].content[0]"},
	} {
		c.fields = `"messages":[` + c.fields + `]`
		c.check(t, plugins.Messages, `"model":"m","max_tokens":1000`)
	}
}

func TestMessagesErrors(t *testing.T) {
	user := `"messages":[{"role":"user","content":"hi"}]`
	for body, param := range map[string]string{
		`{`:                             "",
		`{"model":"m",` + user + `}`:    "max_tokens",
		`{"max_tokens":1,` + user + `}`: "model",
		`{"model":"m","max_tokens":1}`:  "messages",
		`{"model":"m","max_tokens":"x",` + user + `}`:                                                                                               "max_tokens",
		`{"model":"m","max_tokens":1,"tools":{},` + user + `}`:                                                                                      "tools",
		`{"model":"m","max_tokens":1,"tool_choice":{"type":"some"},` + user + `}`:                                                                   "tool_choice",
		`{"model":"m","max_tokens":1,"output_config":{"format":{}},` + user + `}`:                                                                   "output_config.format.schema",
		`{"model":"m","max_tokens":1,"messages":[{"role":"tool","content":"hi"}]}`:                                                                  "messages[0].role",
		`{"model":"m","max_tokens":1,"messages":[{"role":"user"}]}`:                                                                                 "messages[0].content",
		`{"model":"m","max_tokens":1,"messages":["hi"]}`:                                                                                            "messages[0]",
		`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"video"}]}]}`:                                                    "messages[0].content[0].type",
		`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1"},{"type":"text"}]}]}`:            "messages[0].content[0]",
		`{"model":"m","max_tokens":1,"messages":[{"role":"assistant","content":[{"type":"thinking"},{"type":"text","text":"a"},{"type":"text"}]}]}`: "messages[0].content[2]",
		`{"model":"m","max_tokens":1,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":"x"}]}]}`:            "messages[0].content[0].input",
		`{"model":"m","max_tokens":1,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{}}]}]}`:             "messages[0].content[0]",
	} {
		_, err := messages.Parse([]byte(body))
		if e, ok := errors.AsType[*plugins.Error](err); !ok || e.Status != 400 || e.Param != param {
			t.Errorf("%s: got %+v, want a 400 that names %q", body, err, param)
		}
	}
}

// Blocks come one after the other, also where the provider's calls do not.
func TestMessagesBlocks(t *testing.T) {
	p := &translate.Request{Model: "m", Stream: true}
	var sink strings.Builder
	a := translate.NewAssembler(p, &sink, translate.Options{Encoder: messages.Encoder(p)})
	a.Usage(plugins.Usage{Input: plugins.Known(10), CacheRead: plugins.Known(4), CacheWrite: plugins.Known(3), Output: plugins.Known(5)})
	a.Summary(0, 0, "one")
	a.Summary(0, 1, "two")
	a.Seal(0, "signature")
	a.Text(1, "let me\nsee")
	a.Call(2, "c1", "f")
	a.Args(2, `{"a":`)
	a.Call(3, "c2", "g")
	a.Args(3, `{"b":2}`)
	a.Close(3)
	a.Call(4, "c3", "h")
	a.Args(4, `{`)
	a.Args(2, `1}`)
	a.Args(4, `}`)
	a.Finish(translate.ReasonStop)
	sink.Write(a.End())
	m, err := plugintest.CheckMessages([]byte(sink.String()))
	if err != nil {
		t.Fatal(err, sink.String())
	}
	want := plugintest.Message{
		Text: "let me\nsee", Reasoning: "one\n\ntwo", Finish: "tool_use", Input: 10, Output: 5,
		Calls: []plugintest.Call{{ID: "c1", Name: "f", Arguments: `{"a":1}`}, {ID: "c2", Name: "g", Arguments: `{"b":2}`}, {ID: "c3", Name: "h", Arguments: `{}`}},
	}
	if !reflect.DeepEqual(*m, want) {
		t.Errorf("got %+v\nwant %+v", *m, want)
	}
	for path, want := range map[string]string{
		"content.0":                         `{"type":"thinking","thinking":"one\n\ntwo","signature":"signature"}`,
		"content.1":                         `{"type":"text","text":"let me\nsee"}`,
		"content.2.input":                   `{"a":1}`,
		"usage.input_tokens":                "3",
		"usage.cache_read_input_tokens":     "4",
		"usage.cache_creation_input_tokens": "3",
	} {
		if got := gjson.GetBytes(a.Response(), path).Raw; got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
}

// Claude at Bedrock cites documents, and texts as documents.
func TestCitedDocuments(t *testing.T) {
	p, err := messages.Parse([]byte(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"Who?"},` +
		`{"type":"document","title":"a.txt","citations":{"enabled":true},"source":{"type":"text","data":"Ann"}},` +
		`{"type":"document","title":"b.pdf","citations":{"enabled":true},"source":{"type":"base64","media_type":"application/pdf","data":"JVBERg=="}}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	p.Strict = true
	req, err := new(bedrock.Provider).Prepare(t.Context(), p, translate.Target{Model: "anthropic.claude-sonnet-4-20250514-v1:0", BaseURL: "https://x", Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(req.Body)
	want := `[{"format":"txt","name":"a","source":{"bytes":"QW5u"},"citations":{"enabled":true}},` +
		`{"format":"pdf","name":"b","source":{"bytes":"JVBERg=="},"citations":{"enabled":true}}]`
	if got := gjson.GetBytes(body, "messages.0.content.#.document").Raw; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// Citations are about the block that they are in: a text is cut where they begin and end.
func TestMessagesCitations(t *testing.T) {
	p := &translate.Request{Model: "m", Stream: true}
	var sink strings.Builder
	a := translate.NewAssembler(p, &sink, translate.Options{Encoder: messages.Encoder(p)})
	a.Text(1, "Así: ")
	a.Text(1, "the sky is blue.")
	a.Cite(1, translate.Citation{Start: 5, End: 21, URL: "https://x", Title: "t"})
	a.Cite(1, translate.Citation{Start: 5, End: 21, Location: []byte(`{"type":"char_location","cited_text":"blue","document_index":0,"document_title":null,` +
		`"file_id":null,"start_char_index":3,"end_char_index":7}`)})
	a.Text(1, " And grass")
	a.Annotation(1, []byte(`{"type":"file_citation","file_id":"file-1","filename":"a.pdf","index":31}`))
	a.Text(1, " is green.")
	a.Finish(translate.ReasonStop)
	sink.Write(a.End())
	m, err := plugintest.CheckMessages([]byte(sink.String()))
	if err != nil {
		t.Fatal(err, sink.String())
	}
	web := `{"type":"web_search_result_location","cited_text":"","encrypted_index":"","url":"https://x","title":"t"}`
	file := `{"type":"search_result_location","cited_text":"","search_result_index":0,"start_block_index":0,"end_block_index":0,"source":"file-1","title":"a.pdf"}`
	if got := m.Citations; len(got) != 3 || got[0] != web || got[2] != file || gjson.Get(got[1], "end_char_index").Int() != 7 {
		t.Errorf("the stream has the citations %q", got)
	}
	for _, piece := range []string{`"text":" And grass"}}`, `"text":" is green."}}`} { // which are in blocks of their own
		before, _, ok := strings.Cut(sink.String(), piece)
		if blocks := strings.Split(before, "content_block_start"); !ok || strings.Contains(blocks[len(blocks)-1], "citations_delta") {
			t.Errorf("%s is in a block that has citations:\n%s", piece, sink.String())
		}
	}
	var got []string
	for _, block := range gjson.GetBytes(a.Response(), "content").Array() {
		got = append(got, block.Get("text").Str+"|"+strings.Join(strings.Fields(block.Get("citations.#.type").Raw), ""))
	}
	want := []string{"Así: |", `the sky is blue.|["web_search_result_location","char_location"]`, ` And grass|["search_result_location"]`, " is green.|"}
	if !slices.Equal(got, want) {
		t.Errorf("the blocks are %q, want %q", got, want)
	}
}

// A client that has asked for a tool of the provider sees its calls and results as Anthropic's, and others do not.
func TestMessagesShowHostedTools(t *testing.T) {
	const tools = `,"tools":[{"type":"web_search_20250305","name":"web_search"},{"type":"code_execution_20250825","name":"code_execution"}]`
	for _, c := range []struct {
		name, tools string
		run         func(*translate.Assembler)
		want        []string
		searches    int64
	}{
		{"a search", tools, func(a *translate.Assembler) {
			a.WebSearch(translate.HostedCall{Queries: []string{"q \"1\""}, Sources: []string{"https://x"}})
		}, []string{`{"query":"q \"1\""}`, `[{"type":"web_search_result","encrypted_content":"","page_age":null,"url":"https://x","title":"https://x"}]`}, 1},
		{"a search without sources", tools, func(a *translate.Assembler) {
			a.Item([]byte(`{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","queries":["q"],"sources":[{"type":"api","name":"oai-weather"}]}}`))
		}, []string{`{"query":"q"}`, `[]`}, 1},
		{"a search that failed", tools, func(a *translate.Assembler) { a.WebSearch(translate.HostedCall{Failed: true}) },
			[]string{`{"query":""}`, `{"type":"web_search_tool_result_error","error_code":"unavailable"}`}, 0},
		{"code", tools, func(a *translate.Assembler) { a.CodeInterpreter(translate.HostedCall{Code: "1+1", Logs: "2\n"}) },
			[]string{`{"code":"1+1"}`, `{"type":"code_execution_result","stdout":"2\n","stderr":"","return_code":0,"content":[]}`}, 0},
		{"not asked for", "", func(a *translate.Assembler) { a.WebSearch(translate.HostedCall{Queries: []string{"q"}}) }, nil, 1},
		{"a page that was opened", tools, func(a *translate.Assembler) {
			a.Item([]byte(`{"type":"web_search_call","status":"completed","action":{"type":"open_page","url":"https://x"}}`))
		}, nil, 0},
		{"a search of which the host tells no sources", tools, func(a *translate.Assembler) {
			a.Item([]byte(`{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}}`))
		}, nil, 0},
		{"code of which the host tells no outputs", tools, func(a *translate.Assembler) {
			a.Item([]byte(`{"type":"code_interpreter_call","id":"ci_1","status":"completed","code":"1+1","outputs":null}`))
		}, nil, 0},
		{"code that has put out nothing", tools, func(a *translate.Assembler) {
			a.Item([]byte(`{"type":"code_interpreter_call","id":"ci_1","status":"completed","code":"a=1","outputs":[]}`))
		}, []string{`{"code":"a=1"}`, `{"type":"code_execution_result","stdout":"","stderr":"","return_code":0,"content":[]}`}, 0},
	} {
		for _, stream := range []bool{false, true} {
			p, err := messages.Parse([]byte(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]` + c.tools + `}`))
			if err != nil {
				t.Fatal(err)
			}
			p.Stream = stream
			var out strings.Builder
			a := translate.NewAssembler(p, &out, translate.Options{Encoder: messages.Encoder(p)})
			a.Text(0, "I look.")
			c.run(a)
			a.Text(0, "It is.")
			a.Finish(translate.ReasonStop)
			out.Write(a.End())
			read := plugintest.ReadMessages
			if stream {
				read = plugintest.CheckMessages
			}
			m, err := read([]byte(out.String()))
			if err != nil || m.Text != "I look.It is." || !slices.Equal(m.Hosted, c.want) || !strings.Contains(out.String(), `"web_search_requests":1`) == (c.searches == 1) {
				t.Errorf("%s, streamed %t: %v, %+v\n%s", c.name, stream, err, m, out.String())
			}
		}
	}
}

// Messages have no place for an image that the model generated: a text is in its place, whether the model
// or a tool of the provider has made it.
func TestMessagesNameImages(t *testing.T) {
	for name, generate := range map[string]func(*translate.Assembler){
		"a model": func(a *translate.Assembler) { a.Image("image/png", "AA==") },
		"a tool": func(a *translate.Assembler) {
			a.Item([]byte(`{"type":"image_generation_call","id":"ig_1","status":"completed","output_format":"png","result":"AA=="}`))
		},
	} {
		for _, stream := range []bool{false, true} {
			p := &translate.Request{Model: "m", Stream: stream}
			var out strings.Builder
			a := translate.NewAssembler(p, &out, translate.Options{Encoder: messages.Encoder(p)})
			a.Text(0, "Look:")
			generate(a)
			a.Text(0, "There.")
			a.Finish(translate.ReasonStop)
			out.Write(a.End())
			read := plugintest.ReadMessages
			if stream {
				read = plugintest.CheckMessages
			}
			m, err := read([]byte(out.String()))
			if err != nil || !strings.HasPrefix(m.Text, "Look:[The model generated image/png, ") || !strings.HasSuffix(m.Text, "]There.") {
				t.Errorf("%s, streamed %t: %v, %+v\n%s", name, stream, err, m, out.String())
			}
		}
	}
}

// OpenAI says what a search or code has come to only if it is asked to, and others may refuse to be asked.
func TestResultsOfHostedToolsAreAskedFor(t *testing.T) {
	const search, code = `{"type":"web_search_20250305","name":"web_search"}`, `{"type":"code_execution_20250825","name":"code_execution"}`
	for _, c := range []struct {
		url, tools       string
		sources, outputs int
	}{
		{"https://api.openai.com/v1", search, 1, 0},
		{"https://api.openai.com/v1", code, 0, 1},
		{"https://api.openai.com/v1", search + "," + code, 1, 1},
		{"https://example.com/v1", search + "," + code, 0, 0},
	} {
		p, err := messages.Parse([]byte(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"tools":[` + c.tools + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		req, err := openai.Provider{}.Prepare(t.Context(), p, translate.Target{Model: "m", BaseURL: c.url})
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(req.Body)
		if strings.Count(string(body), "web_search_call.action.sources") != c.sources || strings.Count(string(body), "code_interpreter_call.outputs") != c.outputs {
			t.Errorf("%s got %s", c.url, body)
		}
	}
}

// BenchmarkMessages reads a stream of 200 events of text for a client of Messages.
func BenchmarkMessages(b *testing.B) {
	plugintest.BenchmarkEncode(b, plugins.Messages, anthropic.Provider{}, stream)
}

// Clients are told why an answer ended in the words of their dialect: by a stop sequence, or by a
// refusal, for which Chat Completions have a field and no reason.
func TestStopReason(t *testing.T) {
	sequence := func(a *translate.Assembler) {
		a.Text(0, "hello")
		a.Finish(translate.ReasonStop)
		a.StoppedAt("b")
	}
	refusal := func(a *translate.Assembler) {
		a.Refusal(0, "I can't help with that.")
		a.Finish(translate.ReasonStop)
	}
	for _, c := range []struct {
		dialect plugins.Dialect
		answer  func(*translate.Assembler)
		want    string
	}{
		{plugins.Messages, sequence, `"stop_reason":"stop_sequence","stop_sequence":"b"`},
		{plugins.Chat, sequence, `"finish_reason":"stop"`},
		{plugins.Messages, refusal, `"stop_reason":"refusal"`},
		{plugins.Chat, refusal, `"finish_reason":"stop"`},
	} {
		api, _ := inbound.Of(c.dialect)
		p, err := api.Parse([]byte(`{"model":"m","max_tokens":9,"stop":["a","b"],"stop_sequences":["a","b"],"messages":[{"role":"user","content":"hi"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		for _, stream := range []bool{false, true} {
			p.Stream = stream
			var out strings.Builder
			a := translate.NewAssembler(p, &out, translate.Options{Encoder: api.Encoder(p)})
			a.Start("m", "r")
			c.answer(a)
			out.Write(a.End())
			if got := out.String(); !strings.Contains(got, c.want) {
				t.Errorf("%s, streamed %t: want %s: %s", c.dialect, stream, c.want, got)
			}
		}
	}
}

// Clients that know an API's reasons alone get one of these: the provider's own stands beside it, and never
// as it is in the stream.
func TestNativeReason(t *testing.T) {
	for _, c := range []struct{ own, stop, nativeStop, nativeFinish string }{
		{"NEW", "max_tokens", "NEW", "NEW"},
		{`a "b\c"`, "max_tokens", `a "b\c"`, `a "b\c"`},
		{"x\"}}\n\nevent: error\ndata: {}", "max_tokens", "other", "other"},
		{"pause_turn", "pause_turn", "", "pause_turn"},
	} {
		for dialect, read := range map[plugins.Dialect]func(answer gjson.Result) (reason, native string){
			plugins.Messages: func(answer gjson.Result) (string, string) {
				return answer.Get("stop_reason").Str, answer.Get("native_stop_reason").Str
			},
			plugins.Chat: func(answer gjson.Result) (string, string) {
				return answer.Get("choices.0.finish_reason").Str, answer.Get("choices.0.native_finish_reason").Str
			},
		} {
			api, _ := inbound.Of(dialect)
			want, wantNative, check := c.stop, c.nativeStop, plugintest.CheckMessages
			if dialect == plugins.Chat {
				want, wantNative, check = "length", c.nativeFinish, plugintest.CheckChat
			}
			p, err := api.Parse([]byte(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`))
			if err != nil {
				t.Fatal(err)
			}
			p.Stream = true
			var out strings.Builder
			a := translate.NewAssembler(p, &out, translate.Options{Encoder: api.Encoder(p)})
			a.Start("m", "r")
			a.Text(0, "half")
			a.Finish(translate.Reasons{}.Of(c.own))
			out.Write(a.End())
			object := gjson.ParseBytes(a.Response())
			if reason, native := read(object); reason != want || native != wantNative {
				t.Errorf("%s: the object of %s has %q, %q, want %q, %q", c.own, dialect, reason, native, want, wantNative)
			}
			for _, stream := range []string{out.String(), string(api.Stream(object))} {
				var reason, native string
				for line := range strings.Lines(stream) {
					data, _ := strings.CutPrefix(line, "data: ")
					event := gjson.Parse(data)
					if delta := event.Get("delta"); delta.Exists() {
						event = delta
					}
					r, n := read(event)
					reason, native = reason+r, native+n
				}
				if reason != want || native != wantNative {
					t.Errorf("%s: the stream of %s has %q, %q, want %q, %q:\n%s", c.own, dialect, reason, native, want, wantNative, stream)
				}
			}
			if _, err := check([]byte(out.String())); err != nil {
				t.Errorf("%s: %s: %v\n%s", c.own, dialect, err, out.String())
			}
		}
	}
}

// Arguments that were cut off are no call without arguments.
func TestCutArguments(t *testing.T) {
	for _, stream := range []bool{false, true} {
		p, err := messages.Parse([]byte(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"tools":[{"name":"f","input_schema":{"type":"object"}}]}`))
		if err != nil {
			t.Fatal(err)
		}
		p.Stream = stream
		var out strings.Builder
		a := translate.NewAssembler(p, &out, translate.Options{Encoder: messages.Encoder(p)})
		a.Start("m", "r")
		a.Call(0, "c", "f")
		a.Args(0, `{"path":"/`)
		a.Finish(translate.ReasonStop)
		out.Write(a.End())
		want := `"input":{"INVALID_JSON":"{\"path\":\"/"}`
		if stream {
			want = `"partial_json":"{\"path\":\"/"`
		}
		if got := out.String(); !strings.Contains(got, want) || !strings.Contains(got, `"stop_reason":"max_tokens"`) {
			t.Errorf("streamed %t: %s", stream, got)
		}
	}
}

// A client sees the model's reasoning only if it has asked for it: others read the first block as
// the answer.
func TestReasoningIsShownToThoseWhoAsk(t *testing.T) {
	for thinking, shown := range map[string]bool{``: false, `,"thinking":{"type":"disabled"}`: false, `,"thinking":{"type":"adaptive"}`: true} {
		api, _ := inbound.Of(plugins.Messages)
		p, err := api.Parse([]byte(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]` + thinking + `}`))
		if err != nil {
			t.Fatal(err)
		}
		for _, stream := range []bool{false, true} {
			p.Stream = stream
			var out strings.Builder
			a := translate.NewAssembler(p, &out, translate.Options{Encoder: api.Encoder(p)})
			a.Start("m", "r")
			a.Summary(0, 0, "hm")
			a.Text(1, "hello")
			a.Finish(translate.ReasonStop)
			out.Write(a.End())
			if got := out.String(); strings.Contains(got, "thinking") != shown || !strings.Contains(got, "hello") {
				t.Errorf("with %q, streamed %t: %s", thinking, stream, got)
			}
		}
	}
}
