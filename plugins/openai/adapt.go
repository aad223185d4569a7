package openai

import (
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// Adapt implements translate.Adapter. Models that reason refuse "max_tokens" in Chat
// Completions (https://platform.openai.com/docs/api-reference/chat/create).
func (Provider) Adapt(d plugins.Dialect, body []byte, t translate.Target) (adapted []byte, warnings []string) {
	if d != plugins.Chat || t.Capabilities == nil || !t.Capabilities.Reasoning {
		return body, nil
	}
	return RenameField(body, "max_tokens", "max_completion_tokens")
}

// RenameField gives a top-level field of a body the name by which the target knows it. A
// field that the body has by both names keeps the value of the second. The warning says
// what was done.
func RenameField(body []byte, from, to string) (renamed []byte, warnings []string) {
	value := gjson.GetBytes(body, from)
	if !value.Exists() {
		return body, nil
	}
	renamed = DeleteField(body, from)
	if !gjson.GetBytes(body, to).Exists() {
		renamed, _ = sjson.SetRawBytes(renamed, to, []byte(value.Raw)) // an object, and a plain path
	}
	return renamed, []string{from + ": not supported by the model, sent as " + to}
}

// DeleteField removes a top-level field from a body, however often the body has the field.
func DeleteField(body []byte, field string) []byte {
	for gjson.GetBytes(body, field).Exists() {
		body, _ = sjson.DeleteBytes(body, field) // an object, and a plain path
	}
	return body
}
