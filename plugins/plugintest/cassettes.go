package plugintest

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// Cassettes decodes the recorded answers of an endpoint, as the recordings'
// index names it, and holds model, id and usage against what was reported. The
// recordings are not part of this repository: WEIR_RECORDINGS names their folder,
// and without it the test is skipped.
func Cassettes(t *testing.T, provider translate.Provider, endpoint string) {
	folder := os.Getenv("WEIR_RECORDINGS")
	index, err := os.ReadFile(filepath.Join(folder, "index.json"))
	if err != nil {
		t.Skip("no recorded traffic: ", err)
	}
	entries := gjson.GetBytes(index, `entries.#(endpoint=="`+endpoint+`")#`).Array()
	if len(entries) == 0 {
		t.Fatalf("nothing was recorded of an endpoint %q", endpoint)
	}
	for _, e := range entries {
		if e.Get("http_status").Int() != http.StatusOK {
			continue
		}
		t.Run(e.Get("name").Str, func(t *testing.T) {
			body, err := os.ReadFile(filepath.Join(folder, e.Get("response_file").Str))
			if err != nil {
				t.Fatal(err)
			}
			stream := e.Get("stream").Bool()
			var sink bytes.Buffer
			a := translate.NewAssembler(&translate.Request{Model: "m", Stream: stream}, &sink, translate.Options{})
			answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body))}
			if err := provider.Decode(answer, a); err != nil {
				t.Fatal(err)
			}
			end := a.End()
			if stream {
				sink.Write(end)
				if _, err := Check(sink.Bytes()); err != nil {
					t.Errorf("an illegal stream: %v", err)
				}
			}
			r, x, want := gjson.ParseBytes(a.Response()), a.Info(), e.Get("expected")
			if got := r.Get("status").Str; got != "completed" {
				t.Errorf("the response is %s: %s", got, r)
			}
			if x.Model != want.Get("model").Str || x.ResponseID != want.Get("response_id").Str {
				t.Errorf("got %s of %s, want %s of %s", x.ResponseID, x.Model, want.Get("response_id"), want.Get("model"))
			}
			for field, got := range map[string]plugins.Count{
				"input_tokens": x.Usage.Input, "output_tokens": x.Usage.Output, "cache_read_tokens": x.Usage.CacheRead,
				"cache_write_tokens": x.Usage.CacheWrite, "cache_write_1h": x.Usage.CacheWrite1h, "reasoning_tokens": x.Usage.Reasoning,
			} {
				if got.N != want.Get("usage."+field).Int() {
					t.Errorf("%s: got %d, want %s", field, got.N, want.Get("usage."+field))
				}
			}
		})
	}
}
