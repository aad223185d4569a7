package redact

import "testing"

func TestMessageHasNoCredentials(t *testing.T) {
	for text, want := range map[string]string{
		"Rate limit reached.\n  Try again in 2s.":                             "Rate limit reached. Try again in 2s.",
		"Incorrect API key provided: sk-proj-abcdefghijkl1234. See the docs.": "Incorrect API key provided: [redacted] See the docs.",
		"no account for Bearer abc.def.ghi":                                   "no account for Bearer [redacted]",
		"key weir_0123456789abcdef is unknown":                                "key [redacted] is unknown",
		"token eyJhbGciOi.eyJzdWIi.c2ln expired":                              "token [redacted] expired",
		"äääääääääääääääääääääääääääääääääääääääääääääääääää":                 "äääääääääääääääääääääääääääääääääääääääääääääää…",
	} {
		if got := Message(text, 98); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
