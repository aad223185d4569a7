package llmotlp

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/weirhq/weir/modules/llmapp"
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
	inputs   map[string]string // inputs of a prompt template
}

// operations are the conventions' names for calls of models, each with the dialect in which Weir
// keeps the content. Other names are the work around calls: agents, tools, chains, retrieval.
var operations = map[string]plugins.Dialect{
	// gen_ai.operation.name
	"chat":             plugins.Chat,
	"generate_content": plugins.Chat,
	"text_completion":  plugins.Chat,
	"embeddings":       plugins.Embeddings,
	// llm.request.type
	"completion": plugins.Chat,
	"embedding":  plugins.Embeddings,
	"rerank":     plugins.Unknown,
	// openinference.span.kind
	"llm":      plugins.Chat,
	"reranker": plugins.Unknown,
	// langfuse.observation.type
	"generation": plugins.Chat,
}

// newCall reads a span. It is false unless the span is a call of a model.
func newCall(span *tracepb.Span, resource attributes) (*call, bool) {
	c := &call{span: span, resource: resource, attributes: make(attributes, len(span.GetAttributes()))}
	c.add(span.GetAttributes())
	switch operation := strings.ToLower(c.text("gen_ai.operation.name", "llm.request.type", "openinference.span.kind", observation+"type")); operation {
	case "", "unknown":
		named := c.text("gen_ai.provider.name", "gen_ai.system", "llm.system") != ""
		if !named || c.requested()+c.responded() == "" || c.text("traceloop.span.kind") != "" {
			return nil, false
		}
		c.dialect = plugins.Chat
	default:
		dialect, ok := operations[operation]
		if !ok {
			return nil, false
		}
		c.dialect = dialect
	}
	for _, event := range span.GetEvents() {
		switch event.GetName() {
		case "gen_ai.client.inference.operation.details", "gen_ai.content.prompt", "gen_ai.content.completion":
			// Their attributes are the span's.
			c.add(event.Attributes)
		}
	}
	if c.verbatim() && c.path() != "" {
		c.dialect = observe.Detect(c.provider(), c.path())
	}
	return c, true
}

// requested is the model that was asked for, responded the model that answered.
func (c *call) requested() string {
	return cmp.Or(c.text("gen_ai.request.model", "llm.request.model_name", observation+"model.name"),
		gjson.GetBytes(c.json("llm.invocation_parameters"), "model").Str,
		c.text("llm.model_name", "embedding.model_name", "reranker.model_name"))
}

func (c *call) responded() string {
	return c.text("gen_ai.response.model", "llm.response.model_name", "llm.model_name", "embedding.model_name", "reranker.model_name")
}

// describe fills in what is known of the call, except the caller, the content, and what the
// provider reported.
func (c *call) describe(r *storage.Record, prices *catalog.Catalog) {
	start, end := c.span.StartTimeUnixNano, c.span.EndTimeUnixNano
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

	r.Provider, r.TargetURL, r.Path, r.Dialect = short(c.provider()), short(c.target()), short(c.path()), c.dialect
	if r.Provider == llmapp.NoProvider {
		r.Provider = cmp.Or(c.maker(prices), r.Provider)
	}
	r.RequestModel = short(c.requested())
	r.Status, r.EndState = c.outcome()
	// An error is no stream, whatever was asked for.
	r.Stream = r.TimeToFirstToken.Valid || c.asksForStream() && r.Status.N < http.StatusBadRequest
}

// asksForStream tells whether the request asked for a stream.
func (c *call) asksForStream() bool {
	return c.flag("gen_ai.request.stream", "gen_ai.is_streaming", "llm.is_streaming") || c.parameter("stream") == "true"
}

// answer returns what the provider reported. The provider's own words, if the span has them,
// come before the words of the instrumentation.
func (c *call) answer() *plugins.ResponseInfo {
	own := new(plugins.ResponseInfo)
	if body := c.text(responseBody); body != "" {
		own = observe.Read(c.dialect, "", nil, []byte(body))
	}
	usage := own.Usage
	if !usage.Input.Valid && !usage.Output.Valid {
		usage = c.usage()
	}
	usage.ReportedCost = c.stated().Or(usage.ReportedCost)
	return &plugins.ResponseInfo{
		Model:       short(cmp.Or(c.responded(), own.Model)),
		ResponseID:  short(cmp.Or(c.text("gen_ai.response.id"), own.ResponseID)),
		Finish:      short(cmp.Or(c.finish()[0], own.Finish)),
		ErrorType:   short(cmp.Or(c.errorType(), own.ErrorType)),
		ServiceTier: short(cmp.Or(c.text("gen_ai.openai.response.service_tier", "openai.response.service_tier", "gen_ai.response.service_tier"), own.ServiceTier)),
		Usage:       usage,
	}
}

// short cuts a text that a provider controls to the length that is kept.
func short(text string) string {
	const most = 256
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}

// firstToken is the time from the start to the first content of a stream.
func (c *call) firstToken() (time.Duration, bool) {
	if seconds, ok := c.number("gen_ai.response.time_to_first_chunk", "gen_ai.server.time_to_first_token"); ok && seconds >= 0 && seconds < 1e6 {
		return time.Duration(seconds * float64(time.Second)), true
	}
	if at, ok := c.completionStart(); ok && uint64(at.UnixNano()) >= c.span.StartTimeUnixNano {
		return time.Duration(uint64(at.UnixNano()) - c.span.StartTimeUnixNano), true
	}
	for _, event := range c.span.GetEvents() {
		switch event.GetName() {
		case "llm.content.completion.chunk", "gen_ai.content.completion.chunk", // OpenLLMetry
			"First Token Stream Event": // OpenInference
			if at := event.TimeUnixNano; at >= c.span.StartTimeUnixNano && at <= c.span.EndTimeUnixNano {
				return time.Duration(at - c.span.StartTimeUnixNano), true
			}
		}
	}
	return 0, false
}

// parameter is the JSON text of one of the parameters of OpenInference, or Langfuse.
func (c *call) parameter(name string) string {
	return gjson.GetBytes(c.json("llm.invocation_parameters", observation+"model.parameters"), name).Raw
}

// finish returns the reasons why the choices ended.
func (c *call) finish() []string {
	if reasons := c.texts("gen_ai.response.finish_reasons"); len(reasons) > 0 {
		return reasons
	}
	return []string{c.text("gen_ai.response.finish_reason", "gen_ai.response.stop_reason", "gen_ai.completion.0.finish_reason",
		"llm.response.finish_reason", "llm.response.stop_reason", "llm.finish_reason")}
}

// usage returns the usage that the span reports, in the convention of plugins.Usage and of
// OpenTelemetry: cached tokens are a part of the input, and reasoning of the output.
func (c *call) usage() plugins.Usage {
	u := c.observationUsage()
	if u == (plugins.Usage{}) {
		u = c.counts()
	}
	if c.dialect == plugins.Embeddings && u.Input.Valid {
		u.Output = u.Output.Or(plugins.Known(0)) // embeddings have no output
	}
	return u
}

// counts are the attributes that have a count each.
func (c *call) counts() plugins.Usage {
	u := plugins.Usage{
		Input:  c.count("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.usage.prompt_tokens", "llm.token_count.prompt"),
		Output: c.count("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.usage.completion_tokens", "llm.token_count.completion"),
		CacheRead: c.count("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens",
			"llm.usage.cache_read_input_tokens", "llm.token_count.prompt_details.cache_read"),
		CacheWrite: c.count("gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_creation_input_tokens",
			"llm.usage.cache_creation_input_tokens", "llm.token_count.prompt_details.cache_write"),
		// These two are our own client's (clients/python).
		CacheWrite1h: c.count("llm.usage.cache_creation.ephemeral_1h_input_tokens"),
		WebSearches:  c.count("llm.usage.web_search_requests"),
		Reasoning: c.count("gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens",
			"llm.usage.reasoning_tokens", "llm.token_count.completion_details.reasoning"),
		InputAudio:  c.count("gen_ai.usage.audio.input_tokens", "llm.token_count.prompt_details.audio"),
		InputImage:  c.count("gen_ai.usage.image.input_tokens"),
		OutputAudio: c.count("gen_ai.usage.audio.output_tokens", "llm.token_count.completion_details.audio"),
	}
	total := c.count("gen_ai.usage.total_tokens", "llm.usage.total_tokens", "llm.token_count.total")
	cached := u.CacheRead.Plus(u.CacheWrite)
	switch {
	case u.Input.Valid && (cached.N > u.Input.N || cached.N > 0 && total.Valid && total.N == u.Input.Plus(u.Output).N+cached.N):
		// Anthropic's own counts: they leave out what its cache served.
		u.Input = u.Input.Plus(cached)
	case !u.Input.Valid && !u.Output.Valid && total.Valid && c.dialect == plugins.Embeddings:
		u.Input = total // there is nothing else that could have cost tokens
	}
	return u
}

// exceptions are the errors of the providers' SDKs, each with the status of its answer, or with
// 502 or 504 if there was no answer. One generator makes OpenAI's and Anthropic's SDKs, and
// others use the same names.
var exceptions = map[string]int64{
	"APIConnectionError":       502,
	"APITimeoutError":          504,
	"AuthenticationError":      401,
	"BadRequestError":          400,
	"ConflictError":            409,
	"InternalServerError":      500,
	"NotFoundError":            404,
	"OverloadedError":          529,
	"PermissionDeniedError":    403,
	"RateLimitError":           429,
	"RequestTooLargeError":     413,
	"ServiceUnavailableError":  503,
	"UnprocessableEntityError": 422,
	"timeout":                  504,
}

// outcome returns the status of the answer, if the span or the name of the error says it, and how
// the call ended.
func (c *call) outcome() (plugins.Count, storage.EndState) {
	status := c.count("http.response.status_code", "http.status_code", "error.type")
	if status.N < 100 || status.N > 599 {
		status = plugins.Count{}
	}
	if c.span.GetStatus().GetCode() != tracepb.Status_STATUS_CODE_ERROR && c.text("error.type") == "" && c.text(observation+"level") != "ERROR" {
		return status.Or(plugins.Known(200)), storage.Complete
	}
	if status.Valid {
		return status, storage.Complete
	}
	name := c.errorType()
	name = name[strings.LastIndexByte(name, '.')+1:]
	switch known := exceptions[name]; known {
	case 0:
		// It may be the client's own error: the provider's status is unknown.
		if c.usage().Output.Valid {
			return plugins.Count{}, storage.UpstreamAborted
		}
		return plugins.Count{}, storage.Failed
	case 502, 504:
		return plugins.Known(known), storage.Failed
	default:
		return plugins.Known(known), storage.Complete
	}
}

// errorType returns the type of the error, "" without an error.
func (c *call) errorType() string {
	exception := ""
	for _, event := range c.span.GetEvents() {
		if event.GetName() == "exception" {
			thrown := make(attributes)
			thrown.add(event.Attributes)
			exception = thrown.text("exception.type")
		}
	}
	return cmp.Or(c.text("error.type"), exception)
}
