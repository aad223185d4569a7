package openai

import (
	"strconv"

	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// Adapt implements translate.Adapter. Models that reason refuse "max_tokens" in Chat
// Completions (https://platform.openai.com/docs/api-reference/chat/create). The others
// refuse to encrypt reasoning, which Codex asks of any model.
func (Provider) Adapt(d plugins.Dialect, body *plugins.Object, t translate.Target) (adapted []byte, warnings []string) {
	switch c := t.Capabilities; {
	case !c.Described():
	case d == plugins.Chat && c.Reasoning:
		return RenameField(body.Data, body, "max_tokens", "max_completion_tokens")
	case d == plugins.Responses && !c.Reasoning:
		for i, value := range body.Get("include").Array() {
			if value.Str == encryptedReasoning {
				adapted, _ = sjson.DeleteBytes(body.Data, "include."+strconv.Itoa(i)) // an array, and a plain path
				return adapted, []string{"include." + encryptedReasoning + ": not supported by the model, left out"}
			}
		}
	}
	return body.Data, nil
}

// encryptedReasoning is the value of include that asks for reasoning to send back.
const encryptedReasoning = "reasoning.encrypted_content"

// RenameField gives a top-level field of data the name by which the target knows it. body is data as
// it was read, before other fields were changed. A field that the body has by both names keeps the
// value of the second. The warning says what was done.
func RenameField(data []byte, body *plugins.Object, from, to string) (renamed []byte, warnings []string) {
	value := body.Get(from)
	if !value.Exists() {
		return data, nil
	}
	renamed = plugins.DeleteField(data, from)
	if !body.Get(to).Exists() {
		renamed, _ = sjson.SetRawBytes(renamed, to, []byte(value.Raw)) // an object, and a plain path
	}
	return renamed, []string{from + ": not supported by the model, sent as " + to}
}
