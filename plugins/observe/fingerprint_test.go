package observe

import (
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins"
)

// A request begins with the fingerprints of the one before it, whatever marks a cache, and no
// other request has them.
func TestFingerprints(t *testing.T) {
	first := `{"model":"m","system":"You are.","tools":[{"name":"t"}],"messages":[{"role":"user","content":"Hello there"}]}`
	before := Fingerprints(plugins.Messages, []byte(first))
	if len(before) != 1 {
		t.Fatalf("one message has %d fingerprints", len(before))
	}
	for change, same := range map[[2]string]bool{
		{`"Hello there"}`, `"Hello there"},{"role":"assistant","content":"Hi"},{"role":"user","content":"Go on"}`}:                       true,
		{`"content":"Hello there"`, `"content": [{"type":"text","text":"Hello there","cache_control":{"type":"ephemeral","ttl":"1h"}}]`}: true,
		{`"m"`, `"other"`}:               true,
		{"Hello there", "Hello"}:         false,
		{"You are.", "You were."}:        false,
		{`{"name":"t"}`, `{"name":"u"}`}: false,
	} {
		after := Fingerprints(plugins.Messages, []byte(strings.Replace(first, change[0], change[1], 1)))
		if len(after) == 0 || (after[0] == before[0]) != same {
			t.Errorf("%q: the first of %d fingerprints is %t", change, len(after), !same)
		}
	}
	if slices.Contains(Fingerprints(plugins.Messages, []byte(strings.Replace(first, `{"role"`, `{"role":"user","content":"Before"},{"role"`, 1))), before[0]) {
		t.Error("a message after another one has the same fingerprint")
	}
	for _, body := range []string{"", "{", "[]", `{"messages":[]}`, "--form"} {
		if got := Fingerprints(plugins.Messages, []byte(body)); got != nil {
			t.Errorf("%q has fingerprints", body)
		}
	}
}
