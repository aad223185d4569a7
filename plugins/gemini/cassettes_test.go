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
	for _, e := range gjson.GetBytes(index, `entries.#(endpoint=="generateContent")#`).Array() {
		if e.Get("http_status").Int() != http.StatusOK {
			continue
		}
		t.Run(e.Get("name").Str, func(t *testing.T) {
			body, err := os.ReadFile(filepath.Join(cassettes, e.Get("response_file").Str))
			if err != nil {
				t.Fatal(err)
			}
			stream := e.Get("stream").Bool()
			var sink bytes.Buffer
			a := translate.NewAssembler(&translate.Request{Model: "m", Stream: stream}, &sink, translate.Options{})
			if err := (Provider{}).Decode(response(http.StatusOK, string(body)), a); err != nil {
				t.Fatal(err)
			}
			end := a.End()
			if stream {
				sink.Write(end)
				if _, err := plugintest.Check(sink.Bytes()); err != nil {
					t.Errorf("an illegal stream: %v", err)
				}
			}
			r, x, want := gjson.ParseBytes(a.Response()), a.Info(), e.Get("expected")
			status := map[string]string{"STOP": "completed", "MAX_TOKENS": "incomplete"}[want.Get("finish").Str]
			if got := r.Get("status").Str; got != status {
				t.Errorf("the response is %s: %s", got, r)
			}
			if x.Model != want.Get("model").Str || x.ResponseID != want.Get("response_id").Str {
				t.Errorf("got %s of %s, want %s of %s", x.ResponseID, x.Model, want.Get("response_id"), want.Get("model"))
			}
			for field, got := range map[string]plugins.Count{
				"input_tokens": x.Usage.Input, "output_tokens": x.Usage.Output, "cache_read_tokens": x.Usage.CacheRead,
				"cache_write_tokens": x.Usage.CacheWrite,
				"reasoning_tokens":   x.Usage.Reasoning,
			} {
				if got.N != want.Get("usage."+field).Int() {
					t.Errorf("%s: got %d, want %s", field, got.N, want.Get("usage."+field))
				}
			}
		})
	}
}
