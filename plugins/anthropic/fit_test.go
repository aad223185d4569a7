package anthropic

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

// The thinking, the sampling and the effort of a client of another Claude become what the model takes,
// and all other bytes stay.
func TestAdaptToTheModel(t *testing.T) {
	describe := func(name string, c plugins.Capabilities) translate.Target {
		c.Input = []string{"text"}
		return translate.Target{Model: name, Capabilities: &c}
	}
	counts := describe("claude-sonnet-4-5", plugins.Capabilities{Reasoning: true, Temperature: true, Budget: plugins.Budget{Min: 1024}})
	both := describe("claude-opus-4-6", plugins.Capabilities{Reasoning: true, Temperature: true, Budget: plugins.Budget{Min: 1024}, Efforts: translate.Efforts[3:]})
	adaptive := describe("claude-opus-4-8", plugins.Capabilities{Reasoning: true, Efforts: translate.Efforts[3:]})
	always := describe("claude-fable-5", plugins.Capabilities{Reasoning: true, Efforts: translate.Efforts[3:]})
	plain := describe("claude-3-5-haiku-20241022", plugins.Capabilities{Temperature: true})
	const called = `"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]`
	for _, test := range []struct {
		target     translate.Target
		body, want string // the same if it is ""
		warned     string // the fields
	}{
		{counts, `{"max_tokens":10000, "thinking":{"type":"adaptive"}}`, `{"max_tokens":10000, "thinking":{"type":"enabled","budget_tokens":6000}}`, "thinking"},
		{counts, `{"max_tokens":10000,"thinking":{"type":"adaptive","display":"omitted"},"output_config":{"effort":"low"}}`, `{"max_tokens":10000,"thinking":{"type":"enabled","budget_tokens":1024},"output_config":{}}`, "thinking output_config.effort"},
		{counts, `{"max_tokens":1024,"thinking":{"type":"adaptive"}}`, `{"max_tokens":1024}`, "thinking"},
		{counts, `{"max_tokens":10000,"thinking":{"type":"adaptive"},"tool_choice":{"type":"any"}}`, `{"max_tokens":10000,"tool_choice":{"type":"any"}}`, "thinking"},
		{counts, `{"max_tokens":10000,"thinking":{"type":"adaptive"},"temperature":0}`, `{"max_tokens":10000,"temperature":0}`, "thinking"},
		{counts, `{"max_tokens":10000,"thinking":{"type":"adaptive"},` + called + `}`, `{"max_tokens":10000,` + called + `}`, "thinking"},
		{counts, `{"max_tokens":10000,"thinking":{"type":"enabled","budget_tokens":2000},"temperature":1}`, "", ""},
		{counts, `{"max_tokens":10000,"thinking":{"type":"disabled"}}`, "", ""},
		{both, `{"max_tokens":10000,"thinking":{"type":"adaptive"},"output_config":{"effort":"high"}}`, "", ""},
		{both, `{"max_tokens":10000,"thinking":{"type":"enabled","budget_tokens":2000}}`, "", ""},
		{adaptive, `{"max_tokens":10000, "thinking":{"type":"enabled","budget_tokens":2000}}`, `{"max_tokens":10000, "thinking":{"type":"adaptive","display":"summarized"}}`, "thinking"},
		{adaptive, `{"max_tokens":10,"temperature":0.5,"top_p":1,"top_k":5}`, `{"max_tokens":10,"top_p":1}`, "temperature top_k"},
		{adaptive, `{"max_tokens":10,"thinking":{"type":"adaptive"},"output_config":{"effort":"max"}}`, "", ""},
		{always, `{"max_tokens":10,"thinking":{"type":"disabled"}}`, `{"max_tokens":10}`, "thinking"},
		{plain, `{"max_tokens":10,"thinking":{"type":"adaptive"},"output_config":{"effort":"high"}}`, `{"max_tokens":10,"output_config":{}}`, "thinking output_config.effort"},
		{plain, `{"max_tokens":10,"thinking":{"type":"disabled"},"temperature":0}`, "", ""},
		{translate.Target{Model: "claude-3-5-haiku-20241022"}, `{"max_tokens":10,"thinking":{"type":"adaptive"},"temperature":0}`, `{"max_tokens":10,"temperature":0}`, "thinking"},
		{counts, `{"system":"s","messages":[{"role":"user","content":"hi"},{"role":"system","content":"a <b>"},{"role":"system","content":[{"type":"text","text":"c"},{"type":"text","text":" "}]},{"role":"system","content":[],"output_config":{"effort":"low"}},{"role":"assistant","content":"system"}]}`,
			`{"system":"s","messages":[{"role":"user","content":"hi"},{"role":"user","content":[{"type":"text","text":"<system>\na <b>\n</system>"}]},{"role":"user","content":[{"type":"text","text":"<system>\nc\n</system>"}]},{"role":"assistant","content":"system"}]}`, "messages"},
		{counts, `{"system":[{"type":"text","text":"s"}], "messages":[{"role":"user","content":"the \"system\""},{"role":"assistant","content":"system"}]}`, "", ""},
		{adaptive, `{"messages":[{"role":"user","content":"hi"},{"role":"system","content":"a"}]}`, "", ""},
		{translate.Target{Model: "claude-of-tomorrow"}, `{"max_tokens":10,"thinking":{"type":"enabled","budget_tokens":2000},"temperature":0}`, "", ""},
	} {
		for _, provider := range []translate.Adapter{Provider{}, Vertex{}} {
			got, warnings := provider.Adapt(plugins.Messages, plugintest.Object(t, test.body), test.target)
			if test.want == "" {
				test.want = test.body
			}
			fields := make([]string, len(warnings))
			for i, w := range warnings {
				fields[i], _, _ = strings.Cut(w, ":")
			}
			if string(got) != test.want || strings.Join(fields, " ") != test.warned {
				t.Errorf("%s: %s becomes %s, warnings %q; want %s", test.target.Model, test.body, got, warnings, test.want)
			}
		}
	}
}
