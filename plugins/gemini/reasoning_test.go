package gemini

import (
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
		if c.Get("parts.0.thoughtSignature").Str != unsignedSignature {
			t.Errorf("the first call of a turn is unsigned: %s", c)
		}
	}
}

func TestForeignReasoningIsLeftOut(t *testing.T) {
	for _, encrypted := range []string{"gAAAAABo", `{"type":"thinking","thinking":"x","signature":"y"}`, `[]`, `{}`, `{"parts":["x"]}`, `{"parts":[{}],"call":1}`} {
		plugintest.Maps(t, Provider{}, pro3, plugintest.AfterReasoning(encrypted), "contents.1.parts", `[{"text":"4"}]`, "input[1]")
	}
}
