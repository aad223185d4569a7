package llmotlp

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
)

// Langfuse's SDKs send spans of a convention of their own, to a path of their own,
// and authenticate by HTTP Basic with a public and a secret key.
// https://langfuse.com/integrations/native/opentelemetry

// langfusePath takes what tracesPath takes.
const langfusePath = "/api/public/otel/v1/traces"

// observation begins what Langfuse's SDKs say of a call.
const observation = "langfuse.observation."

// langfuseLabels are the attributes that become properties under their own names.
var langfuseLabels = []string{"langfuse.trace.name", "langfuse.trace.tags", "langfuse.environment", "langfuse.release", "langfuse.version"}

// observationUsage reads usage_details, in OpenAI's form or as counts by name. Counts that begin
// with "input" add up to the input. Each counts other tokens, unless the total says otherwise.
// https://langfuse.com/docs/observability/features/token-and-cost-tracking
func (c *call) observationUsage() (u plugins.Usage) {
	details := gjson.ParseBytes(c.json(observation + "usage_details"))
	switch {
	case !details.IsObject():
		return u
	case details.Get("prompt_tokens").Exists():
		return observe.Read(plugins.Chat, "", nil, []byte(`{"usage":`+details.Raw+`}`)).Usage
	case details.Get("input_tokens_details").Exists():
		return observe.Read(plugins.Responses, "", nil, []byte(`{"usage":`+details.Raw+`}`)).Usage
	}
	var input, output, total plugins.Count
	var ephemeral int64 // the parts of what was written to Anthropic's cache
	details.ForEach(func(name, value gjson.Result) bool {
		n := plugins.Known(value.Int())
		if value.Type != gjson.Number || !isCount(value.Num) {
			return true
		}
		if strings.Contains(name.Str, "ephemeral") {
			ephemeral += n.N
			if strings.Contains(name.Str, "1h") {
				u.CacheWrite1h = n
			}
			return true
		}
		cache := strings.Contains(name.Str, "cache")
		switch {
		case name.Str == "total" || name.Str == "total_tokens":
			total = n
		case name.Str == "input" || name.Str == "input_tokens":
			u.Input = n
		case name.Str == "output" || name.Str == "output_tokens":
			u.Output = n
		case cache && (strings.Contains(name.Str, "creation") || strings.Contains(name.Str, "write")):
			u.CacheWrite = u.CacheWrite.Plus(n)
		case cache:
			u.CacheRead = u.CacheRead.Plus(n)
		case strings.Contains(name.Str, "reasoning"):
			u.Reasoning = u.Reasoning.Plus(n)
		}
		switch {
		case cache || strings.HasPrefix(name.Str, "input"):
			input = input.Plus(n)
		case strings.HasPrefix(name.Str, "output"):
			output = output.Plus(n)
		}
		return true
	})
	if more := ephemeral - u.CacheWrite.N; more > 0 {
		u.CacheWrite, input = plugins.Known(ephemeral), input.Plus(plugins.Known(more))
	}
	separate := !total.Valid || total.N == input.Plus(output).N
	if separate || u.Input.N < u.CacheRead.Plus(u.CacheWrite).N {
		u.Input = input
	}
	if separate || u.Output.N < u.Reasoning.N {
		u.Output = output
	}
	return u
}
