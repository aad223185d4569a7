package llmotlp

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"go.uber.org/zap"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir/internal/metric"
	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/intake"
	"github.com/weirhq/weir/plugins"
)

// encoding is the media type of one of OTLP's two encodings. An answer has the encoding of its
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

// badRequest answers a batch that must not be sent again: clients send again only after a 429,
// 502, 503 or 504.
func badRequest(format string, args ...any) *plugins.Error {
	return &plugins.Error{Status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...)}
}

// retryAfter is when a client should send again: a store that was only busy has
// caught up by then.
const retryAfter = 5 * time.Second

func unavailable(message string) *plugins.Error {
	return &plugins.Error{Status: http.StatusServiceUnavailable, Message: message, RetryAfter: retryAfter}
}

// refuse answers with a google.rpc.Status. Internals go to the log, not to the client.
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
	if scheme, secret, escaped := strings.Cut(r.Header.Get("Authorization"), "%20"); escaped && strings.EqualFold(scheme, "Bearer") {
		r.Header.Set("Authorization", scheme+" "+secret) // exporters do not all undo what OTEL_EXPORTER_OTLP_HEADERS must escape
	}
	key, denied := h.checker.Admit(r, access.ScopeLog, "Authorization", "X-Api-Key")
	if _, secret, basic := r.BasicAuth(); basic {
		key, denied = h.checker.Check(r, secret, access.ScopeLog)
	}
	if denied != nil {
		return nil, denied
	}
	body, err := intake.Reader{Memory: h.site.App.Memory(key.Org()), Limit: int64(h.MaxRequest)}.Read(w, r)
	defer body.Release()
	if refused, ok := errors.AsType[*plugins.Error](err); ok && refused.Status == http.StatusRequestEntityTooLarge {
		refused.Message += " Send smaller batches, or raise max_request."
	}
	if err != nil {
		return nil, err
	}
	request, err := e.parse(r.Context(), &body)
	if err != nil {
		return nil, err
	}

	release := h.store.Hold()
	defer release()
	j, err := h.store.Journal()
	if err != nil {
		return nil, err
	}
	if !j.Fits(int64(len(body.Bytes))) {
		return nil, unavailable("the journal is full, because the store is behind: see max_journal")
	}
	b := &batch{Handler: h, ctx: r.Context(), key: key, journal: j, results: make(map[metric.Label]int64)}
	b.readHeader(r.Header)
	err = b.take(request.ResourceSpans)
	if len(b.warnings) > 0 {
		w.Header()["Service-Warnings"] = b.warnings
	}
	if err != nil {
		return nil, err
	}
	w.Header().Set(spansHeader, b.summary())
	return b.answer(), nil
}

// parse parses the body once there is memory for its spans.
func (e encoding) parse(ctx context.Context, body *intake.Body) (*collector.ExportTraceServiceRequest, error) {
	request := new(collector.ExportTraceServiceRequest)
	switch e {
	case protobuf:
		return request, body.Unmarshal(ctx, request)
	case jsonText:
		if err := body.CheckJSON(ctx, body.Bytes); err != nil {
			return nil, err
		}
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(body.Bytes, request); err != nil {
			return nil, badRequest("the body is no ExportTraceServiceRequest in JSON: %v", err)
		}
		restoreIDs(request)
		return request, nil
	}
	return nil, &plugins.Error{
		Status:  http.StatusUnsupportedMediaType,
		Message: fmt.Sprintf("Content-Type is %s or %s here", protobuf, jsonText),
	}
}
