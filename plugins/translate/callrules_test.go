package translate_test

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins/translate"
)

// A client gets its own name of a tool back, also where the provider has got another, and where
// two long names begin alike.
func TestClientsGetTheirNamesBack(t *testing.T) {
	long := strings.Repeat("mcp__server__", 5)
	const body = `{"model":"m","input":"hi","tools":[{"type":"function","name":"L1"},{"type":"function","name":"L2"},
		{"type":"namespace","name":"N","tools":[{"type":"function","name":"f"}]}],"tool_choice":{"type":"function","name":"L1"}}`
	p, err := translate.ParseRequest([]byte(strings.NewReplacer("L1", long+"1", "L2", long+"2", "N", long).Replace(body)))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.FitCalls(translate.CallRules{}); err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for i, want := range []string{long + "1", long + "2", "f"} {
		name := p.Tools[i].Name
		if len(name) > 64 || seen[name] {
			t.Errorf("the provider gets the name %q", name)
		}
		seen[name] = true
		a := translate.NewAssembler(p, nil, translate.Options{})
		a.Start("m", "r")
		a.Call(0, "call_1", name)
		a.Args(0, "{}")
		a.Finish(translate.ReasonStop)
		a.End()
		if outputs := a.Outputs(); len(outputs) != 1 || outputs[0].Name != want {
			t.Errorf("the client gets %+v, want the name %q", outputs, want)
		}
	}
	if p.ToolChoice.Name != p.Tools[0].Name {
		t.Errorf("the choice is of %q", p.ToolChoice.Name)
	}
}
