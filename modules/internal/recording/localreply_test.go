package recording

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/weirhq/weir/modules/internal/cache"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// TestLocalReplyIsTheSameInEachLane compares what the gateway writes with what a proxy gets.
func TestLocalReplyIsTheSameInEachLane(t *testing.T) {
	body := storage.Body{Type: "application/json", Data: []byte(`{"id":"a"}`)}
	for name, reply := range map[string]*LocalReply{
		"refusal":  Refuse(plugins.Messages, plugins.Invalid("model", "There is no such model.")),
		"hit":      Repeat(&cache.Hit{Record: new(storage.Record), Body: body}),
		"stream":   Repeat(&cache.Hit{Record: &storage.Record{Stream: true}, Body: storage.Body{Type: "text/event-stream", Data: []byte("data: {}\n\n")}}),
		"estimate": {Status: http.StatusOK, Body: body},
	} {
		written, request := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/v1/messages", http.NoBody)
		if err := reply.Write(written); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		w, r := written.Result(), reply.Response(request)
		sent, err := io.ReadAll(w.Body)
		passed, err2 := io.ReadAll(r.Body)
		w.Body.Close()
		r.Body.Close()
		if err != nil || err2 != nil || string(sent) != string(passed) || w.StatusCode != r.StatusCode || w.ContentLength != r.ContentLength ||
			w.Header.Get("Content-Type") != r.Header.Get("Content-Type") {
			t.Errorf("%s: written %d %q (%d bytes), passed %d %q (%d bytes)", name, w.StatusCode, sent, w.ContentLength, r.StatusCode, passed, r.ContentLength)
		}
	}
}

// An answer that Weir gives itself costs nothing, even if an observer of it sees a usage.
func TestALocalAnswerCostsNothing(t *testing.T) {
	x, _ := begin(t)
	defer x.Close()
	x.Answer = &answer{Model: "gpt-4o", Usage: plugins.Usage{Input: plugins.Known(1000), Output: plugins.Known(10)}}
	x.Reply(&LocalReply{Status: http.StatusOK, Body: storage.Body{Type: "application/json", Data: []byte(`{"id":"a"}`)}})
	x.End(storage.Complete)
	if r := x.Record; r.Cost != plugins.KnownCost(0) || r.Usage.Input != plugins.Known(0) || r.Usage.Output != plugins.Known(0) {
		t.Errorf("cost %v, usage %v", r.Cost, r.Usage)
	}
}
