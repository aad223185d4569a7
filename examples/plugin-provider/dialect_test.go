package acme

import (
	"net/http"
	"os"
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
)

// TestDialect reads Acme's traffic as llm_log does, byte by byte.
func TestDialect(t *testing.T) {
	if got := observe.Provider("eu.api.acme.example:443"); got != "acme" {
		t.Errorf("Acme's host is of %q", got)
	}
	dialect := observe.Detect("acme", "/generate")
	for _, c := range []struct {
		file, contentType string
		want              plugins.ResponseInfo
		stored            string
	}{
		{
			"text.json", "application/json",
			plugins.ResponseInfo{Model: "anvil-1", ResponseID: "gen-1", Finish: "done", Content: true, Phase: plugins.Ended,
				Usage: plugins.Usage{Input: plugins.Known(12), CacheRead: plugins.Known(4), Output: plugins.Known(3)}},
			"",
		},
		{
			"text.sse", "text/event-stream",
			plugins.ResponseInfo{Stream: true, Model: "anvil-1", ResponseID: "gen-1", Finish: "done", Content: true, Phase: plugins.Ended,
				Usage: plugins.Usage{Input: plugins.Known(12), CacheRead: plugins.Known(4), Output: plugins.Known(3)}},
			`{"id":"gen-1","model":"anvil-1","text":"Beep, beep.","stopped":"done","tokens":{"in":12,"cached":4,"out":3}}`,
		},
		{
			"calls.sse", "text/event-stream",
			plugins.ResponseInfo{Stream: true, Model: "anvil-1", ResponseID: "gen-2", Finish: "done", Content: true, Phase: plugins.Ended,
				Usage: plugins.Usage{Input: plugins.Known(40), CacheRead: plugins.Known(0), Output: plugins.Known(21)}},
			`{"id":"gen-2","model":"anvil-1","text":"On its way.","calls":[{"index":0,"id":"c1","tool":"drop","input":"{\"day\":\"Tuesday\"}"},` +
				`{"index":1,"id":"c2","tool":"note","input":"{\"input\":\"dropped\"}"}],"stopped":"done","tokens":{"in":40,"cached":0,"out":21}}`,
		},
		{
			"error.sse", "text/event-stream",
			plugins.ResponseInfo{Stream: true, Model: "anvil-1", ResponseID: "gen-4", Content: true, ErrorType: "dropped"},
			`{"id":"gen-4","model":"anvil-1","text":"Bee","error":{"code":"dropped","message":"The anvil fell."}}`,
		},
	} {
		raw, err := os.ReadFile("testdata/" + c.file)
		if err != nil {
			t.Fatal(err)
		}
		observer := observe.New(dialect, "acme", http.Header{"Content-Type": {c.contentType}})
		for i := range raw {
			observer.Write(raw[i : i+1])
		}
		observer.Close()
		c.want.Dialect = dialect
		if got := *observer.Info(); got != c.want {
			t.Errorf("%s says\n%+v, want\n%+v", c.file, got, c.want)
		}
		if c.stored == "" {
			c.stored = string(raw)
		}
		if stored, _ := observe.Transcript(dialect).Stored(c.contentType, raw); string(stored) != c.stored {
			t.Errorf("%s is stored as\n%s, want\n%s", c.file, stored, c.stored)
		}
	}
}
