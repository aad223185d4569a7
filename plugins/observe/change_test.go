package observe

import "testing"

// A POST that changes what a provider keeps generates nothing, though its answer repeats a usage.
func TestChangesAreNoCalls(t *testing.T) {
	for path, change := range map[string]bool{
		"/v1/batches/batch_1/cancel":                          true,
		"/v1/messages/batches/b/cancel":                       true,
		"/v1beta/batches/b:cancel":                            true,
		"/v1/chat/completions/chatcmpl-1":                     true,
		"/openai/v1/chat/completions/chatcmpl-1/":             true,
		"/v1/threads/thread_1/runs/run_1":                     true,
		"/v1/threads/thread_1/runs/run_1/cancel":              true,
		"/v1/responses/resp_1/cancel":                         true,
		"/v1beta/interactions/i/cancel":                       true,
		"/v1/chat/completions":                                false,
		"/v1/chat/completions/other":                          false,
		"/v1/responses":                                       false,
		"/v1/responses/compact":                               false,
		"/v1/threads/runs":                                    false,
		"/v1/threads/thread_1/runs":                           false,
		"/v1/threads/thread_1/runs/run_1/submit_tool_outputs": false,
		"/v1/chat/completions/chatcmpl-1/messages":            false,
		"/v1beta/models/gemini-2.5-flash:generateContent":     false,
		"/v1/engines/batches/completions":                     false,
	} {
		if got := IsChange(path); got != change {
			t.Errorf("%s: %t", path, got)
		}
	}
}
