package bills

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/reconcile"
)

// What no record has cannot be shown, and the calls of other models are not it.
func TestLink(t *testing.T) {
	r := &reconcile.Report{Providers: []string{"openai"}, Differences: []reconcile.Difference{
		{Model: "unrecorded"}, {Model: "m", Names: []string{"m"}}, {}, {Model: "m-2026", Condition: "in=null"},
	}}
	if err := Link(r); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"", `model="m"`, "provider=", "in=null"} {
		if d := r.Differences[i]; (d.Query == "") != (want == "") || (d.Filter == nil) != (want == "") || !strings.Contains(d.Query, want) {
			t.Errorf("%s: %s %s, want %q", d.Model, d.Query, d.Filter, want)
		}
	}
}

// Keys of a bill all have a label, or none has.
func TestKeysOfABill(t *testing.T) {
	b := &Bill{Name: "openai", AdminKey: "{env.X}", Keys: map[string]string{"key_1": "", "key_2": "eu"}}
	if err := b.Provision(); err == nil || !strings.Contains(err.Error(), "give every key a label, or none") {
		t.Error(err)
	}
}
