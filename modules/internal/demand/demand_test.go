package demand

import (
	"fmt"
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
)

// Each hosted tool may be called as often as it says, and what one tool says bounds no other.
// Only Responses bound all calls together: vendors of other formats ignore the field.
func TestHostedCalls(t *testing.T) {
	m := &catalog.Model{}
	m.Context = 1000
	for _, c := range []struct {
		dialect plugins.Dialect
		fields  string
		want    int64
	}{
		{plugins.Messages, `"tools":[{"type":"web_search_20250305"}]`, 10},
		{plugins.Messages, `"tools":[{"type":"web_search_20250305","max_uses":3}]`, 3},
		{plugins.Messages, `"tools":[{"type":"web_search_20250305","max_uses":1,"max_uses":3}]`, 3},
		{plugins.Messages, `"tools":[{"type":"web_search_20250305"},{"type":"web_fetch_20250910","max_uses":1}]`, 11},
		{plugins.Messages, `"tools":[{"type":"web_search_20250305"},{"name":"f","input_schema":{},"max_uses":1}]`, 10},
		{plugins.Messages, `"tools":[{"type":"web_search_20250305","max_uses":5},{"type":"web_search_20260209","max_uses":5}]`, 10},
		{plugins.Responses, `"max_tool_calls":2,"tools":[{"type":"web_search"}]`, 2},
		{plugins.Chat, `"max_tool_calls":1,"web_search_options":{}`, 10},
	} {
		body := fmt.Sprintf(`{"model":"m",%s}`, c.fields)
		d := Of(c.dialect, []byte(body), nil)
		if got := d.Usage(m, Most, int64(len(body)), 1, 1).WebSearches.N; got != c.want {
			t.Errorf("%s: %d searches, want %d", body, got, c.want)
		}
	}
}

// A compaction reads what the model reads once more, and writes beside the limit of the answer.
func TestCompactionsAreSetAside(t *testing.T) {
	m := &catalog.Model{}
	m.Context, m.MaxOutput = 1000, 100
	for edits, want := range map[string][2]int64{
		`[{"type":"clear_tool_uses_20250919"}]`:                                  {1000, 5},
		`[{"type":"compact_20260112"}]`:                                          {2000, 105},
		`[{"type":"clear_tool_uses_20250919"},{"type":"comp\u0061ct_20260112"}]`: {2000, 105},
		`[{"type":"clear_a","type":"compact_20260112"}]`:                         {2000, 105},
	} {
		body := `{"model":"m","max_tokens":5,"context_management":{"edits":` + edits + `}}`
		d := Of(plugins.Messages, []byte(body), nil)
		u := d.Usage(m, Most, int64(len(body)), 5, 1)
		if got := [2]int64{u.Input.N, u.Output.N}; got != want {
			t.Errorf("%s: %d tokens, want %d", edits, got, want)
		}
	}
}
