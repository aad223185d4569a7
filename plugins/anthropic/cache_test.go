package anthropic

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

const mark = `,"prompt_cache_breakpoint":{"mode":"explicit"}`

// A request has four marks of prefixes at most: the first one and the last ones.
func TestMarksAreLimited(t *testing.T) {
	text := func(name string) string { return `{"type":"input_text","text":"` + name + `"` + mark + `}` }
	for key, want := range map[string]string{"": "a d e f", `"prompt_cache_key":"k",`: "a e f"} {
		body, p := plugintest.Send(t, Provider{}, claude5, `{"model":"m",`+key+`"input":[{"role":"system","content":[`+text("a")+`,`+text("b")+`]},{"role":"user","content":[`+text("c")+`,`+text("d")+`]},`+
			`{"role":"assistant","content":"x"},{"role":"user","content":[`+text("e")+`,`+text("f")+`]}]}`, false)
		var marked []string
		for _, path := range []string{`system.#(cache_control)#.text`, `messages.#.content.#(cache_control)#.text|@flatten`} {
			for _, v := range body.Get(path).Array() {
				marked = append(marked, v.Str)
			}
		}
		if got := strings.Join(marked, " "); got != want || len(p.Warnings) != 1 || body.Get("cache_control").Exists() != (key != "") {
			t.Errorf("%s: the marks are at %s, warnings %q: %s", key, got, p.Warnings, body)
		}
	}
}

// The mark of a result is not within it, which the provider refuses
// (https://github.com/caozhiyuan/copilot-api/issues/241).
func TestMarkOfAResult(t *testing.T) {
	body, _ := plugintest.Send(t, Provider{}, claude5, `{"model":"m","input":[{"role":"user","content":"hi"},{"type":"function_call","call_id":"1","name":"f","arguments":"{}"},`+
		`{"type":"function_call_output","call_id":"1","output":[{"type":"input_text","text":"o"`+mark+`}]}]}`, true)
	const want = `{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"o"}],"cache_control":{"type":"ephemeral"}}`
	if got := body.Get("messages.2.content.0").Raw; got != want {
		t.Errorf("got %s", got)
	}
}

// A conversation may end with the assistant's text only at early models, and not with white space.
// At models of other vendors it is not touched.
func TestEndsWithTheAssistant(t *testing.T) {
	for name, want := range map[string]string{
		"claude-sonnet-4-5":        `[{"role":"assistant","content":[{"type":"text","text":"Sure:"}]}]`,
		"claude-3-haiku-20240307":  `[{"role":"assistant","content":[{"type":"text","text":"Sure:"}]}]`,
		"claude-opus-4-6":          `[{"role":"assistant","content":[{"type":"text","text":"Sure: "}]},{"role":"user","content":[{"type":"text","text":"Go on."}]}]`,
		"claude-haiku-5":           `[{"role":"assistant","content":[{"type":"text","text":"Sure: "}]},{"role":"user","content":[{"type":"text","text":"Go on."}]}]`,
		"glm-5":                    `[{"role":"assistant","content":[{"type":"text","text":"Sure: "}]}]`,
		"claude-of-times-to-come:": `[{"role":"assistant","content":[{"type":"text","text":"Sure: "}]},{"role":"user","content":[{"type":"text","text":"Go on."}]}]`,
	} {
		body, p := plugintest.Send(t, Provider{}, translate.Target{Model: name}, `{"model":"m","input":[{"role":"user","content":"hi"},{"role":"assistant","content":"Sure: "}]}`, false)
		got := `[` + strings.TrimPrefix(body.Get("messages").Raw, `[`+body.Get("messages.0").Raw+`,`)
		if got != want || (len(p.Warnings) > 0) != strings.Contains(want, translate.GoOn) {
			t.Errorf("%s: got %s, warnings %q", name, got, p.Warnings)
		}
	}
}
