package llmlog

import (
	"cmp"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/capture"
	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"
)

// mark is what a later commit may have to correct in an earlier one.
type mark struct {
	made                        bool
	end                         storage.EndState
	status                      plugins.Count
	requestBytes, responseBytes int64
	extraction                  plugins.ResponseInfo
}

// commit brings the record into the journal as it is known now, unless it
// stands there already. It returns when the end of the process could not lose
// it any more.
func (x *exchange) commit() {
	x.update(time.Now())
	r := &x.record
	m := mark{true, r.EndState, r.Status, r.RequestBytes, r.ResponseBytes, *x.seen}
	if x.lost || m == x.committed {
		return
	}
	if err := x.recorder.Append(r, &x.content); err != nil {
		x.lost = true // it was counted, so it must stay so
		x.h.logger.Error("a record is lost", zap.Stringer("id", r.ID), zap.String("store", x.h.store), zap.Error(err))
		return
	}
	x.committed = m
}

// update fills in what the traffic has told so far.
func (x *exchange) update(now time.Time) {
	r, seen := &x.record, x.seen
	if status := x.writer.Status(); status != 0 {
		r.Status = plugins.Known(int64(status))
		r.RespondedAt = storage.Millis(now)
	}
	if x.writer.Tunnel() {
		x.updateTunnel()
	}
	r.UpdatedAt = storage.Millis(now)
	r.Latency = plugins.Known(now.Sub(x.started).Milliseconds())

	asked := x.updateRequest()
	x.content.Response.Data, r.ResponseTruncated = x.response.Bytes(), x.response.Truncated()

	if seen.Dialect != plugins.Unknown {
		r.Dialect = seen.Dialect
	}
	r.Provider = x.provider()
	r.RequestModel = asked.Model
	if r.RequestModel == "" {
		r.RequestModel = observe.PathModel(r.Dialect, r.Path)
	}
	recording.Learn(r, seen)
	recording.Price(r, x.h.app.Catalog(), x.started)
}

func (x *exchange) updateRequest() (asked plugins.RequestInfo) {
	r := &x.record
	x.body.Look(func(t *capture.Tap, received int64) {
		asked = *x.reader.Request()
		r.RequestBytes = received + x.writer.Received()
		if r.RequestOmitted {
			return
		}
		x.content.Request.Data, r.RequestTruncated = t.Bytes(), t.Truncated()
		x.content.Media = asked.Media
	})
	return asked
}

// updateTunnel is for two-way streams: they have bytes, and no bodies. Over
// HTTP/2 and 3 the client's 200 stands for the provider's 101.
func (x *exchange) updateTunnel() {
	x.record.Status = plugins.Known(http.StatusSwitchingProtocols)
	x.record.ResponseBytes = x.writer.Sent()
}

// provider is the name of the provider as far as anything tells it.
func (x *exchange) provider() string {
	return cmp.Or(x.h.Provider, x.upstream, makers[x.record.Dialect], "custom")
}

// makers are whose dialect it is.
var makers = map[plugins.Dialect]string{
	plugins.Chat:            "openai",
	plugins.Responses:       "openai",
	plugins.Completions:     "openai",
	plugins.Embeddings:      "openai",
	plugins.Messages:        "anthropic",
	plugins.CountTokens:     "anthropic",
	plugins.GenerateContent: "gemini",
	plugins.Converse:        "bedrock",
	plugins.Invoke:          "bedrock",
	plugins.CohereChat:      "cohere",
	plugins.OllamaChat:      "ollama",
	plugins.OllamaGenerate:  "ollama",
}
