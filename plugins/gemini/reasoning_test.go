package gemini

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/plugintest"
)

func TestThoughtSignaturesComeBack(t *testing.T) {
	fixtures := plugintest.Fixtures(t, "testdata")
	for _, name := range []string{"thoughts_call", "parallel_calls", "thoughts", "signature_first", "web_search", "search_and_call", "call_text_call"} {
		for _, stream := range []bool{true, false} {
			f := plugintest.Named(t, fixtures, name)
			f.Request = `{"model":"m","input":"hi","tools":[{"type":"web_search"}]}`
			got := f.Next(t, Provider{}, pro3, stream).Get("contents.1.parts").Array()
			var want []gjson.Result
			for _, part := range gjson.GetBytes(f.JSON, "candidates.0.content.parts").Array() {
				if !part.Get("thought").Bool() { // summaries are not for the model
					want = append(want, part)
				}
			}
			if len(got) != len(want) {
				t.Fatalf("%s: got %v, want %v", name, got, want)
			}
			for i := range want {
				if !sameJSON(got[i].Raw, want[i].Raw) {
					t.Errorf("%s: part %d is %s, want %s", name, i, got[i].Raw, want[i].Raw)
				}
			}
		}
	}
}

func TestLostSignaturesAreReplaced(t *testing.T) {
	first := plugintest.Answer(t, Provider{}, `{"model":"m","input":"hi","stream":true}`, plugintest.File(t, "parallel_calls.sse"))
	input := `{"role":"user","content":"hi"}`
	for _, call := range first.Get(`output.#(type=="function_call")#`).Array() {
		input += "," + call.Raw + `,{"type":"function_call_output","call_id":"` + call.Get("call_id").Str + `","output":"x"}`
	}
	_, body, _, err := plugintest.Prepare(t, Provider{}, pro3, plugintest.Request(`"input":[`+input+`]`), true)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range gjson.Get(body, `contents.#(role=="model")#`).Array() {
		if c.Get("parts.0.thoughtSignature").Str != unsigned {
			t.Errorf("the first call of a turn is unsigned: %s", c)
		}
	}
}

func TestForeignReasoningIsLeftOut(t *testing.T) {
	for _, encrypted := range []string{"gAAAAABo", `{"type":"thinking","thinking":"x","signature":"y"}`, `[]`, `{}`, `{"parts":["x"]}`, `{"parts":[{}],"call":1}`} {
		_, body, p, err := plugintest.Prepare(t, Provider{}, pro3, plugintest.Request(`"input":[{"role":"user","content":"hi"},
			{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"secret"}],"encrypted_content":`+quote(encrypted)+`},
			{"role":"assistant","content":"4"},{"role":"user","content":"?"}]`), false)
		if err != nil {
			t.Fatal(err)
		}
		if got := gjson.Get(body, "contents.1.parts").Raw; got != `[{"text":"4"}]` {
			t.Errorf("%q: got %s", encrypted, got)
		}
		if len(p.Warnings) != 1 || !strings.HasPrefix(p.Warnings[0], "input[1]: ") {
			t.Errorf("%q: got the warnings %q", encrypted, p.Warnings)
		}
	}
}

func quote(s string) string { return string(gjson.AppendJSONString(nil, s)) }
