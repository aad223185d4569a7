package demand

import (
	"fmt"
	"testing"

	"github.com/tidwall/gjson"

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
		d := Of(c.dialect, []byte(body), func(gjson.Result) bool { return false })
		if got := d.Usage(m, Most, int64(len(body)), 1, 1).WebSearches.N; got != c.want {
			t.Errorf("%s: %d searches, want %d", body, got, c.want)
		}
	}
}
