package plugintest

import (
	"bytes"
	"cmp"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// incomplete are the finish reasons by which a recorded answer was cut off.
var incomplete = map[string]string{"MAX_TOKENS": "incomplete", "content_filter": "incomplete", "length": "incomplete"}

// Cassettes decodes the recorded answers of an endpoint, as the recordings'
// index names it, and holds status, model, id and usage against what was
// reported. The provider is that of a name in the index. The recordings are not
// part of this repository: WEIR_RECORDINGS names their folder, and without it the
// test is skipped.
func Cassettes(t *testing.T, endpoint string, provider func(name string) translate.Provider) {
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
		t.Run(e.Get("name").Str, func(t *testing.T) {
			body, err := os.ReadFile(filepath.Join(folder, e.Get("response_file").Str))
			if err != nil {
				t.Fatal(err)
			}
			p := provider(e.Get("provider").Str)
			if status := int(e.Get("http_status").Int()); status != http.StatusOK {
				resp := Response(status, body)
				defer resp.Body.Close()
				if got := p.Error(resp); got.Status != status {
					t.Errorf("got the error %+v", got)
				}
				return
			}
			compareCassette(t, p, e, body)
		})
	}
}

func compareCassette(t *testing.T, p translate.Provider, e gjson.Result, body []byte) {
	t.Helper()
	stream, want := e.Get("stream").Bool(), e.Get("expected")
	var sink bytes.Buffer
	a := translate.NewAssembler(&translate.Request{Model: "m", Stream: stream}, &sink, translate.Options{})
	resp := Response(http.StatusOK, body)
	defer resp.Body.Close()
	if err := p.Decode(resp, a); err != nil {
		t.Fatal(err)
	}
	end := a.End()
	if stream {
		sink.Write(end)
		if _, err := Check(sink.Bytes()); err != nil {
			t.Errorf("an illegal stream: %v", err)
		}
	}
	r, x := gjson.ParseBytes(a.Response()), a.Info()
	if got := r.Get("status").Str; got != cmp.Or(incomplete[want.Get("finish").Str], "completed") {
		t.Errorf("the response is %s: %s", got, r)
	}
	if id := want.Get("response_id").Str; x.Model != want.Get("model").Str || !strings.HasPrefix(x.ResponseID, id) {
		t.Errorf("got %s of %s, want %s of %s", x.ResponseID, x.Model, id, want.Get("model"))
	}
	for feature, item := range chatItems {
		if e.Get(`features.#(=="`+feature+`")`).Exists() && !r.Get(`output.#(type=="`+item+`")`).Exists() {
			t.Errorf("there is no %s in %s", item, r.Get("output"))
		}
	}
	for field, got := range map[string]plugins.Count{
		"input_tokens": x.Usage.Input, "output_tokens": x.Usage.Output, "cache_read_tokens": x.Usage.CacheRead,
		"cache_write_tokens": x.Usage.CacheWrite, "cache_write_1h": x.Usage.CacheWrite1h, "reasoning_tokens": x.Usage.Reasoning,
	} {
		if got.N != want.Get("usage."+field).Int() {
			t.Errorf("%s: got %d, want %s", field, got.N, want.Get("usage."+field))
		}
	}
}
