package openai

import (
	"bytes"
	"strconv"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// Adapt implements translate.Adapter. Models that reason refuse "max_tokens" in Chat
// Completions (https://platform.openai.com/docs/api-reference/chat/create). The others
// refuse to encrypt reasoning, which Codex asks of any model. Responses have short ids of calls.
func (Provider) Adapt(d plugins.Dialect, body *plugins.Object, t translate.Target) (adapted []byte, warnings []string) {
	adapted = body.Data
	c := t.Capabilities
	if d == plugins.Chat && c.Described() && c.Reasoning {
		return RenameField(adapted, body, "max_tokens", "max_completion_tokens")
	}
	if !d.OfResponses() {
		return adapted, nil
	}
	if isOf(complete, t) && body.MayHave("call_id") {
		adapted, warnings = shortIDs(adapted)
	}
	if c.Described() && !c.Reasoning {
		for i, value := range body.Get("include").Array() {
			if value.Str == encryptedReasoning {
				adapted, _ = sjson.DeleteBytes(adapted, "include."+strconv.Itoa(i)) // an array, and a plain path
				return adapted, append(warnings, "include."+encryptedReasoning+": not supported by the model, left out")
			}
		}
	}
	return adapted, warnings
}

// shortIDs replaces ids of calls that are longer than OpenAI takes: those of another provider, as Weir
// itself has handed them to the client.
func shortIDs(body []byte) (adapted []byte, warnings []string) {
	key := []byte(`"call_id"`)
	copied := 0 // how much of body adapted has
	for at := 0; ; {
		i := bytes.Index(body[at:], key)
		if i < 0 {
			break
		}
		at += i + len(key)
		value := bytes.TrimLeft(body[at:], ": \t\r\n")
		if len(value) == 0 || value[0] != '"' {
			continue
		}
		if id := gjson.Parse(plugins.View(value)); !calls.TakesID(id.Str) {
			begin := len(body) - len(value)
			adapted = plugins.AppendString(append(adapted, body[copied:begin]...), calls.FitID(id.Str, 1))
			copied = begin + len(id.Raw)
			at = copied
		}
	}
	if copied == 0 {
		return body, nil
	}
	return append(adapted, body[copied:]...), []string{"input: ids of calls that are longer than the provider takes, replaced"}
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
