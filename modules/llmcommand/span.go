package llmcommand

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// span is a call as OpenTelemetry's GenAI conventions describe it, for llm_otlp.
// https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
type span struct {
	TraceID    string      `json:"traceId"`
	SpanID     string      `json:"spanId"`
	Name       string      `json:"name"`
	Start      string      `json:"startTimeUnixNano"`
	End        string      `json:"endTimeUnixNano,omitempty"`
	Attributes []attribute `json:"attributes"`
	Events     []event     `json:"events,omitempty"`
	Status     struct {
		Code int `json:"code,omitempty"`
	} `json:"status"`
}

type attribute struct {
	Key   string         `json:"key"`
	Value map[string]any `json:"value"`
}

type event struct {
	Name       string      `json:"name"`
	Attributes []attribute `json:"attributes"`
}

// text sets an attribute; an empty text is none.
func (s *span) text(key, value string) {
	if value != "" {
		s.Attributes = append(s.Attributes, textAttribute(key, value))
	}
}

func textAttribute(key, value string) attribute {
	return attribute{key, map[string]any{"stringValue": value}}
}

func (s *span) count(key string, n int64) {
	s.Attributes = append(s.Attributes, attribute{key, map[string]any{"intValue": strconv.FormatInt(n, 10)}})
}

func (s *span) number(key string, x float64) {
	s.Attributes = append(s.Attributes, attribute{key, map[string]any{"doubleValue": x}})
}

// label sets a control header, named without its prefix.
func (s *span) label(name, value string) {
	s.text("traceloop.association.properties.Service-"+name, value)
}

// score gives the call a score.
func (s *span) score(name string, value float64) {
	s.Events = append(s.Events, event{"gen_ai.evaluation.result", []attribute{
		textAttribute("gen_ai.evaluation.name", name),
		{"gen_ai.evaluation.score.value", map[string]any{"doubleValue": value}},
	}})
}

// took sets when the call began, and when it ended if that is known.
func (s *span) took(begin, end time.Time) {
	s.Start = strconv.FormatInt(begin.UnixNano(), 10)
	if !end.Before(begin) {
		s.End = strconv.FormatInt(end.UnixNano(), 10)
	}
}

// failed says that the call ended with an error.
func (s *span) failed(kind string) {
	s.Status.Code = 2
	s.text("error.type", kind)
}

// Bounds of one batch of spans; llm_otlp takes 16 MiB.
const (
	maxSpans      = 256
	maxSpansBytes = 4 << 20
)

// spanSender sends spans in batches, and counts what became of each.
type spanSender struct {
	client   *client
	batch    [][]byte
	bytes    int
	recorded int64            // spans that are new
	known    int64            // spans that were sent before, of which no second record is made
	expired  int64            // spans that are older than the store's retention
	refused  map[string]int64 // spans that were refused, by why
}

func (s *spanSender) add(ctx context.Context, one *span) error {
	text, err := json.Marshal(one)
	if err != nil {
		return err
	}
	if len(s.batch) == maxSpans || len(s.batch) > 0 && s.bytes+len(text) > maxSpansBytes {
		if err := s.flush(ctx); err != nil {
			return err
		}
	}
	s.batch, s.bytes = append(s.batch, text), s.bytes+len(text)
	return nil
}

// busy is how long a store that cannot keep up is waited for.
const busy = 2 * time.Minute

func isBusy(err error) bool {
	e, ok := errors.AsType[*statusError](err)
	return ok && (e.status == http.StatusServiceUnavailable || e.status == http.StatusTooManyRequests)
}

// flush sends the batch. It stays with the sender if that fails.
func (s *spanSender) flush(ctx context.Context) error {
	if len(s.batch) == 0 {
		return nil
	}
	err := s.send(ctx, s.batch)
	if refused, ok := refusedContent(err); ok && len(s.batch) > 1 {
		for len(s.batch) > 0 { // one of them is to blame
			one := s.batch[:1]
			err := s.send(ctx, one)
			if refused, ok := refusedContent(err); ok {
				s.refuse(refused, 1)
			} else if err != nil {
				return err
			}
			s.batch = s.batch[1:]
		}
	} else if ok {
		s.refuse(refused, 1)
	} else if err != nil {
		return err
	}
	s.batch, s.bytes = nil, 0
	return nil
}

func (s *spanSender) refuse(reason string, n int64) {
	if s.refused == nil {
		s.refused = make(map[string]int64)
	}
	s.refused[reason] += n
}

// refusedContent returns why what was sent can never be taken.
func refusedContent(err error) (reason string, ok bool) {
	e, is := errors.AsType[*statusError](err)
	if !is || e.status != http.StatusBadRequest && e.status != http.StatusRequestEntityTooLarge {
		return "", false
	}
	return e.message, true
}

// send sends spans, and waits for a store that cannot keep up.
func (s *spanSender) send(ctx context.Context, spans [][]byte) error {
	var body json.RawMessage = fmt.Appendf(nil, `{"resourceSpans":[{"scopeSpans":[{"spans":[%s]}]}]}`, bytes.Join(spans, []byte(",")))
	answer, err := s.client.post(ctx, "/v1/traces", body)
	for waited := time.Duration(0); isBusy(err) && waited < busy; waited += time.Second {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
		answer, err = s.client.post(ctx, "/v1/traces", body)
	}
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var taken struct {
		PartialSuccess struct {
			ErrorMessage string `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&taken); err != nil {
		return fmt.Errorf("the answer of %s/v1/traces: %w", s.client.address, err)
	}
	var recorded, known, expired, rejected, ignored int64
	_, err = fmt.Sscanf(answer.Header.Get("Service-Spans"), "recorded=%d, duplicate=%d, expired=%d, rejected=%d, ignored=%d",
		&recorded, &known, &expired, &rejected, &ignored)
	if err != nil || recorded+known+expired+rejected+ignored != int64(len(spans)) {
		return fmt.Errorf("%s does not say what became of %d calls: it must be of the same version as this command", s.client.address, len(spans))
	}
	s.recorded, s.known, s.expired = s.recorded+recorded, s.known+known, s.expired+expired
	if rejected > 0 {
		s.refuse(taken.PartialSuccess.ErrorMessage, rejected)
	}
	if ignored > 0 {
		s.refuse("it is no call of a model", ignored)
	}
	return nil
}
