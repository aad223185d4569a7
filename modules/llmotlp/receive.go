package llmotlp

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/klauspost/compress/gzip"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"go.uber.org/zap"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir/modules/llmapp"
)

// encoding is one of OTLP's two: its media type. Answers have that of the
// request. https://opentelemetry.io/docs/specs/otlp/#otlphttp
type encoding string

const (
	protobuf encoding = "application/x-protobuf"
	jsonText encoding = "application/json"
)

func encodingOf(r *http.Request) encoding {
	mediaType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return encoding(mediaType)
}

func (e encoding) write(w http.ResponseWriter, status int, m proto.Message) error {
	var body []byte
	var err error
	if e == protobuf {
		body, err = proto.Marshal(m)
	} else {
		e = jsonText
		body, err = protojson.Marshal(m)
	}
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", string(e))
	w.WriteHeader(status)
	_, _ = w.Write(body) // who has left needs no answer
	return nil
}

// refusal is an answer other than success. A client sends the batch again after
// a 429, 502, 503 or 504 alone.
type refusal struct {
	status  int
	code    code.Code
	message string
	header  http.Header
}

func (f *refusal) Error() string { return f.message }

func badRequest(format string, args ...any) error {
	return &refusal{http.StatusBadRequest, code.Code_INVALID_ARGUMENT, fmt.Sprintf(format, args...), nil}
}

// retryAfter, in seconds, is when a client is told to come again: about what a
// store takes that was only busy.
const retryAfter = "5"

func unavailable(message string) *refusal {
	return &refusal{http.StatusServiceUnavailable, code.Code_UNAVAILABLE, message, http.Header{"Retry-After": {retryAfter}}}
}

// refuse answers with a google.rpc.Status, and tells internals to the log alone.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, e encoding, err error) error {
	var f *refusal
	if !errors.As(err, &f) {
		if r.Context().Err() != nil {
			return nil //nolint:nilerr // nobody is there to be told
		}
		reference := uuid.NewString()
		h.site.Logger.Error("no spans are taken", zap.String("store", h.Store), zap.String("reference", reference), zap.Error(err))
		f = unavailable("the store takes nothing now; the log has the reason under reference " + reference)
	}
	for name, values := range f.header {
		w.Header()[name] = values
	}
	return e.write(w, f.status, &status.Status{Code: int32(f.code), Message: f.message})
}

// receive takes one request.
func (h *Handler) receive(w http.ResponseWriter, r *http.Request, e encoding) (*collector.ExportTraceServiceResponse, error) {
	if r.Method != http.MethodPost {
		return nil, &refusal{
			http.StatusMethodNotAllowed, code.Code_UNIMPLEMENTED,
			"/v1/traces takes POST, not " + r.Method, http.Header{"Allow": {http.MethodPost}},
		}
	}
	key, err := h.authorise(r)
	if err != nil {
		return nil, err
	}
	body, err := h.read(w, r)
	if err != nil {
		return nil, err
	}
	request, err := e.parse(body)
	if err != nil {
		return nil, err
	}

	release := h.store.Hold()
	defer release()
	j, err := h.store.Journal()
	if err != nil {
		return nil, err
	}
	if !j.Fits(int64(len(body))) {
		return nil, unavailable("the journal is full, because the store is behind: see max_journal")
	}
	b := &batch{Handler: h, ctx: r.Context(), key: key, journal: j}
	if err := b.take(request.ResourceSpans); err != nil {
		return nil, err
	}
	if len(b.warnings) > 0 {
		w.Header()["Service-Warnings"] = b.warnings
	}
	return b.answer(), nil
}

func (h *Handler) authorise(r *http.Request) (*llmapp.Key, error) {
	unauthorized := func(message string) error {
		return &refusal{http.StatusUnauthorized, code.Code_UNAUTHENTICATED, message, http.Header{"Www-Authenticate": {`Bearer realm="weir"`}}}
	}
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || secret == "" {
		return nil, unauthorized("an API key is required: send Authorization: Bearer <API key>")
	}
	key, ok := h.site.App.Authenticate(secret)
	if !ok || key.Store() != h.Store {
		return nil, unauthorized("the API key is not known here")
	}
	if !key.Allows(llmapp.ScopeLog) {
		return nil, &refusal{http.StatusForbidden, code.Code_PERMISSION_DENIED, fmt.Sprintf("the API key lacks the scope %q", llmapp.ScopeLog), nil}
	}
	return key, nil
}

// read reads the body, of which neither the packed nor the unpacked size may
// exceed the bound.
func (h *Handler) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	tooLarge := &refusal{
		http.StatusRequestEntityTooLarge, code.Code_RESOURCE_EXHAUSTED,
		fmt.Sprintf("the request has more than %d bytes: send smaller batches, or raise max_request", h.MaxRequest), nil,
	}
	var body io.Reader = http.MaxBytesReader(w, r.Body, h.MaxRequest)
	switch coding := strings.ToLower(r.Header.Get("Content-Encoding")); coding {
	case "", "identity":
	case "gzip":
		unpacked, err := gzip.NewReader(body)
		if err != nil {
			return nil, badRequest("the body is not gzip, as Content-Encoding says")
		}
		defer unpacked.Close()
		body = io.LimitReader(unpacked, h.MaxRequest+1)
	default:
		return nil, &refusal{http.StatusUnsupportedMediaType, code.Code_INVALID_ARGUMENT, "Content-Encoding is gzip or nothing here", nil}
	}
	read, err := io.ReadAll(body)
	var exceeded *http.MaxBytesError
	switch {
	case errors.As(err, &exceeded) || int64(len(read)) > h.MaxRequest:
		return nil, tooLarge
	case err != nil:
		return nil, badRequest("the body broke off")
	}
	return read, nil
}

func (e encoding) parse(body []byte) (*collector.ExportTraceServiceRequest, error) {
	request := new(collector.ExportTraceServiceRequest)
	var err error
	switch e {
	case protobuf:
		err = proto.Unmarshal(body, request)
	case jsonText:
		if err = (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(body, request); err == nil {
			restoreIDs(request)
		}
	default:
		return nil, &refusal{
			http.StatusUnsupportedMediaType, code.Code_INVALID_ARGUMENT,
			fmt.Sprintf("Content-Type is %s or %s here", protobuf, jsonText), nil,
		}
	}
	if err != nil {
		return nil, badRequest("the body is no ExportTraceServiceRequest in %s: %v", e, err)
	}
	return request, nil
}
