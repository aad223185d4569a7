package llmcommand

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/question"
)

// langfuse reads observations: what the interface exports, traces that were downloaded,
// answers of the public API, and the files of a blob storage export. A legacy export
// has files of traces and of observations: the files of traces come first.
// https://langfuse.com/docs/api-and-data-platform/features/blob-storage-export-fields
type langfuse struct {
	traces map[string]map[string]gjson.Result // by id: the fields of a trace that all its observations inherit
	scores map[string][]gjson.Result          // by the observation's id
}

func newLangfuse() *source {
	l := &langfuse{make(map[string]map[string]gjson.Result), make(map[string][]gjson.Result)}
	return &source{call: l.call, name: camelCase, repeats: strings.Fields(`toolDefinitions toolCalls latency createdAt updatedAt projectId modelId
		internalModelId parentObservationId inputPrice outputPrice inputCost outputCost totalUsage totalTokens unit htmlPath bookmarked public costs
		promptId usagePricingTierName usagePricingTierId traceTimestamp isAppRoot tokensPerSecond calculatedInputCost calculatedOutputCost`)}
}

// camelCase returns a field's name as the API writes it. Files in blob storage have snake_case.
func camelCase(field string) string {
	words := strings.Split(field, "_")
	for i, word := range words[1:] {
		if word != "" {
			words[i+1] = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return strings.Join(words, "")
}

// notCall returns what a row is if it is not a call of a model, in words for the report, or "" for a
// call. It remembers a trace for the observations that follow.
func (l *langfuse) notCall(r *row) string {
	kind := strings.ToLower(r.text("type"))
	trace := r.get("observations").IsArray() || r.get("timestamp").Exists()
	switch score := r.get("value").Exists(); {
	case kind == "" && score:
		return "scores; import the traces as they are downloaded, with their scores"
	case kind == "" && trace:
		l.addTrace(r)
		return "traces; what they say of user, session, tags and metadata is said of their calls"
	case kind != "generation" && kind != "embedding":
		return "observations of the type " + cmp.Or(kind, "unknown") + ", which are no calls of a model"
	}
	return ""
}

// call returns the span of an observation, or, if the row is not a call, what it is.
func (l *langfuse) call(r *row) (*span, string, error) {
	if what := l.notCall(r); what != "" {
		return nil, what, nil
	}
	s, err := spanOf(r.text("traceId"), r.text("id"), r.time("startTime"), r.time("endTime"))
	if err != nil {
		return nil, "", err
	}
	for name, value := range l.traces[r.text("traceId")] {
		if blank(r.fields[name]) {
			r.fields[name] = value
		}
	}
	s.Name = r.text("name")
	s.text("langfuse.observation.type", strings.ToLower(r.text("type")))
	for _, field := range []struct{ name, key string }{
		{"modelParameters", "langfuse.observation.model.parameters"},
		{"input", "langfuse.observation.input"},
		{"output", "langfuse.observation.output"},
		{"level", "langfuse.observation.level"},
		{"promptName", "langfuse.observation.prompt.name"},
		{"promptVersion", "langfuse.observation.prompt.version"},
		{"environment", "langfuse.environment"},
		{"release", "langfuse.release"},
		{"version", "langfuse.version"},
		{"userId", "langfuse.user.id"},
		{"sessionId", "langfuse.session.id"},
	} {
		s.text(field.key, r.body(field.name))
	}
	s.text("langfuse.observation.model.name", cmp.Or(r.text("model"), r.text("providedModelName")))
	langfuseUsage(s, r)
	if seconds, ok := r.number("timeToFirstToken"); ok && seconds > 0 {
		s.number("gen_ai.server.time_to_first_token", seconds)
	}
	if first := r.time("completionStartTime"); !first.IsZero() {
		s.text("langfuse.observation.completion_start_time", first.Format("2006-01-02T15:04:05.999999999Z07:00"))
	}
	s.text("langfuse.trace.name", r.text("traceName"))
	s.text("langfuse.trace.tags", strings.Join(texts(r.list("tags")), ","))
	for _, score := range l.scores[r.text("id")] {
		name := score.Get("name").String()
		if n, ok := r.asScore("scores."+name, score.Get("value")); ok {
			s.score(name, n)
		}
	}
	for name, value := range r.members("metadata") {
		s.text("langfuse.observation.metadata."+name, value.String())
	}
	return s, "", nil
}

// langfuseUsage sets tokens and cost. Older exports have the counts in "usage", or as fields of their
// own, whose names have changed.
// https://langfuse.com/docs/observability/features/token-and-cost-tracking
func langfuseUsage(s *span, r *row) {
	usage, costs := numbers(r, "usageDetails"), numbers(r, "costDetails")
	if len(usage) > 0 {
		s.text("langfuse.observation.usage_details", asJSON(usage))
	}
	if len(costs) > 0 {
		s.text("langfuse.observation.cost_details", asJSON(costs))
	}
	olderPaths := map[string][]string{
		"gen_ai.usage.input_tokens":  {"usage.promptTokens", "usage.input", "promptTokens", "inputUsage"},
		"gen_ai.usage.output_tokens": {"usage.completionTokens", "usage.output", "completionTokens", "outputUsage"},
	}
	tokens := strings.ToUpper(cmp.Or(r.text("usage.unit"), r.text("unit"), "TOKENS")) == "TOKENS"
	for key, paths := range olderPaths {
		known := false
		for _, path := range paths {
			if n, ok := r.count(path); ok && !known && len(usage) == 0 && tokens {
				s.count(key, n)
				known = true
			}
		}
	}
	total := 0.0
	for _, path := range []string{"totalCost", "calculatedTotalCost", "usage.totalCost", "totalPrice"} {
		if n, ok := r.number(path); ok && total == 0 {
			total = n
		}
	}
	if total > 0 {
		s.number("gen_ai.usage.cost", total)
	}
}

// numbers returns the members of an object that are numbers.
func numbers(r *row, path string) map[string]float64 {
	values := make(map[string]float64)
	for name, value := range r.members(path) {
		if n, ok := r.asNumber(path+"."+name, value); ok {
			values[name] = n
		}
	}
	return values
}

// addTrace remembers the scores and the fields of a trace. A row may have the trace beside the scores,
// or be the trace itself.
func (l *langfuse) addTrace(r *row) {
	for _, score := range r.list("scores") {
		if id := score.Get("observationId").Str; id != "" {
			l.scores[id] = append(l.scores[id], score)
		}
	}
	id := r.text("id")
	if inner := r.get("trace"); inner.IsObject() {
		r = newRow(inner, camelCase)
		id = r.text("id")
	}
	fields := r.keep("userId", "sessionId", "tags", "metadata", "environment", "release", "version")
	fields["traceName"] = gjson.Parse(question.Quote(r.text("name")))
	l.traces[id] = fields
}
