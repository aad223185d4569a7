package plugins

import (
	"net/http"
	"strings"
	"testing"
)

// Whatever a vendor calls a context that is exceeded, clients read it in the words of their API.
func TestContextExceeded(t *testing.T) {
	for _, message := range []string{
		"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
		"Your input exceeds the context window of this model. Please adjust your input and try again.",
		"prompt is too long: 210000 tokens > 200000 maximum",
		"input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
		"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
		"Input is too long for requested model.",
		"the request exceeds the available context size, try increasing it",
		"request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it",
		"You passed 9001 input tokens and requested 1 output tokens. However, the model's context length is only 8192 tokens.",
		"The decoder prompt (length 9001) is longer than the maximum model length of 8192.",
		"The input (9001 tokens) is longer than the model's context length (8192 tokens).",
		"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
		"too many tokens: size limit exceeded by 2000 tokens.",
		"Please reduce the length of the messages or completion.",
		"The prompt is too long: 200000, model maximum context length: 131071",
		"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097.",
		"This model's maximum prompt length is 131072 but the request contains 200000 tokens.",
		"Trying to keep the first 4096 tokens when context the overflows. However, the model is loaded with context length of only 2048 tokens.",
		"prompt too long; exceeded max context length by 12 tokens",
	} {
		for _, status := range []int{0, 400, 413, 500} {
			e := Refused(status, message)
			if e.Status != http.StatusBadRequest || e.Code != ContextExceeded || e.Type != "invalid_request_error" || e.Message != message {
				t.Errorf("%d %s: %+v", status, message, e)
			}
			if said := e.AnthropicMessage(); !strings.HasPrefix(said, "prompt is too long") || !strings.HasSuffix(said, message) {
				t.Errorf("%s: clients of Messages read %q", message, said)
			}
		}
		if e := Refused(http.StatusTooManyRequests, message); e.Code == ContextExceeded {
			t.Errorf("a limit of a rate is taken for a context: %s", message)
		}
	}
	for _, message := range []string{"max_tokens is too large", "Too many tokens, please wait before trying again.", "Invalid 'user': string too long."} {
		if e := Refused(http.StatusBadRequest, message); e.Code != "" || e.AnthropicMessage() != message {
			t.Errorf("%s: %+v", message, e)
		}
	}
}
