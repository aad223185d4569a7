package bedrock

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
// object. Streams are fuzzed as the lines that their frames are made of.
func FuzzDecode(f *testing.F) {
	for _, suffix := range []string{"events", "json"} {
		paths, _ := filepath.Glob("testdata/*." + suffix)
		for _, path := range paths {
			b, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b, suffix == "events")
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, stream bool) {
		if stream && len(body) < 1<<15 { // a header is no longer
			body = append(eventStream(t, string(body)), body...)
		}
		p := &plugins.Prompt{Model: "m", Stream: stream, Tools: []plugins.Tool{{Type: "custom", Name: "patch"}}}
		p.Format.Type = "json_schema"
		var sink bytes.Buffer
		a := plugins.NewAssembler(p, &sink, plugins.Options{})
		if err := new(Provider).Decode(response(http.StatusOK, body), a); err != nil {
			a.Fail(plugins.Upstream("%v", err))
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
