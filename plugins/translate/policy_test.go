package translate

import (
	"errors"
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins"
)

func TestApply(t *testing.T) {
	policy := DefaultPolicy.With(Policy{"tools.web_search": Translate, "text.format": Reject, "text.verbosity": Ignore})
	tests := []struct{ name, fields, want string }{
		{"translated", `"temperature":0.5,"max_output_tokens":9`, ""},
		{"defaults ask for nothing", `"truncation":"disabled","parallel_tool_calls":true,"top_logprobs":0,"background":false,"service_tier":"default"`, ""},
		{"text has no form", `"text":{"format":{"type": "text"}}`, ""},
		{"rejected form", `"text":{"format":{"type":"json_object"}}`, "! text.format"},
		{"null", `"previous_response_id":null`, ""},
		{"rejected", `"previous_response_id":"x"`, "! previous_response_id"},
		{"a documented value that few can honour", `"truncation":"auto"`, "truncation: not supported by the provider, left out"},
		{"warned", `"reasoning":{"effort":"high"}`, "reasoning.effort: not supported by the provider, left out"},
		{"ignored", `"user":"u","metadata":{},"text":{"verbosity":"low"},"stream_options":{"include_obfuscation":true}`, ""},
		{"unknown", `"acme":1`, "acme: not supported by the provider, left out"},
		{"hosted tool", `"tools":[{"type":"file_search"}]`, "tools[0]: there is no tool of type 'file_search' here, left out"},
		{"hosted tool that is no word", `"tools":[{"type":"a\r\nX-Evil: 1"}]`, "tools[0]: there is no tool of type 'a' here, left out"},
		{"hosted tool that must be used", `"tools":[{"type":"file_search"}],"tool_choice":{"type":"file_search"}`, "! tool_choice"},
		{"search without the web", `"tools":[{"type":"web_search","external_web_access":false}]`, "tools[0]: there is no tool of type 'web_search' here, left out"},
		{"search of the web", `"tools":[{"type":"web_search","external_web_access":true}]`, ""},
		{"hosted tool that is translated", `"tools":[{"type":"web_search"}]`, ""},
		{"include", `"include":["reasoning.encrypted_content","x"]`, "include.x: not supported by the provider, left out"},
		{"logprobs", `"include":["message.output_text.logprobs"]`, "include.message.output_text.logprobs: not supported by the provider, left out"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := parse(t, `"input":"x",`+test.fields)
			err := p.Apply(policy)
			got := strings.Join(p.Warnings, "; ")
			var e *plugins.Error
			if errors.As(err, &e) {
				got = "! " + e.Param
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	p := parse(t, `"input":[{"role":"user","content":[{"type":"input_image","image_url":"https://example.com"}]}]`)
	var e *plugins.Error
	if !errors.As(p.Apply(policy), &e) || e.Param != "input[0].content[0]" {
		t.Errorf("an image that is not translated: %v", e)
	}
}

func TestStrictMakesWarningsErrors(t *testing.T) {
	for field, body := range map[string]string{"service_tier": `"service_tier":"flex"`, "tools[0]": `"tools":[{"type":"local_shell"}]`} {
		p := parse(t, `"input":"x",`+body)
		p.Strict = true
		var e *plugins.Error
		if !errors.As(p.Apply(DefaultPolicy), &e) || e.Param != field {
			t.Errorf("%s: %v", body, e)
		}
	}
}

func TestDropUnsetsWhatIsEchoed(t *testing.T) {
	p := parse(t, `"input":"x","temperature":0.5,"reasoning":{"effort":"high"}`)
	attempt := *p
	if err := attempt.Drop(Warn, "temperature", "gone"); err != nil {
		t.Fatal(err)
	}
	if attempt.Temperature != nil || p.Temperature == nil || len(p.Warnings) != 0 {
		t.Error("dropping must change the attempt, and it alone")
	}
}

// The error of a tool that must be used says whether the provider or the request lacks it.
func TestToolsThatMustBeUsed(t *testing.T) {
	for choice, want := range map[string]string{
		`{"type":"web_search"}`:          "The provider does not run tools of type 'web_search', and 'tool_choice' demands one.",
		`{"type":"function","name":"f"}`: "",
	} {
		p, err := ParseRequest([]byte(`{"model":"m","input":"hi","tools":[{"type":"web_search"},{"type":"function","name":"f"}],"tool_choice":` + choice + `}`))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := p.DropTools(func(*Tool) bool { return true }); err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: got %q, want %q", choice, got, want)
		}
	}
}
