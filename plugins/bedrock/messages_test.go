package bedrock

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

// A request has four cache points at most: the first one and the last ones.
func TestCachePointsAreLimited(t *testing.T) {
	text := func(name string) string {
		return `{"type":"input_text","text":"` + name + `","prompt_cache_breakpoint":{"mode":"explicit"}}`
	}
	body, p := plugintest.Send(t, new(Provider), claude48, `{"model":"m","input":[{"role":"system","content":[`+text("a")+`,`+text("b")+`]},`+
		`{"role":"user","content":[`+text("c")+`,`+text("d")+`]},{"role":"assistant","content":"x"},{"role":"user","content":[`+text("e")+`,`+text("f")+`]}]}`, false)
	const point = `{"cachePoint":{"type":"default"}}`
	const want = `[{"text":"a"},` + point + `,{"text":"b"}] [{"text":"c"},{"text":"d"},` + point + `] [{"text":"x"}] [{"text":"e"},` + point + `,{"text":"f"},` + point + `]`
	got := []string{body.Get("system").Raw}
	for _, m := range body.Get("messages.#.content").Array() {
		got = append(got, m.Raw)
	}
	if s := strings.Join(got, " "); s != want || len(p.Warnings) != 1 {
		t.Errorf("got %s, warnings %q", s, p.Warnings)
	}
}

// The tools come first: their cache point is the first of all.
func TestCachePointsOfToolsAreLimited(t *testing.T) {
	text := `{"type":"input_text","text":"a","prompt_cache_breakpoint":{"mode":"explicit"}}`
	body, p := plugintest.Send(t, new(Provider), claude48, `{"model":"m","tools":[{"type":"function","name":"f","prompt_cache_breakpoint":{"mode":"explicit"}}],"input":[{"role":"system","content":[`+text+`]},`+
		`{"role":"user","content":[`+text+`,`+text+`,`+text+`]}]}`, false)
	got := strings.Count(body.Get("toolConfig").Raw, "cachePoint") * 100
	got += strings.Count(body.Get("system").Raw, "cachePoint")*10 + strings.Count(body.Get("messages").Raw, "cachePoint")
	if got != 103 || len(p.Warnings) != 1 {
		t.Errorf("got %s, warnings %q", body.Raw, p.Warnings)
	}
}

// A conversation may end with the assistant's text, but not at later models of Anthropic.
func TestEndsWithTheAssistant(t *testing.T) {
	for target, want := range map[*translate.Target]string{&claude45: "Sure:", &claude48: "Sure: Go on.", &nova2: "Sure: "} {
		body, p := plugintest.Send(t, new(Provider), *target, `{"model":"m","input":[{"role":"user","content":"hi"},{"role":"assistant","content":"Sure: "}]}`, false)
		got := ""
		for _, text := range body.Get("messages.#.content.0.text").Array()[1:] {
			got += text.Str
		}
		if got != want || (len(p.Warnings) > 0) != strings.HasSuffix(want, translate.GoOn) {
			t.Errorf("%s: got %q, warnings %q", target.Model, got, p.Warnings)
		}
	}
	body, _ := plugintest.Send(t, new(Provider), claude45, `{"model":"m","input":[{"role":"user","content":"hi"},`+
		`{"role":"assistant","content":[{"type":"output_text","text":"Sure: ","prompt_cache_breakpoint":{"mode":"explicit"}}]}]}`, false)
	if got := body.Get("messages.1.content").Raw; got != `[{"text":"Sure:"},{"cachePoint":{"type":"default"}}]` {
		t.Errorf("before a cache point: %s", got)
	}
}
