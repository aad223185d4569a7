package gemini

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/plugintest"
)

// FuzzDecode: whatever the provider sends, the client gets a legal stream or
// object.
func FuzzDecode(f *testing.F) {
	for _, suffix := range []string{"sse", "json"} {
		paths, _ := filepath.Glob("testdata/*." + suffix)
		for _, path := range paths {
			b, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b, suffix == "sse")
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, stream bool) {
		p := &plugins.Prompt{Model: "m", Stream: stream, Tools: []plugins.Tool{{Type: "custom", Name: "patch"}, {Type: "web_search"}}}
		var sink bytes.Buffer
		a := plugins.NewAssembler(p, &sink, plugins.Options{})
		if err := (Provider{}).Decode(response(http.StatusOK, string(body)), a); err != nil {
			t.Fatal(err)
		}
		end := a.End()
		if !stream {
			if !gjson.ValidBytes(end) {
				t.Errorf("not JSON: %s", end)
			}
			return
		}
		sink.Write(end)
		if _, err := plugintest.Check(sink.Bytes()); err != nil {
			t.Errorf("%v: %s", err, sink.Bytes())
		}
	})
}
