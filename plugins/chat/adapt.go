package chat

import (
	"strconv"

	"github.com/tidwall/gjson"
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
	if p.vendor.messages.bareAnswers {
		if messages, changed := bareAnswers(body.Get("messages")); changed {
			adapted, _ = sjson.SetRawBytes(adapted, "messages", []byte(messages)) // an object, and a plain path
		}
	}
	if p.vendor.messages.systemOnly {
		messages, changed := plugins.MapElements(body.Get("messages"), func(i int, message gjson.Result) string {
			if message.Get("role").Str != "developer" {
				return message.Raw
			}
			warnings = append(warnings, "messages."+strconv.Itoa(i)+".role: not supported by the provider, sent as system")
			asSystem, _ := sjson.Set(message.Raw, "role", "system") // an object, and a plain path, like the next
			return asSystem
		})
		if changed {
			adapted, _ = sjson.SetRawBytes(adapted, "messages", []byte(messages))
		}
	}
	return adapted, warnings
}

// answerFields are what OpenAI's answers have besides, which its libraries send back.
var answerFields = []string{"refusal", "annotations", "audio", "function_call"}

// bareAnswers returns messages without those of answerFields that say nothing.
func bareAnswers(messages gjson.Result) (bare string, changed bool) {
	return plugins.MapElements(messages, func(_ int, message gjson.Result) string {
		kept := message.Raw
		for _, field := range answerFields {
			if v := message.Get(field); v.Exists() && len(v.Array()) == 0 { // null, or an empty list
				kept, _ = sjson.Delete(kept, field) // an object, and a plain path
			}
		}
		return kept
	})
}

// closedFields returns the body of a request with the fields that a closed vendor takes.
func closedFields(body *plugins.Object) (adapted []byte, warnings []string) {
	adapted, warnings = openai.RenameField(body.Data, body, "max_completion_tokens", "max_tokens")
	adapted, seed := openai.RenameField(adapted, body, "seed", "random_seed")
	warnings = append(warnings, seed...)
	for _, name := range onlyOpenAIs {
		if body.Get(name).Exists() {
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
