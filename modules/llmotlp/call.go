package llmotlp

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/weirhq/weir/internal/metric"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"
)

// call is a span about a call of a model.
type call struct {
	attributes
	span     *tracepb.Span
	resource attributes
	dialect  plugins.Dialect
	scope    string            // the name of the instrumentation that reports it
	library  metric.Label      // to which the instrumentation belongs
	process  string            // the identity of the process that reports it
	parent   []byte            // the id of the nearest span around it that is not only on the way
	inputs   map[string]string // inputs of a prompt template
	outputs  gjson.Result      // the answer as the provider gave it, if the span has that
}

// newCall reads a span. It returns nil, and why the span does not count, unless the span is a call
// of a model.
func newCall(span *tracepb.Span, resource attributes, prices *catalog.Catalog) (*call, metric.Label) {
	c := &call{span: span, resource: resource, attributes: make(attributes, len(span.GetAttributes()))}
	c.add(span.GetAttributes())
	for _, event := range span.GetEvents() {
		switch event.GetName() {
		case "gen_ai.client.inference.operation.details", "gen_ai.content.prompt", "gen_ai.content.completion":
			// Their attributes are the span's.
			c.add(event.Attributes)
		}
	}
	c.unquote("mlflow.")
	if reason := c.classify(); reason != recorded {
		return nil, reason
	}
	for _, name := range outputNames {
		if v := gjson.ParseBytes(c.json(name)); v.IsObject() {
			c.outputs = v
			break
		}
	}
	if c.verbatim() && c.path() != "" {
		provider, _ := c.vendor(prices)
		c.dialect = observe.Detect(provider, c.path())
	}
	return c, recorded
}

// unquote replaces texts that are written as JSON.
func (c *call) unquote(prefix string) {
	for key := range c.attributes {
		if strings.HasPrefix(key, prefix) {
			var text string
			if json.Unmarshal([]byte(c.text(key)), &text) == nil {
				c.attributes[key] = stringValue(text)
			}
		}
	}
}

// classify sets the dialect of a call and returns recorded, or why the span is none. The first
// kind that is known decides. A span whose kind is unknown is a call if it names a model, and a
// provider or a usage.
func (c *call) classify() metric.Label {
	kinds := 0
	for _, name := range kindNames {
		value := c.text(name)
		if value == "" {
			continue
		}
		kinds++
		k := kind(value)
		if dialect, ok := operations[k]; ok {
			c.dialect = dialect
			if c.logged() {
				return sameCall
			}
			return recorded
		}
		if aggregates[k] {
			return aggregate
		}
	}
	named := c.requested()+c.responded() != ""
	switch {
	case aggregates[kind(c.span.GetName())]:
		return aggregate
	case named && c.span.GetName() == codexCall, c.attributes[codexUsage] != nil:
		c.dialect = plugins.Chat
		return recorded
	case named && (slices.ContainsFunc(providerNames, func(name string) bool { return c.text(name) != "" }) || c.counts().used()):
		c.dialect = plugins.Chat
		return recorded
	case kinds > 0 && named || c.text("gen_ai.operation.name", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens") != "":
		return unknown
	}
	return unrelated
}

// logged reports whether a span is Logfire's of a stream, which has nothing of the answer: Logfire
// writes a log of the whole call when the stream has ended.
func (c *call) logged() bool {
	return c.text("logfire.span_type") == "span" && c.attributes["request_data"] != nil &&
		!c.counts().used() && c.responseID() == "" && !c.failed()
}

// requested is the model that was asked for, responded the model that answered.
func (c *call) requested() string {
	return cmp.Or(c.text(requestedNames...),
		gjson.GetBytes(c.json("llm.invocation_parameters", "request_data", "mlflow.spanInputs"), "model").Str,
		c.text(modelNames...))
}

func (c *call) responded() string {
	return cmp.Or(c.text(respondedNames...), c.outputs.Get("model").Str, c.text(modelNames...))
}

// describe fills in what is known of the call, except the caller, the content, and what the
// provider reported.
func (c *call) describe(r *storage.Record, prices *catalog.Catalog) {
	start, end := c.span.StartTimeUnixNano, c.span.EndTimeUnixNano
	if seconds, ok := c.number("duration"); ok && seconds > 0 && seconds < 1e6 && c.text("logfire.span_type") == "log" {
		start -= uint64(seconds * 1e9) // the log was written at the end
	}
	r.CreatedAt = storage.Timestamp(start / 1e6)
	r.UpdatedAt = r.CreatedAt
	if end >= start {
		r.RespondedAt = storage.Timestamp(end / 1e6)
		r.UpdatedAt = r.RespondedAt
		r.Latency = plugins.Duration{N: plugins.Milliseconds((end - start) / 1e6), Valid: true}
	}
	if first, ok := c.firstToken(); ok {
		r.TimeToFirstToken = plugins.KnownDuration(first)
	}
	provider, model := c.vendor(prices)
	r.Provider, r.TargetURL, r.Path, r.Dialect = short(provider), short(c.target()), short(c.path()), c.dialect
	r.RequestModel = short(model)
	r.Status, r.EndState = c.outcome()
	// An error is no stream, whatever was asked for.
	r.Stream = r.TimeToFirstToken.Valid || c.asksForStream() && r.Status.N < http.StatusBadRequest && r.EndState != storage.Failed
}

// asksForStream reports whether the request asked for a stream.
func (c *call) asksForStream() bool {
	if c.flag(streamNames...) || c.parameter("stream") == "true" {
		return true
	}
	if strings.HasSuffix(c.text("ai.operationId"), ".doStream") {
		return true
	}
	return strings.HasSuffix(strings.ToLower(c.span.GetName()), "stream")
}

// answered fills in what the provider reported. The provider's own words, if the span has them,
// come before the words of the instrumentation.
func (c *call) answered(r *storage.Record) {
	info := new(plugins.ResponseInfo)
	if body := c.text(responseBody); body != "" {
		info = observe.Read(c.dialect, "", nil, []byte(body))
	}
	r.Usage = info.Usage
	if !info.Usage.Input.Valid && !info.Usage.Output.Valid {
		r.Usage = c.usage()
	}
	r.Usage.ReportedCost = c.statedCost().Or(info.Usage.ReportedCost)
	r.ResponseModel = short(cmp.Or(c.responded(), info.Model))
	r.ResponseID = short(cmp.Or(c.responseID(), info.ResponseID))
	r.Finish = short(cmp.Or(c.finish()[0], info.Finish))
	kind, message := c.failure()
	r.ErrorType, r.ErrorMessage = short(cmp.Or(kind, info.ErrorType)), cmp.Or(info.ErrorMessage, message)
	r.ServiceTier = short(cmp.Or(c.text(tierNames...), info.ServiceTier))
}

// responseID is the id that the provider gave the answer.
func (c *call) responseID() string {
	if id := c.text(responseIDNames...); id != "" {
		return id
	}
	for _, path := range []string{"id", "llm_output.id", "generations.0.0.message.kwargs.response_metadata.id", "raw.id"} {
		if id := c.outputs.Get(path); id.Type == gjson.String {
			return id.Str
		}
	}
	return ""
}

// short cuts a text that a provider controls to the length that is kept.
func short(text string) string {
	const maxLength = 256
	if len(text) > maxLength {
		text = strings.ToValidUTF8(text[:maxLength], "")
	}
	return text
}

// firstToken is the time from the start to the first content of a stream.
func (c *call) firstToken() (time.Duration, bool) {
	for unit, names := range map[time.Duration][]string{time.Second: firstTokenSeconds, time.Millisecond: firstTokenMillis} {
		if n, ok := c.number(names...); ok && n >= 0 && n < 1e9 {
			return time.Duration(n * float64(unit)), true
		}
	}
	start, end := c.span.StartTimeUnixNano, c.span.EndTimeUnixNano
	// Langfuse writes the time as JSON, in quotation marks.
	at, err := time.Parse(time.RFC3339, strings.Trim(c.text(firstTokenTimes...), `"`))
	if err == nil && uint64(at.UnixNano()) >= start {
		return time.Duration(uint64(at.UnixNano()) - start), true
	}
	for _, event := range c.span.GetEvents() {
		if at := event.TimeUnixNano; slices.Contains(firstTokenEvents, event.GetName()) && at >= start && at <= end {
			return time.Duration(at - start), true
		}
	}
	return 0, false
}

// parameter is the JSON text of one of the parameters of OpenInference, Langfuse or Logfire.
func (c *call) parameter(name string) string {
	return gjson.GetBytes(c.json("llm.invocation_parameters", observation+"model.parameters", "model_request_parameters", "request_data", "mlflow.spanInputs"), name).Raw
}

// finish returns the reasons why the choices ended.
func (c *call) finish() []string {
	if reasons := c.texts("gen_ai.response.finish_reasons"); len(reasons) > 0 {
		return reasons
	}
	return []string{cmp.Or(c.text(finishNames...), c.outputs.Get("choices.0.finish_reason").Str, c.outputs.Get("stop_reason").Str)}
}
