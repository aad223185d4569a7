package llmcommand

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// span is a call as OpenTelemetry's GenAI conventions describe it, for llm_otlp.
type span struct{ tracepb.Span }

// newSpan returns a span with the ids that a product has given a call and its trace: see idBytes. An
// end before the begin is unknown.
func newSpan(trace, id string, begin, end time.Time) *span {
	s := new(span)
	s.TraceId, s.SpanId, s.Name = idBytes(trace, 16), idBytes(id, 8), "chat"
	s.StartTimeUnixNano = uint64(begin.UnixNano())
	if !end.Before(begin) {
		s.EndTimeUnixNano = uint64(end.UnixNano())
	}
	return s
}

// text sets an attribute unless the text is empty.
func (s *span) text(key, value string) {
	if value != "" {
		s.Attributes = append(s.Attributes, textAttribute(key, value))
	}
}

func textAttribute(key, value string) *commonpb.KeyValue {
	value = strings.ToValidUTF8(value, "\uFFFD") // what protobuf takes
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: value}}}
}

func numberAttribute(key string, x float64) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: x}}}
}

func (s *span) count(key string, n int64) {
	s.Attributes = append(s.Attributes, &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: n}}})
}

func (s *span) number(key string, x float64) {
	s.Attributes = append(s.Attributes, numberAttribute(key, x))
}

// label sets a control header, named without its prefix.
func (s *span) label(name, value string) {
	s.text("traceloop.association.properties.Service-"+name, value)
}

// score gives the call a score.
func (s *span) score(name string, value float64) {
	s.Events = append(s.Events, &tracepb.Span_Event{Name: "gen_ai.evaluation.result", Attributes: []*commonpb.KeyValue{
		textAttribute("gen_ai.evaluation.name", name), numberAttribute("gen_ai.evaluation.score.value", value),
	}})
}

// setError says that the call ended with an error of that type.
func (s *span) setError(kind string) {
	s.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR}
	s.text("error.type", kind)
}

// Bounds of one batch of spans; llm_otlp takes 16 MiB.
const (
	maxSpans      = 256
	maxSpansBytes = 4 << 20
)

// sentSpan is a span, and where it comes from.
type sentSpan struct {
	span *span
	from origin
}

// spanSender sends spans in batches, and counts what became of each.
type spanSender struct {
	client  *client
	refused *refusals
	batch   []sentSpan
	bytes   int
	seen    map[string]bool // ids of the spans of a dry run
	outcome
}

// outcome counts what becomes of spans.
type outcome struct {
	recorded  int64 // new
	replaced  int64 // sent before, and recorded anew
	duplicate int64 // sent before; no second record is made
	expired   int64 // older than the store's retention
	rejected  int64 // with impossible ids or times
	ignored   int64 // no calls of a model
}

func (s *spanSender) add(ctx context.Context, one *span, from origin) error {
	if s.client.dry() { // nothing is recorded, so a second row of a call would count as new
		id := string(one.TraceId) + string(one.SpanId)
		if s.seen[id] {
			s.duplicate++
			return nil
		}
		if s.seen == nil {
			s.seen = make(map[string]bool)
		}
		s.seen[id] = true
	}
	size := proto.Size(&one.Span)
	if len(s.batch) == maxSpans || len(s.batch) > 0 && s.bytes+size > maxSpansBytes {
		if err := s.flush(ctx); err != nil {
			return err
		}
	}
	s.batch, s.bytes = append(s.batch, sentSpan{one, from}), s.bytes+size
	return nil
}

// maxBusyWait bounds how long report waits for a store that cannot keep up.
const maxBusyWait = 2 * time.Minute

func isBusy(err error) bool {
	e, ok := errors.AsType[*statusError](err)
	return ok && (e.status == http.StatusServiceUnavailable || e.status == http.StatusTooManyRequests)
}

// flush sends the batch, and keeps it for another try if that fails.
func (s *spanSender) flush(ctx context.Context) error {
	if len(s.batch) == 0 {
		return nil
	}
	err := s.send(ctx, s.batch)
	if _, ok := refusedContent(err); ok {
		for err = nil; len(s.batch) > 0 && err == nil; { // one span of the batch is to blame
			if err = s.sendOne(ctx, s.batch[0]); err == nil {
				s.batch = s.batch[1:]
			}
		}
	}
	if err != nil {
		return err
	}
	s.batch, s.bytes = nil, 0
	return nil
}

// sendOne sends a span that the site may refuse.
func (s *spanSender) sendOne(ctx context.Context, one sentSpan) error {
	err := s.send(ctx, []sentSpan{one})
	if reason, ok := refusedContent(err); ok {
		return s.refused.add(one.from, &refusal{reason: "the site says: " + reason})
	}
	return err
}

// refusedContent returns the site's reason if err says that the site will never take what was sent.
func refusedContent(err error) (reason string, ok bool) {
	e, is := errors.AsType[*statusError](err)
	if !is || e.status != http.StatusBadRequest && e.status != http.StatusRequestEntityTooLarge {
		return "", false
	}
	return e.message, true
}

// send sends spans, and counts what became of them.
func (s *spanSender) send(ctx context.Context, spans []sentSpan) error {
	o, _, err := s.client.report(ctx, spans)
	if err != nil {
		return err
	}
	s.recorded, s.replaced, s.duplicate, s.expired = s.recorded+o.recorded, s.replaced+o.replaced, s.duplicate+o.duplicate, s.expired+o.expired
	if o.rejected+o.ignored == 0 {
		return nil
	}
	asking := *s.client
	asking.header = asking.header.Clone()
	asking.header.Set(dryRun, "true")
	return s.blame(ctx, &asking, spans)
}

// blame finds the spans that a site does not take: it sends each half again as a dry run.
func (s *spanSender) blame(ctx context.Context, asking *client, spans []sentSpan) error {
	o, reason, err := asking.report(ctx, spans)
	switch {
	case err != nil || o.rejected+o.ignored == 0:
		return err
	case len(spans) == 1 && o.ignored > 0:
		return s.refused.add(spans[0].from, &refusal{reason: "the site says: it is no call of a model, or was erased"})
	case len(spans) == 1:
		return s.refused.add(spans[0].from, &refusal{reason: "the site says: " + reason})
	}
	if err := s.blame(ctx, asking, spans[:len(spans)/2]); err != nil {
		return err
	}
	return s.blame(ctx, asking, spans[len(spans)/2:])
}

// dryRun is the header by which a site checks spans and records none.
const dryRun = "Service-Dry-Run"

func (c *client) dry() bool { return c.header.Get(dryRun) != "" }

// report sends spans, and waits for a store that cannot keep up. reason is why the first rejected span
// was rejected.
func (c *client) report(ctx context.Context, spans []sentSpan) (o outcome, reason string, err error) {
	scope := &tracepb.ScopeSpans{Spans: make([]*tracepb.Span, len(spans))}
	for i, one := range spans {
		scope.Spans[i] = &one.span.Span
	}
	request := &collector.ExportTraceServiceRequest{ResourceSpans: []*tracepb.ResourceSpans{{ScopeSpans: []*tracepb.ScopeSpans{scope}}}}
	answer, err := c.send(ctx, http.MethodPost, "/v1/traces", request)
	for waited := time.Duration(0); isBusy(err) && waited < maxBusyWait; waited += time.Second {
		select {
		case <-ctx.Done():
			return o, "", ctx.Err()
		case <-time.After(time.Second):
		}
		answer, err = c.send(ctx, http.MethodPost, "/v1/traces", request)
	}
	if err != nil {
		return o, "", err
	}
	defer answer.Body.Close()
	if answer.Header.Get("Content-Type") != protobuf { // such as the empty 200 of a site without handlers
		return o, "", c.noAPI(answer)
	}
	var response collector.ExportTraceServiceResponse
	text, err := io.ReadAll(answer.Body)
	if err == nil {
		err = proto.Unmarshal(text, &response)
	}
	if err != nil {
		return o, "", fmt.Errorf("%w: %w", c.noAPI(answer), err)
	}
	_, err = fmt.Sscanf(answer.Header.Get("Service-Spans"), "recorded=%d, replaced=%d, duplicate=%d, expired=%d, rejected=%d, ignored=%d",
		&o.recorded, &o.replaced, &o.duplicate, &o.expired, &o.rejected, &o.ignored)
	if sum := o.recorded + o.replaced + o.duplicate + o.expired + o.rejected + o.ignored; err != nil || sum != int64(len(spans)) {
		return o, "", fmt.Errorf("%s does not say what became of %d calls: it must be of the same version as this command", c.address, len(spans))
	}
	return o, response.GetPartialSuccess().GetErrorMessage(), nil
}
