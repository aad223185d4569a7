package llmotlp

import (
	"math"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/plugins/observe"
)

// Langfuse's SDKs send spans of a convention of their own, to a path of their own,
// and authenticate by HTTP Basic with a public and a secret key.
// https://langfuse.com/integrations/native/opentelemetry

// langfusePath takes what tracesPath takes.
const langfusePath = "/api/public/otel/v1/traces"

// observation begins what Langfuse's SDKs say of a call.
const observation = "langfuse.observation."

// langfuseLabels are the attributes that become properties under their own names. Attributes that
// begin with one of langfuseMetadata become properties, too, under the rest of their names.
var (
	langfuseLabels   = []string{"langfuse.trace.name", "langfuse.trace.tags", "langfuse.environment", "langfuse.release", "langfuse.version"}
	langfuseMetadata = []string{observation + "metadata.", "langfuse.trace.metadata."}
)

// makers are the vendors that serve models of their own.
var makers = []string{"openai", "anthropic", "gemini", "mistral", "cohere", "deepseek", "xai"}

// maker returns the vendor of the model that a Langfuse observation names, "" unless exactly one
// vendor has a model of that name. The convention has no attribute for the provider.
func (c *call) maker(prices *catalog.Catalog) (maker string) {
	if c.text(observation+"type") == "" {
		return ""
	}
	for _, vendor := range makers {
		if m, ok := prices.Lookup(vendor, c.requested()); ok && m.Provider == vendor {
			if maker != "" {
				return ""
			}
			maker = vendor
		}
	}
	return maker
}

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
	details.ForEach(func(name, value gjson.Result) bool {
		n := plugins.Known(value.Int())
		if value.Type != gjson.Number || value.Num < 0 || value.Num >= 1<<53 || value.Num != math.Trunc(value.Num) {
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
	separate := !total.Valid || total.N == input.Plus(output).N
	if separate || u.Input.N < u.CacheRead.Plus(u.CacheWrite).N {
		u.Input = input
	}
	if separate || u.Output.N < u.Reasoning.N {
		u.Output = output
	}
	return u
}

// completionStart returns when the first token of a Langfuse observation came. SDKs write the
// time as JSON, in quotation marks.
func (c *call) completionStart() (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, strings.Trim(c.text(observation+"completion_start_time"), `"`))
	return at, err == nil
}

// stated is what the application says that the call cost.
func (c *call) stated() plugins.Cost {
	dollars, ok := c.number("gen_ai.usage.cost", "llm.cost.total") // OpenInference has the second
	if details := gjson.ParseBytes(c.json(observation + "cost_details")); !ok && details.IsObject() {
		if total := details.Get("total"); total.Exists() {
			dollars = total.Num
		} else {
			details.ForEach(func(_, part gjson.Result) bool {
				dollars += part.Num
				return true
			})
		}
		ok = dollars > 0 // 0 is said of models without a price, too
	}
	if !ok || dollars < 0 || dollars > 1e9 {
		return plugins.Cost{}
	}
	return plugins.KnownCost(plugins.Nanodollars(math.Round(dollars * 1e9)))
}
