package llmotlp

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/klauspost/compress/gzip"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"go.uber.org/zap"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins"
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
	_, _ = w.Write(body) // a client that has left needs no answer
	return nil
}

// badRequest is an answer to a batch that must not be sent again: clients do so
// after a 429, 502, 503 or 504 alone.
func badRequest(format string, args ...any) *plugins.Error {
	return &plugins.Error{Status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...)}
}

// retryAfter is when a client should send again: a store that was only busy has
// caught up by then.
const retryAfter = 5 * time.Second

func unavailable(message string) *plugins.Error {
	return &plugins.Error{Status: http.StatusServiceUnavailable, Message: message, RetryAfter: retryAfter}
}

// refuse answers with a google.rpc.Status, and tells internals to the log alone.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, e encoding, err error) error {
	refused, ok := errors.AsType[*plugins.Error](err)
	if !ok {
		if r.Context().Err() != nil {
			return nil //nolint:nilerr // the client left
		}
		reference := uuid.NewString()
		h.site.Logger.Error("no spans are taken", zap.String("store", h.site.Store), zap.String("reference", reference), zap.Error(err))
		refused = unavailable("the store takes nothing now; the log has the reason under reference " + reference)
	}
	message := refused.Message
	if refused.Code != "" {
		message = refused.Code + ": " + message
	}
	apierror.SetHeader(w.Header(), refused)
	return e.write(w, refused.Status, &status.Status{Code: int32(apierror.GoogleCode(refused.Status)), Message: message})
}

// receive takes one request.
func (h *Handler) receive(w http.ResponseWriter, r *http.Request, e encoding) (*collector.ExportTraceServiceResponse, error) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return nil, &plugins.Error{Status: http.StatusMethodNotAllowed, Message: r.URL.Path + " takes POST, not " + r.Method}
	}
	key, denied := h.gate.Admit(r, llmapp.ScopeLog, "Authorization")
	if _, secret, basic := r.BasicAuth(); basic {
		key, denied = h.gate.Check(secret, llmapp.ScopeLog)
	}
	if denied != nil {
		return nil, denied
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
	b.readHeader(r.Header)
	err = b.take(request.ResourceSpans)
	if len(b.warnings) > 0 {
		w.Header()["Service-Warnings"] = b.warnings
	}
	if err != nil {
		return nil, err
	}
	return b.answer(), nil
}

// read reads the body, of which neither the packed nor the unpacked size may
// exceed the bound.
func (h *Handler) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	tooLarge := &plugins.Error{
		Status:  http.StatusRequestEntityTooLarge,
		Message: fmt.Sprintf("the request has more than %d bytes: send smaller batches, or raise max_request", int64(h.MaxRequest)),
	}
	var body io.Reader = http.MaxBytesReader(w, r.Body, int64(h.MaxRequest))
	switch coding := strings.ToLower(r.Header.Get("Content-Encoding")); coding {
	case "", "identity":
	case "gzip":
		unpacked, err := gzip.NewReader(body)
		if err != nil {
			return nil, badRequest("the body is not gzip, as Content-Encoding says")
		}
		defer unpacked.Close()
		body = io.LimitReader(unpacked, int64(h.MaxRequest)+1)
	default:
		return nil, &plugins.Error{Status: http.StatusUnsupportedMediaType, Message: "Content-Encoding is gzip or nothing here"}
	}
	read, err := io.ReadAll(body)
	var exceeded *http.MaxBytesError
	switch {
	case errors.As(err, &exceeded) || int64(len(read)) > int64(h.MaxRequest):
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
		return nil, &plugins.Error{
			Status:  http.StatusUnsupportedMediaType,
			Message: fmt.Sprintf("Content-Type is %s or %s here", protobuf, jsonText),
		}
	}
	if err != nil {
		return nil, badRequest("the body is no ExportTraceServiceRequest in %s: %v", e, err)
	}
	return request, nil
}
