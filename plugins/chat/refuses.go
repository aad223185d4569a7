package chat

import (
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// refuses reports whether the vendor is known to refuse a request of Chat Completions, or not to
// do what it asks. A translation adapts the request, and says how.
func (v *vendor) refuses(body *plugins.Object, model *plugins.Capabilities) bool {
	choice, format := body.Get("tool_choice"), body.Get("response_format").Get("type").Str
	tools := body.Get("tools")
	hasTools := tools.IsArray() && tools.Raw != "[]"
	switch {
	case format == "json_schema" && v.format == objectOnly, format == "json_object" && v.format == schemaOnly,
		format != "" && format != "text" && v.formatOrTools && hasTools,
		choice.IsObject() && v.tools.tools != allTools, choice.Str == "required" && v.tools.tools == freeChoice:
		return true
	}
	if v.ownReasoning && body.MayHave("reasoning_content") && body.Get("messages").Get("#.reasoning_content").String() != "[]" {
		return true
	}
	thinks := hasTools && model != nil && model.Reasoning && body.Get("thinking").Get("type").Str != "disabled"
	if thinks && v.thinksUnforced && (choice.IsObject() || choice.Str == "required") {
		return true
	}
	if thinks && v.repeatsReasoning && body.MayHave("tool_calls") {
		for _, message := range body.Get("messages").Array() {
			if message.Get("tool_calls.0").Exists() && message.Get("reasoning_content").Str == "" {
				return true
			}
		}
	}
	return len(body.Get("stop").Array()) > v.stops(model) || !v.tools.calls.TakesChat(body)
}

// stops is how many stop sequences the vendor takes for a model.
func (v *vendor) stops(model *plugins.Capabilities) int {
	switch {
	case v.reasonsUnstopped && model != nil && model.Reasoning:
		return 0
	case v.maxStops > 0:
		return v.maxStops
	}
	return translate.AnyStops
}
