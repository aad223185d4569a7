package agents

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/inbound"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/translate"
)

// Reply answers a request as the call's provider does, in the format that its path asks for.
func (c *Call) Reply(w http.ResponseWriter, path string, body []byte) {
	if c.Status != http.StatusOK {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(c.Status)
		_, _ = w.Write([]byte(`{"type":"error","error":{"type":"server_error","code":500,"message":"An internal error."}}`))
		return
	}
	stream := gjson.GetBytes(body, "stream").Bool() || strings.Contains(path, ":stream")
	contentType := "application/json"
	if stream {
		contentType = "text/event-stream"
	}
	w.Header().Set("Content-Type", contentType)
	if api, ok := inbound.Of(observe.Detect(c.Provider, path)); ok {
		c.answer(w, api, stream)
		return
	}
	answer := Encode(c.gemini())
	if stream {
		answer = fmt.Appendf(nil, "data: %s\n\n", answer)
	}
	_, _ = w.Write(answer)
}

// id tells answers from each other.
func (c *Call) id() string { return fmt.Sprint(c.number) }

// answer writes the answer in an API that the gateway speaks. A stream has its usage, also
// unasked.
func (c *Call) answer(w io.Writer, api inbound.API, stream bool) {
	p := &translate.Request{Raw: []byte(`{"stream_options":{"include_usage":true}}`), Model: c.Model, Stream: stream}
	items := 0
	a := translate.NewAssembler(p, w, translate.Options{Encoder: api.Encoder(p), ID: func(prefix string) string {
		items++
		return fmt.Sprintf("%s%s_%d", prefix, c.id(), items)
	}})
	a.Text(0, c.Answer.Text)
	for i, call := range c.Answer.Calls {
		a.Call(i+1, call.ID, call.Name)
		a.Args(i+1, call.arguments())
	}
	a.Usage(plugins.Usage{
		Input: plugins.Known(int64(c.Usage.Input)), Output: plugins.Known(int64(c.Usage.Output)),
		CacheRead: plugins.Known(int64(c.Usage.Cached)), CacheWrite: plugins.Known(int64(c.Usage.Written)),
	})
	a.Finish(translate.ReasonStop)
	_, _ = w.Write(a.End())
}

func (c *Call) gemini() object {
	return object{
		"responseId": c.id(), "modelVersion": c.Model,
		"candidates": []object{{"index": 0, "content": object{"role": "model", "parts": geminiParts(c.Answer)}, "finishReason": "STOP"}},
		"usageMetadata": object{
			"promptTokenCount": c.Usage.Input, "candidatesTokenCount": c.Usage.Output, "totalTokenCount": c.Usage.Input + c.Usage.Output,
			"cachedContentTokenCount": c.Usage.Cached,
		},
	}
}
