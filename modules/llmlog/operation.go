package llmlog

import (
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/money/cut"
	"github.com/weirhq/weir/modules/internal/paths"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
)

// operation is what a request asks of a provider, by its method, path and header.
type operation struct {
	r       *http.Request
	path    string // of the record
	dialect plugins.Dialect
}

func (x *exchange) operation() operation {
	return operation{x.r, x.rec.Record.Path, x.rec.Record.Dialect}
}

// isUpload reports whether the request uploads a file, which may have the calls of a batch.
func (o operation) isUpload() bool {
	return o.r.Method == http.MethodPost && o.dialect == plugins.Batches && observe.IsUpload(o.path)
}

// isFree reports whether the call costs nothing. A path with encoded slashes proves nothing:
// providers read it differently.
func (o operation) isFree() bool {
	if o.r.URL.RawPath != "" {
		return !o.mayCharge()
	}
	return o.dialect.CountsTokens() || !o.mayCharge() || o.isUpload() || observe.IsChange(o.path)
}

// mayCharge reports whether the request may make the provider work, itself or on the connection
// that it opens. Methods that only read or delete are free.
func (o operation) mayCharge() bool {
	switch o.r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodDelete:
		return o.r.Header.Get("Upgrade") != "" ||
			slices.ContainsFunc(methodOverrides, func(name string) bool { return o.r.Header.Get(name) != "" }) ||
			o.r.URL.Query().Has("$httpMethod")
	}
	return true
}

// methodOverrides are the header fields with another method, which Google and others obey
// (https://cloud.google.com/apis/docs/system-parameters).
var methodOverrides = []string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"}

// isPlain reports whether all servers read the path in the same way.
func (o operation) isPlain() bool {
	p := o.r.URL.Path
	return p == path.Clean(p) && strings.Trim(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._:@-") == "" && o.r.URL.RawPath == ""
}

// isCall reports whether the request calls a model, or lists the models.
func (o operation) isCall() bool {
	p := o.r.URL.Path
	if !o.isPlain() {
		return false
	}
	switch o.r.Method {
	case http.MethodPost:
		return slices.Contains(payable, o.dialect)
	case http.MethodGet:
		return strings.HasSuffix(p, "/models") && o.r.Header.Get("Upgrade") == ""
	}
	return false
}

// payable are the dialects of calls that Weir pays for: it knows all fields by which a request
// refers to something at the provider.
var payable = []plugins.Dialect{
	plugins.Chat, plugins.Completions, plugins.Responses, plugins.Compaction, plugins.InputTokens, plugins.Messages, plugins.CountTokens,
	plugins.GenerateContent, plugins.EmbedContent, plugins.Embeddings, plugins.Moderations, plugins.Images, plugins.Speech, plugins.Rerank,
}

// batchRoutes are the routes of batches that Weir pays for.
var batchRoutes = []paths.Route{
	{Method: http.MethodGet, Path: observe.MessageBatches}, {Method: http.MethodPost, Path: observe.MessageBatches},
	{Method: http.MethodGet, Path: observe.MessageBatches + "/{id}"}, {Method: http.MethodDelete, Path: observe.MessageBatches + "/{id}"},
	{Method: http.MethodGet, Path: observe.MessageBatches + "/{id}/results"}, {Method: http.MethodPost, Path: observe.MessageBatches + "/{id}/cancel"},
	{Method: http.MethodPost, Path: "/v1beta/models/{model}:batchGenerateContent"}, {Method: http.MethodGet, Path: "/v1beta/batches"},
	{Method: http.MethodGet, Path: "/v1beta/batches/{id}"}, {Method: http.MethodDelete, Path: "/v1beta/batches/{id}"},
	{Method: http.MethodPost, Path: "/v1beta/batches/{id}:cancel"},
}

// isBatch reports whether the request is one of batchRoutes.
func (o operation) isBatch() bool {
	b, ok := observe.ParseInlineBatch(o.path)
	if !ok || !o.isPlain() || o.r.Header.Get("Upgrade") != "" {
		return false
	}
	switch o.r.Method {
	case http.MethodPost:
		return b.Creates || b.Part == "cancel"
	case http.MethodDelete:
		return b.ID != "" && b.Part == ""
	}
	return o.r.Method == http.MethodGet && b.Part != "cancel" && (b.Dialect == plugins.Messages || !b.Creates)
}

// asksForEvents reports whether the answer is a stream that can be cut.
func (o operation) asksForEvents(request bound.Request) bool {
	if request.Answers() > 1 {
		return false
	}
	if request.Dialect == plugins.GenerateContent {
		return strings.HasSuffix(o.r.URL.Path, ":streamGenerateContent") && o.r.URL.Query().Get("alt") == "sse"
	}
	return cut.Possible(request.Dialect) && request.Get("stream").Type == gjson.True
}

// clientDialect is the dialect whose errors the client reads.
func (o operation) clientDialect() plugins.Dialect {
	if b, ok := observe.ParseInlineBatch(o.path); ok {
		return b.Dialect
	}
	return o.dialect
}

// mayNameResults reports whether the answer may have the address of a batch's results.
func (o operation) mayNameResults() bool {
	b, ok := observe.ParseInlineBatch(o.path)
	return ok && b.Dialect == plugins.Messages && b.Part != "results"
}
