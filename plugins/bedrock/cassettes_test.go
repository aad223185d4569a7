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
	"github.com/weirhq/weir/plugins/translate"
)

// cassettes is a folder of recorded traffic, which is not part of this
// repository. Without it, the tests that replay it are skipped.
var cassettes = os.Getenv("WEIR_RECORDINGS")

func TestCassettes(t *testing.T) {
	index, err := os.ReadFile(filepath.Join(cassettes, "index.json"))
	if err != nil {
		t.Skip("no recorded traffic: ", err)
	}
	for _, e := range gjson.GetBytes(index, `entries.#(endpoint=="converse")#`).Array() {
		t.Run(e.Get("name").Str, func(t *testing.T) {
			body, err := os.ReadFile(filepath.Join(cassettes, e.Get("response_file").Str))
			if err != nil {
				t.Fatal(err)
			}
			if status := int(e.Get("http_status").Int()); status != http.StatusOK {
				if got := new(Provider).Error(response(status, body)); got.Status != status || got.Code != "model_not_found" {
					t.Errorf("got the error %+v", got)
				}
				return
			}
			stream := e.Get("stream").Bool()
			var sink bytes.Buffer
			a := translate.NewAssembler(&translate.Request{Model: "m", Stream: stream}, &sink, translate.Options{})
			if err := new(Provider).Decode(response(http.StatusOK, body), a); err != nil {
				t.Fatal(err)
			}
			end := a.End()
			if stream {
				sink.Write(end)
				if _, err := plugintest.Check(sink.Bytes()); err != nil {
					t.Errorf("an illegal stream: %v", err)
				}
			}
			r, x, want := gjson.ParseBytes(a.Response()), a.Info(), e.Get("expected.usage")
			if r.Get("status").Str != "completed" || len(r.Get("output").Array()) == 0 {
				t.Errorf("the response is %s", r)
			}
			for _, name := range r.Get(`output.#(type=="function_call")#.name`).Array() {
				if name.Str == codeInterpreter {
					t.Error("a call of a hosted tool is given to the client")
				}
			}
			for field, got := range map[string]plugins.Count{
				"input_tokens": x.Usage.Input, "output_tokens": x.Usage.Output, "cache_read_tokens": x.Usage.CacheRead,
				"cache_write_tokens": x.Usage.CacheWrite, "total_tokens": x.Usage.Total(),
			} {
				if got.N != want.Get(field).Int() {
					t.Errorf("%s: got %d, want %s", field, got.N, want.Get(field))
				}
			}
		})
	}
}
