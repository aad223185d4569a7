package llmotlp_test

import (
	"net/url"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// TestSDK: OpenTelemetry's own client sends, and is content with the answers.
func TestSDK(t *testing.T) {
	s := newSite(t, "")
	u, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	exporter, err := otlptracehttp.New(t.Context(),
		otlptracehttp.WithEndpoint(u.Host), otlptracehttp.WithInsecure(),
		otlptracehttp.WithCompression(otlptracehttp.GzipCompression),
		otlptracehttp.WithHeaders(map[string]string{"Authorization": "Bearer root"}))
	if err != nil {
		t.Fatal(err)
	}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter))
	ctx, agent := provider.Tracer("app").Start(t.Context(), "agent")
	_, call := provider.Tracer("app").Start(ctx, "chat gpt-4o")
	call.SetAttributes(
		attribute.String("gen_ai.operation.name", "chat"),
		attribute.String("gen_ai.provider.name", "openai"),
		attribute.String("gen_ai.request.model", "gpt-4o"),
		attribute.Int("gen_ai.usage.input_tokens", 3),
		attribute.StringSlice("gen_ai.response.finish_reasons", []string{"stop"}),
	)
	call.SetStatus(codes.Error, "gone")
	call.End()
	agent.End()
	if err := provider.ForceFlush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	records := s.records("root")
	if len(records) != 1 {
		t.Fatalf("%d records", len(records))
	}
	if r := records[0]; r.Get("trace_id").Str != call.SpanContext().TraceID().String() ||
		r.Get("span_id").Str != call.SpanContext().SpanID().String() || r.Get("prompt_tokens").Int() != 3 || r.Get("end_state").Str != "failed" {
		t.Errorf("%s", r.Raw)
	}
}
