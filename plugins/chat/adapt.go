package chat

import (
	"slices"
	"strconv"

	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/openai"
	"github.com/weirhq/weir/plugins/translate"
)

// onlyOpenAIs are the fields of OpenAI's Chat Completions that a closed vendor does not know. It
// names each in an error (https://github.com/Gitlawb/openclaude/issues/739).
var onlyOpenAIs = []string{
	"audio", "logit_bias", "logprobs", "modalities", "moderation", "prompt_cache_options",
	"prompt_cache_retention", "safety_identifier", "store", "top_logprobs", "user", "verbosity",
	"web_search_options",
}

// Adapt implements translate.Adapter.
func (p *Provider) Adapt(d plugins.Dialect, body *plugins.Object, _ translate.Target) (adapted []byte, warnings []string) {
	if d != plugins.Chat {
		return body.Data, nil
	}
	adapted = body.Data
	if p.vendor.closed {
		adapted, warnings = closedFields(body)
	}
	if p.vendor.messages.systemOnly {
		for i, message := range body.Get("messages").Array() {
			if message.Get("role").Str != "developer" {
				continue
			}
			field := "messages." + strconv.Itoa(i) + ".role"
			adapted, _ = sjson.SetBytes(adapted, field, "system") // an array, and a plain path
			warnings = append(warnings, field+": not supported by the provider, sent as system")
		}
	}
	return adapted, warnings
}

// closedFields returns the body of a request with the fields that a closed vendor takes.
func closedFields(body *plugins.Object) (adapted []byte, warnings []string) {
	adapted, warnings = openai.RenameField(body.Data, body, "max_completion_tokens", "max_tokens")
	adapted, seed := openai.RenameField(adapted, body, "seed", "random_seed")
	warnings = append(warnings, seed...)
	for i := range body.Members {
		if name := body.Members[i].Name; slices.Contains(onlyOpenAIs, name) {
			adapted = plugins.DeleteField(adapted, name)
			warnings = append(warnings, name+": not supported by the provider, left out")
		}
	}
	var messages closedMessages
	if raw := messages.appendAll(nil, body.Get("messages")); messages.changed {
		adapted, _ = sjson.SetRawBytes(adapted, "messages", raw) // an object, and a plain path
		for _, field := range messages.dropped {
			warnings = append(warnings, "messages.*."+field+": not supported by the provider, left out")
		}
	}
	if body.Get("stream_options").Exists() {
		adapted = plugins.DeleteField(adapted, "stream_options")
		warnings = append(warnings, "stream_options: not supported by the provider, left out: the usage of streams comes unasked")
	}
	return adapted, warnings
}
