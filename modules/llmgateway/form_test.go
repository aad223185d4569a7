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

// What two readers of a form could read in two ways is no form.
func TestFormsThatReadersReadInTwoWays(t *testing.T) {
	const named = "Content-Disposition: form-data; name=\"model\""
	for head, valid := range map[string]bool{
		named: true,
		"content-disposition:form-data; name=\"model\"\r\nContent-Type: text/plain; charset=utf-8":               true,
		"Content-Disposition: form-data; name=\"file\"; filename=\"a \\\"b\\\".wav\"\r\nContent-Type: audio/wav": true,
		"Content-Disposition: form-data; name=\"file\"; filename*=utf-8''%C3%A4.wav":                             true,
		named + "\r\n" + "Content-Disposition: form-data; name=\"user\"":                                         false,
		named + "; name*=utf-8''user":                        false,
		named + "; name=\"user\"":                            false,
		"Content-Disposition: form-data; name*=utf-8''model": false,
		"Content-Disposition: form-data; name=\"mo\\del\"":   false,
		"Content-Disposition: form-data; name=model":         false,
		"Content-Disposition: attachment; name=\"model\"":    false,
		"Content-Disposition: form-data;\r\n name=\"model\"": false,
		named + "\nX: y":   false,
		named + "\n\nuser": false,
		named + "\r\nContent-Transfer-Encoding: base64":           false,
		named + "\r\nContent-Transfer-Encoding: quoted-printable": false,
		"Content-Type: text/plain":                                false,
	} {
		body := "--b\r\n" + head + "\r\n\r\nvalue\r\n--b--\r\n"
		if f := parseForm("multipart/form-data; boundary=b", []byte(body)); (f != nil) != valid {
			t.Errorf("%q: %v", head, f)
		}
	}
	for contentType, body := range map[string]string{
		"multipart/form-data; boundary*0=b; boundary*1=c": "--bc\r\n" + named + "\r\n\r\nvalue\r\n--bc--",
		"multipart/form-data; boundary=b":                 "--b\r\n" + named + "\r\n\r\nvalue\r\n--bx\r\n" + named + "\r\n\r\nother\r\n--b--",
	} {
		if f := parseForm(contentType, []byte(body)); f != nil {
			t.Errorf("%s: %q", contentType, body)
		}
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
