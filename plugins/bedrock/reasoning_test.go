package bedrock

import (
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

func TestSignaturesComeBack(t *testing.T) {
	for _, name := range []string{"reasoning_tools", "reasoning", "omitted_reasoning", "redacted_reasoning"} {
		f := plugintest.Named(t, fixtures(t), name)
		body := f.Next(t, new(Provider), claude45, true, `"tools":[{"type":"function","name":"weather"}],"reasoning":{"effort":"high"}`)
		got, want := body.Get("messages.1.content").Array(), gjson.GetBytes(f.JSON, "output.message.content").Array()
		if len(got) != len(want) {
			t.Fatalf("%s: got %v, want %v", name, got, want)
		}
		for i := range want {
			if got[i].Raw != want[i].Raw {
				t.Errorf("%s: block %d is %s, want %s", name, i, got[i].Raw, want[i].Raw)
			}
		}
		if body.Get("additionalModelRequestFields.thinking.type").Str != "enabled" {
			t.Errorf("%s: does not think: %s", name, body)
		}
	}
}

func TestForeignReasoningIsLeftOut(t *testing.T) {
	for _, test := range []struct {
		target    translate.Target
		encrypted string
		warnings  int
	}{
		{claude45, "", 0},
		{claude45, "gAAAAABo", 1},
		{claude45, `{"reasoningText":{"text":"unsigned"}}`, 1},
		{claude45, `[]`, 1},
		{nova2, `{"reasoningText":{"text":"t","signature":"Claude's"}}`, 1},
	} {
		_, body, p, err := prepare(t, test.target, plugintest.Request(`"input":[{"role":"user","content":"hi"},
			{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"secret"}],"encrypted_content":`+
			string(gjson.AppendJSONString(nil, test.encrypted))+`},
			{"role":"assistant","content":"4"},{"role":"user","content":"?"}]`), false)
		if err != nil {
			t.Fatal(err)
		}
		if got := gjson.Get(body, "messages.1.content").Raw; got != `[{"text":"4"}]` {
			t.Errorf("%q: got %s", test.encrypted, got)
		}
		if len(p.Warnings) != test.warnings {
			t.Errorf("%q: got the warnings %q", test.encrypted, p.Warnings)
		}
	}
}
