package chat

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

// decode is the response that comes of a stream of chunks, each given by its
// keys beside the id.
func decode(t *testing.T, kind, request string, chunks ...string) gjson.Result {
	t.Helper()
	p, err := translate.ParseRequest([]byte(request))
	if err != nil {
		t.Fatal(err)
	}
	p.Stream = true
	var stream strings.Builder
	for _, c := range chunks {
		fmt.Fprintf(&stream, "data: {\"id\":\"chatcmpl-1\",\"model\":\"m\",%s}\n\n", c)
	}
	stream.WriteString("data: [DONE]\n\n")
	var sink bytes.Buffer
	a := translate.NewAssembler(p, &sink, translate.Options{})
	if err := For(kind).Decode(plugintest.Response(http.StatusOK, stream.String()), a); err != nil {
		t.Fatal(err)
	}
	sink.Write(a.End())
	if _, err := plugintest.Check(sink.Bytes()); err != nil {
		t.Fatalf("an illegal stream: %v\n%s", err, sink.Bytes())
	}
	return gjson.ParseBytes(a.Response())
}

func delta(members string) string { return `"choices":[{"index":0,"delta":{` + members + `}}]` }

func finish(reason string) string {
	return `"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]`
}

const hi = `{"model":"m","input":"hi"}`

func equal(t *testing.T, got gjson.Result, path, want string) {
	t.Helper()
	if v := got.Get(path).Raw; v != want {
		t.Errorf("%s is %s, want %s in %s", path, v, want, got)
	}
}

// Google's own Chat Completions sign a call beside it, and refuse the call without.
func TestSignedCallsComeBack(t *testing.T) {
	const signature = `{"google":{"thought_signature":"S"}}`
	r := decode(t, "compatible", hi,
		delta(`"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{}"},"extra_content":`+signature+`}]`),
		delta(`"tool_calls":[{"index":1,"id":"y","function":{"name":"f","arguments":"{}"}}]`), finish("tool_calls"))
	equal(t, r, "output.#.type", `["reasoning","function_call","function_call"]`)
	outputs := `{"type":"function_call_output","call_id":"x","output":"1"},{"type":"function_call_output","call_id":"y","output":"2"}`
	input := strings.TrimSuffix(r.Get("output").Raw, "]") + "," + outputs + "]"
	_, body, _, err := plugintest.Prepare(t, For("compatible"), translate.Target{Model: "m"}, `{"model":"m","input":`+input+`}`, false)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, gjson.Parse(body), "messages.0.tool_calls.#.extra_content", "["+signature+"]")
	equal(t, gjson.Parse(body), "messages.0.tool_calls.0.id", `"x"`)
}

func TestReasoningThenTextThenCall(t *testing.T) {
	r := decode(t, "groq", hi, delta(`"reasoning":"a"`), delta(`"reasoning":"b"`), delta(`"content":"c"`),
		delta(`"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}}]`), finish("tool_calls"))
	equal(t, r, "output.#.type", `["reasoning","message","function_call"]`)
	equal(t, r, "output.0.content.0.text", `"ab"`)
}

func TestTextAfterCall(t *testing.T) {
	r := decode(t, "groq", hi, delta(`"content":"a"`), delta(`"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}}]`),
		delta(`"content":"b"`), finish("stop"))
	equal(t, r, "output.#.content.0.text", `["a","b"]`)
}

func TestCallWithoutText(t *testing.T) {
	r := decode(t, "groq", hi, delta(`"role":"assistant","content":""`), delta(`"content":null,"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":""}}]`), finish("tool_calls"))
	equal(t, r, "output.#.type", `["function_call"]`)
}

func TestArgumentsWithoutID(t *testing.T) {
	r := decode(t, "groq", hi, delta(`"tool_calls":[{"index":0,"id":"x","function":{"name":"f"}}]`),
		delta(`"tool_calls":[{"index":0,"function":{"arguments":"{\"a\""}}]`), delta(`"tool_calls":[{"index":0,"id":"","function":{"name":"","arguments":":1}"}}]`), finish("tool_calls"))
	equal(t, r, "output.0.arguments", `"{\"a\":1}"`)
}

func TestWholeArguments(t *testing.T) {
	r := decode(t, "groq", hi, delta(`"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":1}"}}]`), finish("tool_calls"))
	equal(t, r, "output.0.arguments", `"{\"a\":1}"`)
}

// TestAnswerAsAnObject: a few vendors have the arguments of calls as an object, not as text.
func TestAnswerAsAnObject(t *testing.T) {
	r := decode(t, "groq", `{"model":"m","input":"hi","text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object"}}}}`,
		delta(`"tool_calls":[{"index":0,"id":"x","function":{"name":"structured_answer","arguments":{"a":1}}}]`), finish("tool_calls"))
	equal(t, r, "output.0.content.0.text", `"{\"a\":1}"`)
}

func TestEmptyArgumentsAreAnObject(t *testing.T) {
	r := decode(t, "groq", hi, delta(`"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":""}}]`),
		delta(`"tool_calls":[{"index":0,"function":{"arguments":""}}]`), delta(`"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]`), finish("tool_calls"))
	equal(t, r, "output.0.arguments", `"{}"`)
}

func TestTruncationIsIncomplete(t *testing.T) {
	for name, content := range map[string]string{
		"text": `"content":"a"`, "reasoning": `"reasoning":"a"`,
		"arguments": `"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{"}}]`,
	} {
		r := decode(t, "groq", hi, delta(content), finish("length"))
		if r.Get("status").Str != "incomplete" || r.Get("incomplete_details.reason").Str != "max_output_tokens" || r.Get("output.0.status").Str != "incomplete" {
			t.Errorf("%s: got %s", name, r)
		}
	}
}

// vLLM and SGLang name the stop sequence, or the token that ended the turn.
func TestStopSequenceIsNamed(t *testing.T) {
	for stop, want := range map[string]string{`"stop_reason":"b"`: "b", `"matched_stop":"b"`: "b", `"stop_reason":151643`: "", `"matched_stop":"<|im_end|>"`: "", `"stop_reason":null`: ""} {
		p, err := translate.ParseRequest([]byte(`{"model":"m","input":"hi","stop":["a","b"]}`))
		if err != nil {
			t.Fatal(err)
		}
		a := translate.NewAssembler(p, nil, translate.Options{})
		body := `{"choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop",` + stop + `}]}`
		if err := For("vllm").Decode(plugintest.Response(http.StatusOK, body), a); err != nil || a.StopSequence() != want {
			t.Errorf("%s: %q, %v", stop, a.StopSequence(), err)
		}
	}
}

// What comes at the end of an answer stays, whether or not the provider names the stop sequence.
func TestNamedStopSequenceKeepsTheRest(t *testing.T) {
	var outputs []string
	for _, stop := range []string{`null`, `"END"`} {
		p, err := translate.ParseRequest([]byte(`{"model":"m","input":"hi","stop":["END","X"]}`))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		a := translate.NewAssembler(p, nil, translate.Options{ID: func(prefix string) string { n++; return fmt.Sprint(prefix, n) }})
		body := `{"model":"m","citations":["https://a.example"],"choices":[{"index":0,"message":{"content":"text","audio":{"data":"aa"}},"finish_reason":"stop","stop_reason":` + stop + `}]}`
		if err := For("xai").Decode(plugintest.Response(http.StatusOK, body), a); err != nil {
			t.Fatal(err)
		}
		a.End()
		outputs = append(outputs, gjson.GetBytes(a.Response(), "output").Raw)
	}
	if outputs[0] != outputs[1] || !strings.Contains(outputs[0], "https://a.example") || !strings.Contains(outputs[0], "audio") {
		t.Errorf("without a name: %s\nwith one: %s", outputs[0], outputs[1])
	}
}

// A call with arguments that are cut off is not complete, whatever the provider says of its end.
func TestCutArgumentsAreIncomplete(t *testing.T) {
	call := func(index int, arguments string) string {
		return delta(fmt.Sprintf(`"tool_calls":[{"index":%d,"id":"x%[1]d","function":{"name":"f","arguments":%q}}]`, index, arguments))
	}
	for name, chunks := range map[string][]string{
		"alone":       {call(0, `{"a":"b`), finish("tool_calls")},
		"of two":      {call(0, `{"a":"b`), call(1, `{}`), finish("tool_calls")},
		"said to end": {call(0, `{"a":{"b":1}`), finish("stop")},
	} {
		r := decode(t, "groq", hi, chunks...)
		if r.Get("status").Str != "incomplete" || r.Get("incomplete_details.reason").Str != "max_output_tokens" || r.Get("output.0.status").Str != "incomplete" {
			t.Errorf("%s: got %s", name, r)
		}
	}
}

func TestCalls(t *testing.T) {
	for kind, legal := range map[string]*regexp.Regexp{
		"groq":    regexp.MustCompile(``),
		"openai":  regexp.MustCompile(`^.{1,40}$`),
		"mistral": regexp.MustCompile(`^[a-zA-Z0-9]{9}$`),
	} {
		t.Run(kind, func(t *testing.T) {
			plugintest.Calls(t, For(kind), translate.Target{}, "messages.#.tool_calls.#.id", "", legal.MatchString)
		})
	}
}

// TestReasoningRoundTrip: what a provider signed comes back as it was.
func TestReasoningRoundTrip(t *testing.T) {
	details := `[{"type":"reasoning.text","text":"Use f.","signature":"c2ln","format":"x","index":0},{"type":"reasoning.encrypted","data":"ZW5j","index":1}]`
	first := decode(t, "openrouter", hi, delta(`"reasoning":"Use f.","reasoning_details":`+details),
		delta(`"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}}]`), finish("tool_calls"))
	output := first.Get("output").Raw
	second := `{"model":"m","input":[{"role":"user","content":"hi"},` + output[1:len(output)-1] + `,{"type":"function_call_output","call_id":"x","output":"1"}]}`
	_, body, p, err := prepare(t, For("openrouter"), translate.Target{}, second)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, gjson.Parse(body), "messages.1.reasoning_details", details)
	if len(p.Warnings) > 0 {
		t.Errorf("warned of %q", p.Warnings)
	}
}

func TestForeignReasoningIsLeftOut(t *testing.T) {
	_, body, p, err := prepare(t, For("groq"), translate.Target{}, `{"model":"m","input":[{"role":"user","content":"hi"},
		{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"secret"}],"encrypted_content":"gAAAAA"},{"role":"assistant","content":"a"},{"role":"user","content":"b"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(body, "secret") || strings.Contains(body, "gAAAAA") || len(p.Warnings) != 1 {
		t.Errorf("got %s with warnings %q", body, p.Warnings)
	}
}

func TestCustomToolGetsItsInput(t *testing.T) {
	r := decode(t, "groq", `{"model":"m","input":"hi","tools":[{"type":"custom","name":"apply_patch"}]}`,
		delta(`"tool_calls":[{"index":0,"id":"x","function":{"name":"apply_patch","arguments":"{\"input\": \"a\\"}}]`),
		delta(`"tool_calls":[{"index":0,"function":{"arguments":"n\\u00e"}}]`), delta(`"tool_calls":[{"index":0,"function":{"arguments":"9\"}"}}]`), finish("tool_calls"))
	equal(t, r, "output.0.type", `"custom_tool_call"`)
	equal(t, r, "output.0.input", `"a\né"`)
}

func TestUsageAnywhere(t *testing.T) {
	const usage = `"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}`
	for name, chunks := range map[string][]string{
		"alone":   {delta(`"content":"a"`), finish("stop"), `"choices":[],` + usage},
		"no list": {delta(`"content":"a"`), finish("stop"), usage},
		"last":    {delta(`"content":"a"`), finish("stop") + "," + usage},
		"every":   {delta(`"content":"a"`) + `,"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}`, finish("stop") + "," + usage},
		"null":    {delta(`"content":"a"`) + `,"usage":null`, finish("stop") + "," + usage, `"choices":[],"usage":null`},
	} {
		r := decode(t, "vllm", hi, chunks...)
		if r.Get("usage.input_tokens").Int() != 3 || r.Get("usage.output_tokens").Int() != 2 || r.Get("status").Str != "completed" {
			t.Errorf("%s: got %s", name, r)
		}
	}
}

func TestErrorMidStream(t *testing.T) {
	r := decode(t, "groq", hi, delta(`"content":"a"`), `"error":{"message":"Boom","type":"server_error"}`)
	equal(t, r, "status", `"failed"`)
	equal(t, r, "error.message", `"Boom"`)
}

func TestServiceTierIsTold(t *testing.T) {
	_, body, _, err := prepare(t, For("openai"), translate.Target{}, `{"model":"m","input":"hi","service_tier":"flex"}`)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, gjson.Parse(body), "service_tier", `"flex"`)
	r := decode(t, "openai", `{"model":"m","input":"hi","service_tier":"flex"}`, delta(`"content":"a"`)+`,"service_tier":"priority"`, finish("stop"))
	equal(t, r, "service_tier", `"priority"`)
}

// BenchmarkDecode reads a stream of 200 events of text.
func BenchmarkDecode(b *testing.B) {
	event := `data: {"id":"chatcmpl-CMKBAQ4vWbdeHIVnqDgk62In6psws","object":"chat.completion.chunk","created":1759449904,` +
		`"model":"gpt-4o-2024-08-06","service_tier":"default","system_fingerprint":"fp_cbf1785567","choices":[{"index":0,` +
		`"delta":{"content":" and then"},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n"
	body := strings.Repeat(event, 198) +
		`data: {"id":"c","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":200}}` +
		"\n\ndata: [DONE]\n\n"
	plugintest.BenchmarkDecode(b, For("openai"), body)
}

// The cost that a vendor states wins, also where the vendor is reached as any other that
// speaks Chat Completions.
func TestStatedCostOfAKnownVendor(t *testing.T) {
	for provider, usage := range map[string]string{
		"openrouter": `"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"cost":0.5}`,
		"vercel":     `"choices":[{"delta":{"provider_metadata":{"gateway":{"cost":"0.5"}}},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}`,
	} {
		p, err := translate.ParseRequest([]byte(`{"model":"m","input":"hi","stream":true}`))
		if err != nil {
			t.Fatal(err)
		}
		a := translate.NewAssembler(p, new(bytes.Buffer), translate.Options{Provider: provider})
		if err := For("compatible").Decode(plugintest.Response(http.StatusOK, "data: {"+usage+"}\n\ndata: [DONE]\n\n"), a); err != nil {
			t.Fatal(err)
		}
		if cost := a.Info().Usage.ReportedCost; !cost.Valid || cost.N != 5e8 {
			t.Errorf("%s: the cost is %v", provider, cost)
		}
	}
}

// What a model says is a text, and a note tells that the sound is missing; an image at a URL is a link.
func TestSoundAndLinkedImages(t *testing.T) {
	got := decode(t, "compatible", hi, delta(`"audio":{"id":"a","transcript":"Hel"}`), delta(`"audio":{"data":"AAAA"}`), delta(`"audio":{"transcript":"lo."}`), delta(`"audio":{"data":"AAAA"}`), finish("stop"))
	equal(t, got, "output.0.content.0.text", `"Hello."`)
	if note := got.Get("output.1.content.0.text").Str; !strings.HasPrefix(note, "[The model generated audio, ") || got.Get("output.#").Int() != 2 {
		t.Errorf("the client is not told: %s", got)
	}
	got = decode(t, "compatible", hi, delta(`"content":"Look:","images":[{"type":"image_url","image_url":{"url":"https://x/y.png"}}]`), finish("stop"))
	equal(t, got, "output.1.content.0.text", `"https://x/y.png"`)
}
