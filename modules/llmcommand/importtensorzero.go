package llmcommand

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// tensorzero reads rows of TensorZero's tables, of ClickHouse or of Postgres. A call is a row
// of the table of model inferences. The files before it may have what says more of the call:
// rows of inferences first, then rows of feedback.
// https://www.tensorzero.com/docs/gateway/data-model
type tensorzero struct {
	inferences map[string]map[string]gjson.Result   // by id
	feedback   map[string][]map[string]gjson.Result // by the id of the inference
}

func newTensorZero() *source {
	t := &tensorzero{make(map[string]map[string]gjson.Result), make(map[string][]map[string]gjson.Result)}
	return &source{call: t.call, name: sameName, repeats: strings.Fields(`system input_messages output finish_reason snapshot_hash timestamp provider_type`)}
}

// notCall keeps what a row says of calls, and names the row. The name is "" for a call.
func (t *tensorzero) notCall(r *row) string {
	target := r.text("target_id")
	switch {
	case r.text("function_name") != "" && r.text("episode_id") != "":
		t.inferences[r.text("id")] = r.keep("function_name", "variant_name", "episode_id", "tags")
		return "inferences; their function, variant, episode and tags are said of their calls"
	case r.text("metric_name") != "" && target != "" && t.inferences[target] != nil:
		t.feedback[target] = append(t.feedback[target], r.keep("metric_name", "value"))
		return "feedback; it is said of the calls of its inference"
	case r.text("metric_name") != "" && target != "":
		return "feedback of episodes, or of inferences that are in no file before"
	case r.get("model_name").Exists():
		return ""
	}
	return "rows of other tables"
}

func (t *tensorzero) call(r *row) (*span, string, error) {
	if what := t.notCall(r); what != "" {
		return nil, what, nil
	}
	// TensorZero makes the id and the time of a row when the provider has answered.
	end, inference := r.time("created_at"), r.text("inference_id")
	begin := end
	if took, ok := r.milliseconds("response_time_ms"); ok && !end.IsZero() {
		begin = end.Add(-took)
	}
	s, err := spanOf(inference, r.text("id"), begin, end)
	if err != nil {
		return nil, "", err
	}
	request := structure(r.get("raw_request"))
	model := r.text("model_name")
	model = cmp.Or(request.Get("model").Str, model[strings.LastIndex(model, ":")+1:])
	provider := r.text("model_provider_name")
	s.text("gen_ai.operation.name", "chat")
	s.text("gen_ai.provider.name", provider)
	s.text("gen_ai.request.model", model)
	s.counts(r, map[string]string{"input_tokens": "gen_ai.usage.input_tokens", "output_tokens": "gen_ai.usage.output_tokens"})
	if first, ok := r.milliseconds("ttft_ms"); ok && first > 0 {
		s.number("gen_ai.server.time_to_first_token", first.Seconds())
	}
	if r.flag("cached") {
		s.number("gen_ai.usage.cost", 0)
	} else if cost, ok := r.number("cost"); ok {
		s.number("gen_ai.usage.cost", cost)
	}
	fields := t.inferences[inference]
	s.label("Session-Id", fields["episode_id"].Str)
	labels := map[string]string{"function_name": fields["function_name"].Str, "variant_name": fields["variant_name"].Str}
	for name, value := range structure(fields["tags"]).Map() {
		labels[name] = value.String()
	}
	s.label("User-Id", labels["user_id"])
	delete(labels, "user_id")
	s.properties(labels)
	for _, score := range t.feedback[inference] {
		name := score["metric_name"].String()
		if n, ok := r.asScore("feedback."+name, score["value"]); ok {
			s.score(name, n)
		}
	}
	s.text("url.path", tensorzeroPath(provider, model, request))
	s.text("weir.request.body", r.body("raw_request"))
	s.text("weir.response.body", tensorzeroAnswer(r.body("raw_response")))
	return s, "", nil
}

// tensorzeroPath is the path at which a provider takes requests of this form.
func tensorzeroPath(provider, model string, request gjson.Result) string {
	switch {
	case request.Get("contents").Exists():
		return "/v1beta/models/" + model + ":generateContent"
	case strings.Contains(provider, "anthropic"):
		return "/v1/messages"
	case strings.Contains(provider, "bedrock"):
		return "/model/" + model + "/converse"
	case request.Get("messages").Exists():
		return "/v1/chat/completions"
	case request.Get("input").Exists():
		return "/v1/responses"
	}
	return ""
}

// tensorzeroAnswer is the body of an answer. Of a stream, TensorZero keeps the data of the
// events, an event a line.
func tensorzeroAnswer(raw string) string {
	lines := strings.Split(strings.TrimSpace(raw), "\n")
	if plugins.ValidJSON([]byte(raw)) || !plugins.ValidJSON([]byte(lines[0])) {
		return raw
	}
	return "data: " + strings.Join(lines, "\n\ndata: ") + "\n\n"
}
