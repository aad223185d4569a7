package chat

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

// cassettes is a folder of recorded traffic, which is not part of this
// repository. Without it, the tests that replay it are skipped.
var cassettes = os.Getenv("WEIR_RECORDINGS")

// statuses are those of recorded finish reasons.
var statuses = map[string]string{"length": "incomplete", "content_filter": "incomplete"}

func TestCassettes(t *testing.T) {
	index, err := os.ReadFile(filepath.Join(cassettes, "index.json"))
	if err != nil {
		t.Skip("no recorded traffic: ", err)
	}
	for _, e := range gjson.GetBytes(index, `entries.#(endpoint=="chat.completions")#`).Array() {
		t.Run(e.Get("name").Str, func(t *testing.T) {
			body, err := os.ReadFile(filepath.Join(cassettes, e.Get("response_file").Str))
			if err != nil {
				t.Fatal(err)
			}
			p := For(e.Get("provider").Str)
			if p == nil {
				p = For("compatible")
			}
			if status := int(e.Get("http_status").Int()); status != http.StatusOK {
				if got := p.Error(response(status, string(body))); got.Status != status {
					t.Errorf("got %+v", got)
				}
				return
			}
			stream, want := e.Get("stream").Bool(), e.Get("expected")
			var sink bytes.Buffer
			a := translate.NewAssembler(&translate.Request{Stream: stream, Model: "m"}, &sink, translate.Options{})
			if err := p.Decode(response(http.StatusOK, string(body)), a); err != nil {
				t.Fatal(err)
			}
			end := a.End()
			if stream {
				sink.Write(end)
				if _, err := plugintest.Check(sink.Bytes()); err != nil {
					t.Errorf("an illegal stream: %v", err)
				}
			}
			if !stream {
				chunks, object := streamed(t, p, body), gjson.ParseBytes(a.Response())
				for _, path := range []string{"output.#.type", "output.#.content.0", "output.#.arguments", "status", "usage"} {
					if got, want := chunks.Get(path).Raw, object.Get(path).Raw; got != want {
						t.Errorf("as a stream %s is %s, as an object %s", path, got, want)
					}
				}
			}
			r, x := gjson.ParseBytes(a.Response()), a.Info()
			status := statuses[want.Get("finish").Str]
			if status == "" {
				status = "completed"
			}
			if got := r.Get("status").Str; got != status || len(r.Get("output").Array()) == 0 {
				t.Errorf("the response is %s: %s", got, r)
			}
			for feature, item := range map[string]string{"tool_calls": "function_call", "reasoning": "reasoning", "reasoning_content": "reasoning"} {
				asked := e.Get(`features.#(=="` + feature + `")`).Exists()
				if asked && !r.Get(`output.#(type=="`+item+`")`).Exists() {
					t.Errorf("no %s in %s", item, r.Get("output"))
				}
			}
			if id := want.Get("response_id").Str; x.Model != want.Get("model").Str || id != "" && !strings.HasPrefix(x.ResponseID, id) {
				t.Errorf("got %s of %s, want %s of %s", x.ResponseID, x.Model, id, want.Get("model"))
			}
			for field, got := range map[string]plugins.Count{
				"input_tokens": x.Usage.Input, "output_tokens": x.Usage.Output, "cache_read_tokens": x.Usage.CacheRead,
				"cache_write_tokens": x.Usage.CacheWrite, "reasoning_tokens": x.Usage.Reasoning,
			} {
				if got.N != want.Get("usage."+field).Int() {
					t.Errorf("%s: got %d, want %s", field, got.N, want.Get("usage."+field))
				}
			}
		})
	}
}

// streamed is the response that comes of a completion as a stream of one chunk.
func streamed(t *testing.T, p *Provider, completion []byte) gjson.Result {
	var compact bytes.Buffer
	if err := json.Compact(&compact, completion); err != nil {
		t.Fatal(err)
	}
	chunk := bytes.Replace(compact.Bytes(), []byte(`"message":{`), []byte(`"delta":{`), 1)
	a := translate.NewAssembler(&translate.Request{Stream: true, Model: "m"}, new(bytes.Buffer), translate.Options{})
	if err := p.Decode(response(http.StatusOK, "data: "+string(chunk)+"\n\ndata: [DONE]\n\n"), a); err != nil {
		t.Fatal(err)
	}
	a.End()
	return gjson.ParseBytes(a.Response())
}
