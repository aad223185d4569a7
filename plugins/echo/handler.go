package echo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// Handler is a provider. It routes by the end of the path, so that any prefix works:
//
//	POST .../chat/completions   OpenAI Chat Completions
//	POST .../responses          OpenAI Responses
//	POST .../messages           Anthropic Messages
//	POST .../embeddings         OpenAI Embeddings
//	GET  .../models             OpenAI's list of models
//
// Errors have the format of the dialect: Anthropic's for its endpoint and for
// requests that carry anthropic-version, OpenAI's for all others. Credentials are
// ignored.
type Handler struct {
	served atomic.Uint64
	stored storedIDs
}

// exchange is one request and what its answer is stamped with.
type exchange struct {
	body   gjson.Result
	seed   string // the unique part of every id in the answer
	items  int    // items and calls of the answer that have an id
	stored *storedIDs
}

func (x *exchange) id(prefix string) string { return prefix + x.seed }

// itemID is the id of the next item or call of the answer.
func (x *exchange) itemID(prefix string) string {
	x.items++
	return fmt.Sprintf("%s%s%02x", prefix, x.seed, x.items)
}

type endpoint struct {
	suffix string
	method string
	serve  func(http.ResponseWriter, *http.Request, *exchange) *plugins.Error
}

var endpoints = []endpoint{
	{"/chat/completions", http.MethodPost, serveAs(plugins.Chat)},
	{"/responses", http.MethodPost, serveResponses},
	{"/messages", http.MethodPost, serveAs(plugins.Messages)},
	{"/embeddings", http.MethodPost, serveEmbeddings},
	{"/models", http.MethodGet, serveModels},
}

// Endpoints calls yield with the method of each endpoint, and with the end of its path.
func Endpoints(yield func(method, path string) bool) {
	for _, e := range endpoints {
		if !yield(e.method, e.suffix) {
			return
		}
	}
}

// Answer answers the request r with the given body. The body of r is not read.
func (h *Handler) Answer(w http.ResponseWriter, r *http.Request, body []byte) {
	e, f := route(w, r)
	body, malformed := object(r, body)
	if f == nil {
		f = malformed
	}
	sum := fnv.New64a()
	sum.Write(body)
	x := &exchange{
		body:   gjson.ParseBytes(body),
		seed:   fmt.Sprintf("%016x%08x", sum.Sum64(), h.served.Add(1)),
		stored: &h.stored,
	}

	anthropic := r.Header.Get("Anthropic-Version") != "" || strings.HasSuffix(r.URL.Path, "/messages")
	header := "X-Request-Id"
	if anthropic {
		header = "Request-Id"
	}
	w.Header().Set(header, x.id("req_"))

	if f == nil {
		f = e.serve(w, r, x)
	}
	switch {
	case f == nil:
	case anthropic:
		writeJSON(w, f.Status, render(`{"type":"error","error":{"type":%s,"message":%s},"request_id":%s}`,
			plugins.AnthropicErrorType(f.Status), f.Message, x.id("req_")))
	default:
		writeJSON(w, f.Status, render(`{"error":%s}`, json.RawMessage(f.AppendObject(nil))))
	}
}

func route(w http.ResponseWriter, r *http.Request) (endpoint, *plugins.Error) {
	for _, e := range endpoints {
		if !strings.HasSuffix(r.URL.Path, e.suffix) {
			continue
		}
		if r.Method != e.method {
			w.Header().Set("Allow", e.method)
			f := plugins.Refused(http.StatusMethodNotAllowed, fmt.Sprintf("%s is not allowed on %s, use %s", r.Method, r.URL.Path, e.method))
			f.Code = "method_not_supported"
			return e, f
		}
		return e, nil
	}
	f := plugins.Refused(http.StatusNotFound, fmt.Sprintf("Invalid URL (%s %s)", r.Method, r.URL.Path))
	f.Code = "" // no model is at fault
	return endpoint{}, f
}

// object returns the JSON object that every POST must carry, on one line.
func object(r *http.Request, body []byte) ([]byte, *plugins.Error) {
	if r.Method != http.MethodPost {
		return nil, nil
	}
	// Invalid UTF-8 would be repeated into a stream that must be UTF-8.
	body = bytes.ToValidUTF8(body, []byte("\uFFFD"))
	var compact bytes.Buffer // an event of a stream is one line
	if err := json.Compact(&compact, body); err != nil || !gjson.ParseBytes(body).IsObject() {
		return nil, plugins.Invalid("", "the request body must be a JSON object")
	}
	return compact.Bytes(), nil
}

func serveModels(w http.ResponseWriter, _ *http.Request, _ *exchange) *plugins.Error {
	writeJSON(w, http.StatusOK, render(`{"object":"list","data":[{"id":%s,"object":"model","created":0,"owned_by":"weir"}]}`, DefaultModel))
	return nil
}

func writeJSON(w http.ResponseWriter, status int, body json.RawMessage) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

// render fills the verbs of a format that is JSON: strings are quoted, and a
// json.RawMessage is inserted as it is.
func render(format string, values ...any) json.RawMessage {
	for i, v := range values {
		if s, ok := v.(string); ok {
			values[i] = plugins.AppendString(nil, s)
		}
	}
	return fmt.Appendf(nil, format, values...)
}
