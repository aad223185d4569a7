package llmcommand

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// langfuse reads observations: what the interface exports, traces that were downloaded,
// answers of the public API, and the files of a blob storage export. Of legacy exports,
// which have files of traces and of observations, those of traces come first.
// https://langfuse.com/docs/api-and-data-platform/features/blob-storage-export-fields
type langfuse struct {
	traces map[string]gjson.Result   // by id: what they say of all of their observations
	scores map[string][]gjson.Result // by the id of the observation
}

// langfuseFields end with five lines of what other fields say, or Langfuse's own storage.
var langfuseFields = strings.Fields(`id traceId type startTime endTime completionStartTime timeToFirstToken model providedModelName
	modelParameters input output metadata usageDetails costDetails totalCost level environment version release promptName
	promptVersion traceName userId sessionId tags name
	toolDefinitions toolCalls usage latency calculatedInputCost calculatedOutputCost calculatedTotalCost createdAt updatedAt projectId modelId internalModelId
	parentObservationId inputPrice outputPrice totalPrice inputCost outputCost inputUsage outputUsage totalUsage
	promptTokens completionTokens totalTokens unit htmlPath bookmarked public costs promptId usagePricingTierName usagePricingTierId
	traceTimestamp isAppRoot tokensPerSecond`)

func (l *langfuse) kept(field string) bool { return slices.Contains(langfuseFields, camelCase(field)) }

// camelCase is the name of a field in the API; files in blob storage have snake_case.
func camelCase(field string) string {
	words := strings.Split(field, "_")
	for i, word := range words[1:] {
		if word != "" {
			words[i+1] = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return strings.Join(words, "")
}

func (l *langfuse) call(row gjson.Result) (*span, string, error) {
	fields := make(map[string]gjson.Result)
	row.ForEach(func(name, value gjson.Result) bool {
		fields[camelCase(name.Str)] = value
		return true
	})
	kind := strings.ToLower(fields["type"].Str)
	switch {
	case kind == "" && (fields["observations"].IsArray() || fields["timestamp"].Exists() && !fields["value"].Exists()):
		l.trace(row)
		return nil, "traces; what they say of user, session, tags and metadata is said of their calls", nil
	case kind == "" && fields["value"].Exists():
		return nil, "scores; import the traces as they are downloaded, with their scores", nil
	case kind != "generation" && kind != "embedding":
		return nil, "observations of the type " + cmp.Or(kind, "unknown") + ", which are no calls of a model", nil
	}
	trace := l.traces[fields["traceId"].Str]
	get := func(name string) gjson.Result {
		if v := fields[name]; !blank(v) {
			return v
		}
		return trace.Get(name)
	}
	s, err := spanOf(fields["traceId"].Str, fields["id"].Str, timeOf(fields["startTime"]), timeOf(fields["endTime"]))
	if err != nil {
		return nil, "", err
	}
	s.Name = fields["name"].Str
	s.text("langfuse.observation.type", kind)
	for _, field := range []struct{ name, key string }{
		{"modelParameters", "langfuse.observation.model.parameters"},
		{"input", "langfuse.observation.input"},
		{"output", "langfuse.observation.output"},
		{"usageDetails", "langfuse.observation.usage_details"},
		{"costDetails", "langfuse.observation.cost_details"},
		{"level", "langfuse.observation.level"},
		{"promptName", "langfuse.observation.prompt.name"},
		{"promptVersion", "langfuse.observation.prompt.version"},
		{"environment", "langfuse.environment"},
		{"release", "langfuse.release"},
		{"version", "langfuse.version"},
		{"userId", "langfuse.user.id"},
		{"sessionId", "langfuse.session.id"},
	} {
		s.text(field.key, bodyOf(get(field.name)))
	}
	s.text("langfuse.observation.model.name", cmp.Or(fields["model"].Str, fields["providedModelName"].Str))
	if total := fields["totalCost"]; total.Num > 0 {
		s.number("gen_ai.usage.cost", total.Num)
	}
	if seconds := fields["timeToFirstToken"]; seconds.Num > 0 {
		s.number("gen_ai.server.time_to_first_token", seconds.Num)
	}
	if first := timeOf(fields["completionStartTime"]); !first.IsZero() {
		s.text("langfuse.observation.completion_start_time", first.Format("2006-01-02T15:04:05.999999999Z07:00"))
	}
	s.text("langfuse.trace.name", cmp.Or(fields["traceName"].Str, trace.Get("name").Str))
	s.text("langfuse.trace.tags", strings.Join(texts(get("tags")), ","))
	for _, score := range l.scores[fields["id"].Str] {
		s.score(score.Get("name").Str, score.Get("value").Float())
	}
	for name, value := range get("metadata").Map() {
		s.text("langfuse.observation.metadata."+name, value.String())
	}
	return s, "", nil
}

// trace remembers what a trace says, which may have its scores beside it.
func (l *langfuse) trace(row gjson.Result) {
	for _, score := range row.Get("scores").Array() {
		if id := score.Get("observationId").Str; id != "" && score.Get("value").Type == gjson.Number {
			l.scores[id] = append(l.scores[id], score)
		}
	}
	if inner := row.Get("trace"); inner.IsObject() {
		row = inner
	}
	said := make(map[string]json.RawMessage)
	row.ForEach(func(name, value gjson.Result) bool {
		switch field := camelCase(name.Str); field {
		case "userId", "sessionId", "name", "tags", "metadata", "environment", "release", "version":
			said[field] = json.RawMessage(value.Raw)
		}
		return true
	})
	text, _ := json.Marshal(said) // what was JSON marshals
	l.traces[row.Get("id").Str] = gjson.ParseBytes(text)
}
