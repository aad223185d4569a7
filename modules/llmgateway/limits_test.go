package llmgateway

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

func TestShape(t *testing.T) {
	for body, want := range map[string][2]int{
		`{}`:                             {1, 1},
		`{"a":[1,2,{"b":"],[{"}],"c":0}`: {6, 3},
		`{"a":"\\","b":"\"[["}`:          {2, 1},
		`["\\\"[",[[]]]`:                 {4, 3},
	} {
		if values, depth := shape([]byte(body)); values != want[0] || depth != want[1] {
			t.Errorf("%s has %d values in %d levels, want %v", body, values, depth, want)
		}
	}
}

// A request of Responses that would take many times its length is refused before
// anything is made of it.
func TestSizeOfRequests(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {hello}})
	s.handler.MaxItems, s.handler.MaxTools = 100, 10
	const item, tool = `{"role":"user","content":"a, b"}`, `{"type":"function","name":"f%d"}`
	list := func(n int, form string) string {
		var items []string
		for i := range n {
			items = append(items, strings.ReplaceAll(form, "%d", fmt.Sprint(i)))
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	for name, c := range map[string]struct {
		fields, param string
		status        int
	}{
		"items":           {`"input":` + list(100, item), "", http.StatusOK},
		"too many items":  {`"input":` + list(101, item), "input", http.StatusRequestEntityTooLarge},
		"tools":           {`"input":"hi","tools":` + list(10, tool), "", http.StatusOK},
		"too many tools":  {`"input":"hi","tools":` + list(11, tool), "tools", http.StatusRequestEntityTooLarge},
		"too many values": {`"input":[{"role":"user","content":` + list(maxValues/2, `{"":0}`) + `}]`, "", http.StatusRequestEntityTooLarge},
		"too deep":        {`"input":"hi","metadata":` + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth), "", http.StatusRequestEntityTooLarge},
		"commas":          {`"input":"` + strings.Repeat(",[", maxValues) + `"`, "", http.StatusOK},
	} {
		resp, body := s.post(`{"model":"one/m",` + c.fields + `}`)
		if resp.StatusCode != c.status || gjson.Get(body, "error.param").Str != c.param {
			t.Errorf("%s: %d %.300s", name, resp.StatusCode, body)
		}
	}
}
