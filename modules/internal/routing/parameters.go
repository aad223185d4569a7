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
	}
	for _, name := range slices.Sorted(maps.Keys(c.Limit)) {
		most := c.Limit[name]
		for _, field := range fieldsOf(d, name, applied) {
			if was := gjson.GetBytes(applied, field); was.Type == gjson.Number && was.Num <= float64(most) {
				continue
			}
			if applied, err = sjson.SetBytes(applied, field, most); err != nil {
				return nil, nil, fmt.Errorf("limit %s: %w", field, err)
			}
			warnings = append(warnings, fmt.Sprintf("%s: limited to %d", field, most))
		}
	}
	return applied, warnings, nil
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
