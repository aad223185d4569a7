package llmgateway

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// A field of a form that is nested without an end is a text: to read it as JSON would take the
// stack of the process, which then ends.
func TestFormIsNotNestedDeeply(t *testing.T) {
	deep := strings.Repeat("[", 6_000_000)
	f := parseForm("multipart/form-data; boundary=b", []byte("--b\r\nContent-Disposition: form-data; name=\"n\"\r\n\r\n"+deep+
		"\r\n--b\r\nContent-Disposition: form-data; name=\"stream\"\r\n\r\ntrue\r\n--b--"))
	if n, stream := f.field("n"), f.field("stream"); n.Type != gjson.String || stream.Type != gjson.True {
		t.Errorf("%v %v", n.Type, stream.Type)
	}
}

// The estimate of tokens looks for media where they can be, and not on each of ten thousand
// levels.
func TestMediaAreNotLookedForEverywhere(t *testing.T) {
	image := `{"type":"image","source":{"type":"base64","data":"AAAA"}}`
	for body, want := range map[string]int{
		`{"messages":[{"content":[{"type":"tool_result","content":[` + image + `]}]}]}`: 1,
		strings.Repeat("[", 9) + image + strings.Repeat("]", 9):                         0,
	} {
		if _, media := measure(gjson.Parse(body), 0); media != want {
			t.Errorf("%d media in %s", media, body)
		}
	}
}
