package plugintest

import (
	"testing"

	"github.com/weirhq/weir/plugins/translate"
)

// documented are values of documented fields that some providers cannot honour.
var documented = []string{
	`"truncation":"auto"`,
	`"truncation":"disabled"`,
	`"top_logprobs":3`,
	`"include":["message.output_text.logprobs"]`,
	`"include":["message.input_image.image_url","code_interpreter_call.outputs","reasoning.encrypted_content"]`,
	`"service_tier":"auto"`,
	`"service_tier":"default"`,
	`"service_tier":"flex"`,
	`"service_tier":"scale"`,
	`"service_tier":"priority"`,
}

// Documented checks that a provider accepts every documented value, and honours it
// or leaves it out with a warning; a strict request gets an error in place of the
// warning.
func Documented(t *testing.T, p translate.Provider, target translate.Target) {
	t.Helper()
	for _, field := range documented {
		_, _, r, err := Prepare(t, p, target, Request(field), false)
		if err != nil {
			t.Errorf("%s: got error %v", field, err)
		}
		if _, _, _, err := Prepare(t, p, target, Request(field), true); (err != nil) != (len(r.Warnings) > 0) {
			t.Errorf("%s: strictly, got error %v in place of the warnings %q", field, err, r.Warnings)
		}
	}
}
