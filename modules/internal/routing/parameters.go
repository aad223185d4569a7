package routing

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
)

// unsettable are fields that an alias does not set: they decide what the call is, and how its
// client reads the answer.
var unsettable = []string{
	"background", "contents", "conversation", "input", "messages", "model", "n", "previous_response_id", "prompt", "store", "stream",
}

// Names for fields that each API calls something else.
const (
	maxTokens       = "max_tokens"
	reasoningEffort = "reasoning_effort"
)

// effortFields are the fields for reasoning_effort.
var effortFields = map[plugins.Dialect]string{
	plugins.Chat: reasoningEffort,
	// https://platform.openai.com/docs/api-reference/responses/create#responses_create-reasoning
	plugins.Responses: "reasoning.effort",
	// https://platform.claude.com/docs/en/build-with-claude/effort
	plugins.Messages: "output_config.effort",
}

// HasParameters reports whether the choice changes requests.
func (c *Choice) HasParameters() bool { return c != nil && len(c.Set)+len(c.Limit) > 0 }

// Apply returns a request with the choice's parameters, and warnings that tell the client what has
// changed.
func (c *Choice) Apply(d plugins.Dialect, body []byte) (applied []byte, warnings []string, err error) {
	applied = body
	if name := repeated(body); name != "" { // who reads the last one would not see what is set in the first
		return nil, nil, fmt.Errorf("%s stands twice", name)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Set)) {
		fields := fieldsOf(d, name, applied)
		if len(fields) == 0 {
			warnings = append(warnings, name+": not set, this API has no field for it")
		}
		for _, field := range fields {
			if applied, err = sjson.SetRawBytes(applied, field, c.Set[name]); err != nil {
				return nil, nil, fmt.Errorf("set %s: %w", field, err)
			}
			warnings = append(warnings, fmt.Sprintf("%s: set to %s", field, compact(c.Set[name])))
		}
		if name == reasoningEffort && d == plugins.Messages {
			if applied, err = thinkAsSet(applied); err != nil {
				return nil, nil, fmt.Errorf("set %s: %w", name, err)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Limit)) {
		limit := c.Limit[name]
		fields := fieldsOf(d, name, applied)
		if len(fields) == 0 {
			warnings = append(warnings, name+": not limited, this API has no field for it")
		}
		for _, field := range fields {
			if was := gjson.GetBytes(applied, field); was.Type == gjson.Number && was.Num <= float64(limit) {
				continue
			}
			if applied, err = sjson.SetBytes(applied, field, limit); err != nil {
				return nil, nil, fmt.Errorf("limit %s: %w", field, err)
			}
			warnings = append(warnings, fmt.Sprintf("%s: limited to %d", field, limit))
		}
	}
	if applied, err = fitThinking(applied); err != nil {
		return nil, nil, fmt.Errorf("limit %s: %w", thinkingBudget, err)
	}
	return applied, warnings, nil
}

// repeated is the name of a field that stands twice, "" if none does.
func repeated(body []byte) string {
	object, _ := plugins.ParseObject(body)
	seen := make(map[string]bool, len(object.Members))
	for _, m := range object.Members {
		if seen[m.Name] {
			return m.Name
		}
		seen[m.Name] = true
	}
	return ""
}

// thinkingBudget is what a model may think, which Messages refuses unless it is below max_tokens, and
// from 1,024 on (https://platform.claude.com/docs/en/build-with-claude/extended-thinking).
const (
	thinkingBudget = "thinking.budget_tokens"
	leastThinking  = 1024
)

// thinkAsSet lets the effort of a request of Messages decide how much a model thinks, in place of the
// client's number of tokens: models without levels of effort have this number alone. The effort `none` is
// no level of Messages.
func thinkAsSet(body []byte) ([]byte, error) {
	effort := effortFields[plugins.Messages]
	switch {
	case gjson.GetBytes(body, effort).Str == "none":
		body, err := sjson.DeleteBytes(body, effort)
		if err != nil {
			return nil, err
		}
		return sjson.SetRawBytes(body, "thinking", []byte(`{"type":"disabled"}`))
	case gjson.GetBytes(body, thinkingBudget).Exists():
		body, err := sjson.DeleteBytes(body, thinkingBudget)
		if err != nil {
			return nil, err
		}
		return sjson.SetBytes(body, "thinking.type", "adaptive")
	}
	return body, nil
}

// fitThinking lowers what a model may think below the limit of its output. Where that leaves too
// little, the model does not think.
func fitThinking(body []byte) ([]byte, error) {
	budget, limit := gjson.GetBytes(body, thinkingBudget), gjson.GetBytes(body, maxTokens)
	switch {
	case budget.Type != gjson.Number || limit.Type != gjson.Number || budget.Int() < limit.Int():
		return body, nil
	case limit.Int()/2 < leastThinking:
		return sjson.DeleteBytes(body, "thinking")
	}
	return sjson.SetBytes(body, thinkingBudget, limit.Int()/2)
}

// fieldsOf returns the fields of a request that a name stands for, as the API of the request has
// them. Of several fields with one meaning they are those that the request has, else the first.
func fieldsOf(d plugins.Dialect, name string, body []byte) []string {
	switch name {
	case reasoningEffort:
		if field := effortFields[d]; field != "" {
			return []string{field}
		}
		return nil
	case maxTokens:
		limits := observe.OutputLimits(d)
		given := slices.DeleteFunc(slices.Clone(limits), func(field string) bool { return !gjson.GetBytes(body, field).Exists() })
		if len(given) > 0 || len(limits) == 0 {
			return given
		}
		return limits[:1]
	}
	return []string{name}
}

// compact returns a value as a header can carry it.
func compact(v json.RawMessage) string { return printable(string(v)) }
