package position

import (
	"errors"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// A line is named only for the configuration that was made of it, however its JSON is
// written, and within the block that is meant.
func TestWrap(t *testing.T) {
	tokens, err := caddyfile.Tokenize([]byte(`llm {
	provider openai {
		api_key a
	}
	org acme {
		provider openai {
			api_key a
		}
		provider gemini
		provider groq {
			api_key b
		}
	}
	org globex {
		key c
	}
	provider groq
	key c
}`), "Caddyfile")
	if err != nil {
		t.Fatal(err)
	}
	Note([]byte(`{"a": 1, "b": 2}`), tokens)
	wrong := errors.New("wrong")
	if err := Of([]byte(`{"a":1}`)).Wrap(wrong, "provider openai"); err.Error() != "wrong" {
		t.Errorf("of another configuration: %v", err)
	}
	lines := Of([]byte(`{"b":2,"a":1}`))
	for _, tc := range []struct {
		path []string
		want string
	}{
		{[]string{"provider openai", "api_key a"}, "wrong, at Caddyfile:3"},
		{[]string{"org acme", "provider openai", "api_key a"}, "wrong, at Caddyfile:7"},
		{[]string{"org acme", "provider openai", "api_key b"}, "wrong, at Caddyfile:6"},
		{[]string{"org acme", "provider gemini", "api_key b"}, "wrong, at Caddyfile:9"},
		{[]string{"org globex", "provider openai"}, "wrong, at Caddyfile:14"},
		{[]string{"org acme", "key c"}, "wrong, at Caddyfile:5"},
		{[]string{"provider groq"}, "wrong, at Caddyfile:17"},
		{[]string{"key c"}, "wrong, at Caddyfile:18"},
		{[]string{"org default", "key c"}, "wrong, at Caddyfile:18"},
		{[]string{"provider open"}, "wrong"},
	} {
		if err := lines.Wrap(wrong, tc.path...); err.Error() != tc.want || !errors.Is(err, wrong) {
			t.Errorf("%q: %v, want %s", tc.path, err, tc.want)
		}
	}
	if err := lines.Wrap(nil, "org acme"); err != nil {
		t.Error(err)
	}
}
