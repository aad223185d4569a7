package export

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/uuid"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/transcript"
	"github.com/weirhq/weir/storage"
)

func resourceSpans(batch []*item) *tracepb.ResourceSpans {
	spans := make([]*tracepb.Span, len(batch))
	for n, i := range batch {
		spans[n] = i.span()
	}
	return &tracepb.ResourceSpans{
		Resource:   &resourcepb.Resource{Attributes: []*commonpb.KeyValue{{Key: "service.name", Value: text("weir")}}},
		ScopeSpans: []*tracepb.ScopeSpans{{Scope: &commonpb.InstrumentationScope{Name: "github.com/weirhq/weir"}, Spans: spans}},
	}
}

// providers are OpenTelemetry's names for providers where Weir has another.
var providers = map[string]string{
	"azure":      "azure.ai.openai",
	"bedrock":    "aws.bedrock",
	"gemini":     "gcp.gemini",
	"mistral":    "mistral_ai",
	"moonshotai": "moonshot_ai",
	"vertex":     "gcp.vertex_ai",
	"xai":        "x_ai",
}

// span is a record as a span. It belongs to the caller's trace, under the span
// that made the call, where the caller sent a traceparent; else its trace is its
// own. Both ids come from the record's, so that it is the same whenever it is
// sent.
// https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/
func (i *item) span() *tracepb.Span {
	operation := observe.Operation(i.record.Dialect)
	s := &tracepb.Span{
		TraceId: i.record.ID[:], SpanId: i.record.ID[8:],
		Name:              operation,
		Kind:              tracepb.Span_SPAN_KIND_CLIENT,
		StartTimeUnixNano: uint64(i.record.CreatedAt) * 1e6,
		EndTimeUnixNano:   uint64(i.record.CreatedAt+storage.Timestamp(i.record.Latency.N)) * 1e6,
	}
	if trace, err := hex.DecodeString(i.record.TraceID); err == nil && len(trace) == 16 {
		s.TraceId = trace
		if parent, err := hex.DecodeString(i.record.SpanID); err == nil {
			s.ParentSpanId = parent
		}
	}
	if model := cmp.Or(i.record.RequestModel, i.record.Model); model != "" {
		s.Name += " " + model
	}

	a := &attributes{}
	a.text("gen_ai.operation.name", operation)
	a.text("gen_ai.provider.name", cmp.Or(providers[i.record.Provider], i.record.Provider))
	a.text("gen_ai.request.model", i.record.RequestModel)
	a.text("gen_ai.response.model", i.record.ResponseModel)
	a.text("gen_ai.response.id", i.record.ResponseID)
	if i.record.Finish != "" {
		a.add("gen_ai.response.finish_reasons", &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{
			ArrayValue: &commonpb.ArrayValue{Values: []*commonpb.AnyValue{text(i.record.Finish)}},
		}})
	}
	i.addUsage(a)
	if i.record.Stream {
		a.add("gen_ai.request.stream", &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: true}})
	}
	if i.record.TimeToFirstToken.Valid {
		a.number("gen_ai.response.time_to_first_chunk", float64(i.record.TimeToFirstToken.N)/1e3)
	}
	if u, err := url.Parse(i.record.TargetURL); err == nil {
		a.text("server.address", u.Hostname())
		if port, err := strconv.ParseInt(u.Port(), 10, 64); err == nil {
			a.count("server.port", plugins.Known(port))
		}
	}
	a.count("http.response.status_code", i.record.Status)
	if i.record.Provider == "openai" || i.record.Provider == "azure" {
		a.text("gen_ai.openai.response.service_tier", i.record.ServiceTier)
	}
	a.text("user.id", i.record.UserID)
	a.text("session.id", i.record.SessionID)
	a.text("gen_ai.conversation.id", i.record.SessionID)
	a.text("gen_ai.prompt.name", i.record.PromptID)
	i.addOwn(a)
	i.addContent(a)
	if reason := i.failure(); reason != "" {
		s.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR}
		a.text("error.type", reason)
	}
	s.Attributes = a.list
	return s
}

func (i *item) addUsage(a *attributes) {
	a.count("gen_ai.usage.input_tokens", i.record.Usage.Input)
	a.count("gen_ai.usage.output_tokens", i.record.Usage.Output)
	a.count("gen_ai.usage.cache_read.input_tokens", i.record.Usage.CacheRead)
	a.count("gen_ai.usage.cache_creation.input_tokens", i.record.Usage.CacheWrite)
	a.count("gen_ai.usage.reasoning.output_tokens", i.record.Usage.Reasoning)
	a.count("gen_ai.usage.audio.input_tokens", i.record.Usage.InputAudio)
	a.count("gen_ai.usage.audio.output_tokens", i.record.Usage.OutputAudio)
}

// failure returns why the call has failed, empty if it has not.
func (i *item) failure() string {
	switch r := i.record; {
	case r.Status.N >= 400:
		return cmp.Or(r.ErrorType, strconv.FormatInt(r.Status.N, 10))
	case r.EndState == storage.Failed, r.EndState == storage.UpstreamAborted:
		return cmp.Or(r.ErrorType, r.EndState.String())
	}
	return ""
}

// addOwn adds what the conventions have no name for: the caller's labels as
// OpenLLMetry has them, and Weir's own.
func (i *item) addOwn(a *attributes) {
	for name, value := range i.record.Properties {
		a.text("traceloop.association.properties."+name, value)
	}
	a.text("weir.request_id", i.record.ID.String())
	a.text("weir.organization_id", i.record.Org)
	a.text("weir.end_state", i.record.EndState.String())
	if i.record.Cost.Valid {
		a.number("weir.cost", i.record.Cost.Float()) // US dollars
	}
	if i.record.Attempt > 0 {
		a.count("weir.attempt", plugins.Known(int64(i.record.Attempt)))
	}
	if i.record.AttemptOf != uuid.Nil {
		a.text("weir.attempt_of", i.record.AttemptOf.String())
	}
}

// part and message are those of OpenTelemetry's messages.
// https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-input-messages.json
type part struct {
	Type      string          `json:"type"`
	Content   string          `json:"content,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

type message struct {
	Role   string `json:"role"`
	Parts  []part `json:"parts"`
	Finish string `json:"finish_reason,omitempty"`
}

// addContent adds what was said, of which the item has nothing unless it was
// asked for and kept.
func (i *item) addContent(a *attributes) {
	format := observe.Transcript(i.record.Dialect)
	a.messages("gen_ai.input.messages", format.Request(i.content.Request.Data))
	if len(i.content.Response.Data) > 0 {
		stored, _ := format.Stored(i.content.Response.Type, i.content.Response.Data)
		a.messages("gen_ai.output.messages", format.Response(stored))
	}
}

// attributes is a list that grows by what is known.
type attributes struct{ list []*commonpb.KeyValue }

func (a *attributes) add(key string, v *commonpb.AnyValue) {
	a.list = append(a.list, &commonpb.KeyValue{Key: strings.ToValidUTF8(key, "\ufffd"), Value: v})
}

func (a *attributes) text(key, v string) {
	if v != "" {
		a.add(key, text(v))
	}
}

func (a *attributes) count(key string, c plugins.Count) {
	if c.Valid {
		a.add(key, &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: c.N}})
	}
}

func (a *attributes) number(key string, v float64) {
	a.add(key, &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: v}})
}

// messages adds turns as JSON text, which collectors and backends take whether
// or not they know structured values.
func (a *attributes) messages(key string, turns []transcript.Turn) {
	if len(turns) == 0 {
		return
	}
	messages := make([]message, len(turns))
	for n, t := range turns {
		m := message{Role: t.Role, Finish: t.Finish, Parts: []part{}}
		for _, text := range t.Texts {
			m.Parts = append(m.Parts, part{Type: "text", Content: text})
		}
		for _, call := range t.Calls {
			arguments := json.RawMessage(call.Arguments)
			if !json.Valid(arguments) {
				arguments, _ = json.Marshal(call.Arguments) // text always marshals
			}
			m.Parts = append(m.Parts, part{Type: "tool_call", ID: call.ID, Name: call.Name, Arguments: arguments})
		}
		messages[n] = m
	}
	raw, err := json.Marshal(messages)
	if err == nil { // nothing in it could fail
		a.text(key, string(raw))
	}
}

func text(s string) *commonpb.AnyValue {
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: strings.ToValidUTF8(s, "\ufffd")}}
}
