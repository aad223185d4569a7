package openai

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

var target = translate.Target{Model: "gpt-5", BaseURL: "https://example.com/v1", Key: "secret"}

func read(t *testing.T, req *http.Request) string {
	t.Helper()
	b, err := io.ReadAll(req.Body)
	if err != nil {
		t.Fatal(err)
	}
	if req.ContentLength != int64(len(b)) {
		t.Errorf("the length is %d, not %d", req.ContentLength, len(b))
	}
	return string(b)
}

func TestBytesPass(t *testing.T) {
	for body, want := range map[string]string{
		"{ \"input\" : \"hi\",\n\t\"model\":\"openai/gpt-5\" , \"seed\": 12345678901234567890, \"x\":1.0e+2 }": "{ \"input\" : \"hi\",\n\t\"model\":\"gpt-5\" , \"seed\": 12345678901234567890, \"x\":1.0e+2 }",
		`{"metadata":{"model":"m"},"model":"m","input":[{"model":"m"}]}`:                                       `{"metadata":{"model":"m"},"model":"gpt-5","input":[{"model":"m"}]}`,
		`{"model":"cheap","input":"hi","model":"dear"}`:                                                        `{"model":"gpt-5","input":"hi","model":"gpt-5"}`,
		`{"mod\u0065l":"dear","input":"\ud83d\ude00 é"}`:                                                       `{"mod\u0065l":"gpt-5","input":"\ud83d\ude00 é"}`,
		`{"model":null,"input":[{"type":"reasoning","id":"rs_1","encrypted_content":"gAAA=="}]}`:               `{"model":"gpt-5","input":[{"type":"reasoning","id":"rs_1","encrypted_content":"gAAA=="}]}`,
	} {
		sent := strings.Clone(body)
		req, err := Provider{}.PrepareNative(context.Background(), plugins.Responses, plugintest.Object(t, body), target)
		if err != nil {
			t.Fatal(err)
		}
		if got := read(t, req); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if body != sent {
			t.Error("the client's body has changed")
		}
	}
}

func TestPrepareNative(t *testing.T) {
	req, err := Provider{}.PrepareNative(context.Background(), plugins.Responses, plugintest.Object(t, `{"model":"m"}`), target)
	if err != nil {
		t.Fatal(err)
	}
	if got := req.Method + " " + req.URL.String(); got != "POST https://example.com/v1/responses" {
		t.Errorf("got %s", got)
	}
	if req.Header.Get("Authorization") != "Bearer secret" || req.Header.Get("Content-Type") != "application/json" {
		t.Errorf("the header is %v", req.Header)
	}
	again, err := req.GetBody()
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := io.ReadAll(again); string(b) != `{"model":"gpt-5"}` {
		t.Errorf("a second sending has the body %s", b)
	}
}

// Streams that break clients do not pass unchanged.
func TestIrregularStreams(t *testing.T) {
	for baseURL, native := range map[string]bool{
		"https://openrouter.ai/api/v1": false, "https://api.x.ai:443/v1": false, "https://api.githubcopilot.com": false,
		"https://eu-west-1.api.x.ai/v1": false, "https://api.business.githubcopilot.com": false,
		"https://api.deepseek.com": true, "http://localhost:1234/v1": true, "https://my-openrouter.ai.example.com/v1": true, "https://my-openrouter.ai/v1": true,
	} {
		target := translate.Target{Model: "m", BaseURL: baseURL}
		if _, err := (Provider{}).PrepareNative(t.Context(), plugins.Responses, plugintest.Object(t, `{}`), target); native != (err == nil) || !native && !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: got error %v", baseURL, err)
		}
		if req, err := (Provider{}).PrepareNative(t.Context(), plugins.Chat, plugintest.Object(t, `{}`), target); err != nil || !strings.HasSuffix(req.URL.Path, "/chat/completions") {
			t.Errorf("%s: got %v, %v for Chat Completions", baseURL, req, err)
		}
	}
}

// The models since GPT-5.4 call no functions in Chat Completions while they reason.
func TestReasoningWithTools(t *testing.T) {
	const tools, medium, none = `"tools":[{"type":"function","function":{"name":"f"}}]`, `,"reasoning_effort":"medium"`, `,"reasoning_effort":"none"`
	for _, test := range []struct {
		model, baseURL, fields string
		native                 bool
	}{
		{"gpt-5.4", "https://api.openai.com/v1", tools + medium, false},
		{"gpt-5.4-mini-2026-03-17", "https://eu.api.openai.com/v1", tools + medium, false},
		{"gpt-5.4", "https://api.openai.com/v1", tools, true}, // which does not reason unless told to
		{"gpt-5.4", "https://api.openai.com/v1", tools + none, true},
		{"gpt-5.4", "https://api.openai.com/v1", `"tools":[]` + medium, true},
		{"gpt-5.5", "https://api.openai.com/v1", tools, false},
		{"gpt-5.6-terra", "https://api.openai.com/v1", tools + `,"reasoning_effort":null`, false},
		{"gpt-6-astra", "https://api.openai.com/v1", tools, false},
		{"gpt-10", "https://api.openai.com/v1", tools, false},
		{"gpt-5.6-terra", "https://api.openai.com/v1", tools + none, true},
		{"gpt-5.2", "https://api.openai.com/v1", tools + medium, true},
		{"gpt-5-2025-08-07", "https://api.openai.com/v1", tools + medium, true},
		{"gpt-4o", "https://api.openai.com/v1", tools, true},
		{"gpt-4o", "https://api.openai.com/v1", `"stop":["a"]`, true},
		{"gpt-5.2", "https://api.openai.com/v1", `"stop":null`, true},
		{"gpt-35-turbo", "https://api.openai.com/v1", tools, true},
		{"o3", "https://api.openai.com/v1", tools + medium, true},
		{"gpt-5.6", "http://localhost:1234/v1", tools, true}, // which may have no Responses
	} {
		target := translate.Target{Model: test.model, BaseURL: test.baseURL}
		_, err := Provider{}.PrepareNative(t.Context(), plugins.Chat, plugintest.Object(t, `{"model":"m",`+test.fields+`}`), target)
		if test.native != (err == nil) || err != nil && !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s, %s: %v", test.model, test.fields, err)
		}
	}
}

// A model that reasons refuses stop sequences before GPT-5.5. In Responses, the gateway has them.
func TestStopSequencesAtModelsThatReason(t *testing.T) {
	reasons := &plugins.Capabilities{Input: []string{"text"}, Reasoning: true}
	for model, native := range map[string]bool{"o3": false, "gpt-5.4": false, "gpt-5.5": true} {
		target := translate.Target{Model: model, BaseURL: "https://api.openai.com/v1", Capabilities: reasons}
		if _, err := (Provider{}).PrepareNative(t.Context(), plugins.Chat, plugintest.Object(t, `{"model":"m","stop":"a"}`), target); native != (err == nil) {
			t.Errorf("%s: %v", model, err)
		}
	}
}

// What is counted is what would be sent, without what is no part of the input.
func TestPrepareCount(t *testing.T) {
	p, err := translate.ParseRequest([]byte(`{"model":"m","instructions":"Be brief.","input":"hi","tools":[{"type":"function","name":"f","parameters":{}}],"stream":true,"store":false,"max_output_tokens":5,"include":["reasoning.encrypted_content"]}`))
	if err != nil {
		t.Fatal(err)
	}
	req, err := Provider{}.PrepareCount(t.Context(), p, translate.Target{Model: "gpt-5", BaseURL: "https://api.openai.com/v1", Key: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"input":"hi","instructions":"Be brief.","model":"gpt-5","tools":[{"type":"function","name":"f","parameters":{}}]}`
	if got := read(t, req); got != want || req.URL.Path != "/v1/responses/input_tokens" || req.Header.Get("Authorization") != "Bearer secret" {
		t.Errorf("%s %s", req.URL, got)
	}
	if _, err := (Provider{}).PrepareCount(t.Context(), p, target); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a server that may not count: %v", err)
	}
	if n, ok := (Provider{}).Tokens([]byte(`{"object":"response.input_tokens","input_tokens":12}`)); n != 12 || !ok {
		t.Error(n, ok)
	}
	if _, ok := (Provider{}).Tokens([]byte(`{"error":{}}`)); ok {
		t.Error("an error is a count")
	}
}

func TestDialects(t *testing.T) {
	for dialect, path := range map[plugins.Dialect]string{
		plugins.Chat: "/v1/chat/completions", plugins.Messages: "",
	} {
		req, err := Provider{}.PrepareNative(context.Background(), dialect, plugintest.Object(t, `{"model":"m"}`), target)
		switch {
		case path == "" && !errors.Is(err, errors.ErrUnsupported):
			t.Errorf("%s: got error %v", dialect, err)
		case path != "" && (err != nil || req.URL.Path != path || read(t, req) != `{"model":"gpt-5"}`):
			t.Errorf("%s: got %v, %v", dialect, req, err)
		}
	}
}

func TestPrepare(t *testing.T) {
	const (
		user   = `{"role": "user", "content": "hi"}`
		called = `{"type":"function_call","call_id":"1","name":"f","arguments":"{ }"}`
		output = `{"type":"function_call_output","call_id":"1","output":"ok"}`
		search = `{"type":"web_search_call","id":"ws_1"}`
		raw    = `{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"Hm"}]}`
		blob   = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA"}`
		bare   = `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Hm"}]}`
	)
	const left = "reasoning of another provider, left out"
	for _, test := range []struct {
		name, input, want string
		warnings          []string
	}{
		{"text", `"hi"`, `"hi"`, nil},
		{"items as they are", "[ " + user + ", " + called + ",\n" + output + "]", "[" + user + "," + called + "," + output + "]", nil},
		{"hosted tools' items", "[" + user + "," + search + "]", "[" + user + "]", []string{"input[1]: web_search_call left out"}},
		{"raw reasoning", "[" + user + "," + raw + "]", "[" + user + "," + raw + "]", nil},
		{"another's reasoning", "[" + user + "," + blob + "," + raw + "]", "[" + user + "," + raw + "]", []string{"input[1]: " + left}},
		{"a summary", "[" + user + "," + bare + "]", "[" + user + "]", []string{"input[1]: " + left}},
	} {
		t.Run(test.name, func(t *testing.T) {
			body := `{"model":"m","input":` + test.input + `,"temperature":1.0}`
			_, got, p, err := plugintest.Prepare(t, Provider{}, target, body, false)
			if err != nil {
				t.Fatal(err)
			}
			if want := `{"model":"gpt-5","input":` + test.want + `,"temperature":1.0}`; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if !slices.Equal(p.Warnings, test.warnings) {
				t.Errorf("got the warnings %q, want %q", p.Warnings, test.warnings)
			}
			if _, _, _, err = plugintest.Prepare(t, Provider{}, target, body, true); (err != nil) != strings.Contains(strings.Join(test.warnings, ""), left) {
				t.Errorf("strictly: got error %v", err)
			}
		})
	}
}

func TestReasoningComesBack(t *testing.T) {
	const item = `{"type":"reasoning", "id":"rs_1","summary":[ ],"encrypted_content":"gAAA==","format":"openai-responses-v1"}`
	p := &translate.Request{Model: "m"}
	a := translate.NewAssembler(p, nil, translate.Options{Seal: func(s string) string { return "sealed " + s }})
	err := Provider{}.Decode(plugintest.Response(http.StatusOK, `{"status":"completed","output":[`+item+`]}`), a)
	if err != nil {
		t.Fatal(err)
	}
	a.End()
	told := gjson.GetBytes(a.Response(), "output.0").Raw

	p, err = translate.ParseRequest([]byte(`{"model":"m","input":[{"role":"user","content":"hi"},` + told + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Unseal(func(s string) (string, bool) { return strings.CutPrefix(s, "sealed ") }); err != nil {
		t.Fatal(err)
	}
	req, err := Provider{}.Prepare(context.Background(), p, target)
	if err != nil {
		t.Fatal(err)
	}
	if got := gjson.Get(read(t, req), "input.1").Raw; got != item {
		t.Errorf("got %s, want %s", got, item)
	}
}

func TestDocumentedValues(t *testing.T) {
	plugintest.Documented(t, Provider{}, translate.Target{Model: "gpt-5"})
}

// A client of Messages or Chat Completions is answered by models of any kind: what the
// assistant said has the assistant's parts, and what the model refuses is left out or
// replaced with a warning.
func TestOtherAPIs(t *testing.T) {
	thinker := translate.Target{Model: "gpt-5-mini", Capabilities: &plugins.Capabilities{
		Input: []string{"text"}, Reasoning: true, Efforts: []string{"minimal", "low", "medium", "high"},
	}}
	plain := translate.Target{Model: "gpt-4o", Capabilities: &plugins.Capabilities{Input: []string{"text"}, Temperature: true}}
	atOpenAI := thinker
	atOpenAI.BaseURL = "https://api.openai.com/v1"
	unverified := atOpenAI
	unverified.NoSummary = true
	const turns = `"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"text","text":"hello","cache_control":{"type":"ephemeral"}}]},{"role":"user","content":"?"}]`
	for _, test := range []struct {
		name           string
		dialect        plugins.Dialect
		target         translate.Target
		fields         string
		path, want     string
		warned         []string
		strictlyPasses bool
	}{
		{"a second turn", plugins.Messages, plain, `"max_tokens":100`, "input.1.content", `[{"type":"output_text","text":"hello","annotations":[]}]`, nil, true},
		{"a second turn in Chat Completions", plugins.Chat, plain, `"max_tokens":100`, "input.1.content", `[{"type":"output_text","text":"hello","annotations":[]}]`, nil, true},
		{"a prefix to be cached for an hour", plugins.Messages, plain, `"max_tokens":100,"cache_control":{"type":"ephemeral","ttl":"1h"}`, "input.2.content", `[{"type":"input_text","text":"?","prompt_cache_breakpoint":{"mode":"explicit"}}]`, nil, true},
		{"a temperature", plugins.Messages, thinker, `"max_tokens":100,"temperature":0.5`, "temperature", "", []string{"temperature"}, false},
		{"the usual temperature", plugins.Messages, thinker, `"max_tokens":100,"temperature":1`, "temperature", "", nil, true},
		{"the temperature of a model that takes one", plugins.Messages, plain, `"max_tokens":100,"temperature":0.5`, "temperature", "0.5", nil, true},
		{"no thinking", plugins.Messages, thinker, `"max_tokens":100,"thinking":{"type":"disabled"}`, "reasoning.effort", `"minimal"`, []string{"thinking"}, false},
		{"thinking", plugins.Messages, atOpenAI, `"max_tokens":100,"thinking":{"type":"enabled","budget_tokens":60}`, "reasoning", `{"effort":"high","summary":"auto"}`, nil, true},
		{"thinking that is not shown", plugins.Messages, atOpenAI, `"max_tokens":100,"thinking":{"type":"adaptive","display":"omitted"}`, "reasoning", `{"effort":"high"}`, nil, true},
		{"thinking at an account that gets no summaries", plugins.Messages, unverified, `"max_tokens":100,"thinking":{"type":"adaptive"}`, "reasoning", `{"effort":"high"}`, nil, true},
		{"thinking at another server", plugins.Messages, thinker, `"max_tokens":100,"thinking":{"type":"adaptive"}`, "reasoning", `{"effort":"high"}`, nil, true},
		{"an effort without thinking", plugins.Messages, atOpenAI, `"max_tokens":100,"output_config":{"effort":"low"}`, "reasoning", `{"effort":"low"}`, nil, true},
		{"the highest effort", plugins.Messages, thinker, `"max_tokens":100,"output_config":{"effort":"max"}`, "reasoning.effort", `"high"`, []string{"output_config.effort"}, false},
		{"an effort of a model that does not think", plugins.Messages, plain, `"max_tokens":100,"output_config":{"effort":"low"}`, "reasoning", "", []string{"output_config.effort"}, false},
		{"few tokens", plugins.Messages, plain, `"max_tokens":1`, "max_output_tokens", "16", []string{"max_tokens"}, false},
		{"tools", plugins.Messages, plain, `"max_tokens":100,"tools":[{"name":"f","input_schema":{"type":"object","properties":{}}}]`, "tools", `[{"type":"function","name":"f","parameters":{"type":"object","properties":{}},"strict":false}]`, nil, true},
		{"tools that the client runs", plugins.Chat, plain, `"tools":[{"type":"apply_patch"},{"type":"local_shell"},{"type":"shell"},{"type":"shell","environment":{"type":"local"}},{"type":"computer"},{"type":"tool_search","execution":"client"}]`,
			"tools", "", []string{"tools[0]", "tools[1]", "tools[2]", "tools[3]", "tools[4]", "tools[5]"}, false},
		{"tools that the provider runs", plugins.Chat, plain, `"tools":[{"type":"shell","environment":{"type":"container_auto"}},{"type":"web_search"},{"type":"tool_search"}]`,
			"tools.#.type", `["shell","web_search","tool_search"]`, nil, true},
		{"marks of prefixes at tools", plugins.Messages, plain, `"max_tokens":100,"tools":[{"type":"web_search_20250305","name":"web_search","cache_control":{"type":"ephemeral","ttl":"1h"}},{"name":"f","input_schema":{"type":"object","properties":{}},"cache_control":{"type":"ephemeral"}}]`,
			"tools", `[{"type":"web_search"},{"type":"function","name":"f","parameters":{"type":"object","properties":{}},"strict":false}]`, []string{"tools[0].cache_control", "tools[1].cache_control"}, false},
		{"marks of prefixes at tools in Chat Completions", plugins.Chat, plain, `"tools":[{"type":"web_search","cache_control":{"type":"ephemeral"}},{"type":"custom","custom":{"name":"c"},"cache_control":{"type":"ephemeral"}}]`,
			"tools", `[{"type":"web_search"},{"type":"custom","name":"c"}]`, []string{"tools[0].cache_control", "tools[1].cache_control"}, false},
		{"stop sequences", plugins.Messages, plain, `"max_tokens":100,"stop_sequences":["a"]`, "stop", "", nil, true},
		{"penalties", plugins.Chat, plain, `"presence_penalty":1`, "presence_penalty", "", []string{"presence_penalty"}, false},
		{"a long name of a user", plugins.Messages, plain, `"max_tokens":100,"metadata":{"user_id":"` + strings.Repeat("u", 65) + `"}`, "user",
			`"f20e249d15fa4b9f44ba21d154f62e1efa76ddfdce5d25139a33a4787cee5a8b"`, nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			body := `{"model":"m",` + test.fields + `,` + turns + `}`
			_, got, p, err := plugintest.PrepareIn(t, test.dialect, Provider{}, test.target, body, false)
			if err != nil {
				t.Fatal(err)
			}
			if got := gjson.Get(got, test.path).Raw; got != test.want {
				t.Errorf("%s is %s, want %s", test.path, got, test.want)
			}
			var warned []string
			for _, w := range p.Names.Warnings(p.Warnings) {
				field, _, _ := strings.Cut(w, ": ")
				warned = append(warned, field)
			}
			if !slices.Equal(warned, test.warned) {
				t.Errorf("warned of %q, want %q", warned, test.warned)
			}
			if _, _, _, err := plugintest.PrepareIn(t, test.dialect, Provider{}, test.target, body, true); (err == nil) != test.strictlyPasses {
				t.Errorf("strictly: got error %v", err)
			}
		})
	}
}

// The model reads that a call has failed, as clients of Messages say it.
func TestFailures(t *testing.T) {
	const failed = `{"type":"input_text","text":"(The call failed.)"}`
	for content, want := range map[string]string{
		``:                `[` + failed + `]`,
		`"content":[],`:   `[` + failed + `]`,
		`"content":"no",`: `[` + failed + `,{"type":"input_text","text":"no"}]`,
		`"content":[{"type":"text","text":"no"}],`: `[` + failed + `,{"type":"input_text","text":"no"}]`,
	} {
		body := `{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{}}]},` +
			`{"role":"user","content":[{"type":"tool_result",` + content + `"tool_use_id":"1","is_error":true}]}]}`
		_, got, _, err := plugintest.PrepareIn(t, plugins.Messages, Provider{}, translate.Target{Model: "gpt-5"}, body, true)
		if err != nil {
			t.Fatal(err)
		}
		if got := gjson.Get(got, "input.2.output").Raw; got != want {
			t.Errorf("%s: the output is %s, want %s", content, got, want)
		}
	}
}

// A model that reasons is told the limit of tokens by the name that it takes, and all other
// bytes stay.
func TestAdapt(t *testing.T) {
	reasons := translate.Target{Capabilities: &plugins.Capabilities{Input: []string{"text"}, Reasoning: true}}
	plain := translate.Target{Capabilities: &plugins.Capabilities{Input: []string{"text"}}}
	atOpenAI := translate.Target{BaseURL: "https://api.openai.com/v1"}
	long := strings.Repeat("x", 65)
	const short = "call_9537c5fdf120482f7d58d25e9ed583f5"
	for _, test := range []struct {
		dialect    plugins.Dialect
		target     translate.Target
		body, want string
		warned     bool
	}{
		{plugins.Chat, reasons, `{ "max_tokens":5, "n":1.0 }`, `{ "n":1.0 ,"max_completion_tokens":5}`, true},
		{plugins.Chat, reasons, `{"max_tokens":5,"max_completion_tokens":6}`, `{"max_completion_tokens":6}`, true},
		{plugins.Chat, reasons, `{"max_completion_tokens":6}`, `{"max_completion_tokens":6}`, false},
		{plugins.Chat, translate.Target{}, `{"max_tokens":5}`, `{"max_tokens":5}`, false},
		{plugins.Responses, reasons, `{"max_tokens":5}`, `{"max_tokens":5}`, false},
		{plugins.Responses, plain, `{"include":["x","reasoning.encrypted_content"]}`, `{"include":["x"]}`, true},
		{plugins.Responses, atOpenAI, `{"input":[{"call_id" : "` + long + `","output":"call_id"},{"call_id":"` + long + `"},{"call_id":"a"}]}`,
			`{"input":[{"call_id" : "` + short + `","output":"call_id"},{"call_id":"` + short + `"},{"call_id":"a"}]}`, true},
		{plugins.Responses, atOpenAI, `{"input":[{"call_id":"` + long[1:] + `"}]}`, `{"input":[{"call_id":"` + long[1:] + `"}]}`, false},
		{plugins.Responses, reasons, `{"input":[{"call_id":"` + long + `"}]}`, `{"input":[{"call_id":"` + long + `"}]}`, false},
		{plugins.Responses, reasons, `{"include":["reasoning.encrypted_content"]}`, `{"include":["reasoning.encrypted_content"]}`, false},
	} {
		got, warnings := Provider{}.Adapt(test.dialect, plugintest.Object(t, test.body), test.target)
		if string(got) != test.want || (len(warnings) == 1) != test.warned {
			t.Errorf("%s: got %s, warnings %q, want %s", test.body, got, warnings, test.want)
		}
	}
}

// A client that goes on with an earlier response is still one of Responses, who may run tools itself.
func TestToolsBehindAnEarlierResponse(t *testing.T) {
	p, err := translate.ParseRequest([]byte(`{"model":"m","input":[{"role":"user","content":"hi"},{"role":"user","content":"on"}],"tools":[{"type":"apply_patch"},{"type":"local_shell"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	p.Names = &translate.Names{Items: []translate.ItemName{{Path: "previous_response_id"}, {Path: "input[0]"}}}
	req, err := Provider{}.Prepare(t.Context(), p, translate.Target{Model: "m", BaseURL: "https://openrouter.ai/api/v1"})
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(req.Body)
	if got := gjson.GetBytes(body, "tools.#.type").Raw; err != nil || got != `["apply_patch","local_shell"]` || len(p.Warnings) > 0 || gjson.GetBytes(body, "include").Exists() {
		t.Errorf("%v, %q: %s", err, p.Warnings, body)
	}
}
