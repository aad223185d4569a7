package echo

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAnswer(t *testing.T) {
	weather := Tool{Name: "get_weather", Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`)}
	clock := Tool{Name: "get_time"}
	for _, tt := range []struct {
		name  string
		r     Request
		text  string
		calls []Call
		cut   bool
	}{
		{"repeats the prompt", Request{Prompt: "hi"}, "You said: hi", nil, false},
		{"has an answer to nothing", Request{}, "You said nothing.", nil, false},
		{"acknowledges an image", Request{Prompt: "look", Images: 1}, "You said: look (with 1 image)", nil, false},
		{"counts images", Request{Images: 2}, "You said nothing. (with 2 images)", nil, false},
		{"does not call unasked", Request{Prompt: "get_weather", Tools: []Tool{weather}}, "You said: get_weather", nil, false},
		{"calls the tool in the prompt", Request{Prompt: "do get_time()", Tools: []Tool{weather, clock}}, "", []Call{{"get_time", "{}"}}, false},
		{"calls several", Request{Prompt: "get_time() get_weather()", Tools: []Tool{weather, clock}}, "",
			[]Call{{"get_weather", `{"city":"text"}`}, {"get_time", "{}"}}, false},
		{"calls one when one is allowed", Request{Prompt: "get_time() get_weather()", Tools: []Tool{weather, clock}, SingleCall: true}, "",
			[]Call{{"get_weather", `{"city":"text"}`}}, false},
		{"calls when it must", Request{Prompt: "hi", Tools: []Tool{clock}, ToolRequired: true}, "", []Call{{"get_time", "{}"}}, false},
		{"does not call again after the result", Request{Prompt: "get_time()", Tools: []Tool{clock}, ToolResults: []string{"noon", "one"}},
			"The tool returned: noon, one", nil, false},
		{"cuts the text", Request{Prompt: "hello", MaxTokens: 2}, "You said", nil, true},
		{"leaves what fits", Request{Prompt: "hi", MaxTokens: 3}, "You said: hi", nil, false},
		{"never cuts a rune", Request{Prompt: "日本", MaxTokens: 3}, "You said: ", nil, true},
		{"leaves out a call that does not fit", Request{Prompt: "get_time() get_weather()", Tools: []Tool{clock, weather}, MaxTokens: 3}, "",
			[]Call{{"get_time", "{}"}}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := tt.r.Answer()
			if a.Text != tt.text || a.Cut != tt.cut {
				t.Errorf("got %q, %t; want %q, %t", a.Text, a.Cut, tt.text, tt.cut)
			}
			if len(a.Calls) != len(tt.calls) {
				t.Fatalf("calls %v, want %v", a.Calls, tt.calls)
			}
			for i, c := range a.Calls {
				if c != tt.calls[i] {
					t.Errorf("call %v, want %v", c, tt.calls[i])
				}
			}
		})
	}
}

func TestAnswerStaysWithinTheLimit(t *testing.T) {
	r := Request{Prompt: "é日本🙂 words", Reasoning: true}
	whole := r.Answer()
	for limit := 1; limit <= int(whole.Usage.Output.N)+1; limit++ {
		r.MaxTokens = limit
		a := r.Answer()
		if a.Usage.Output.N > int64(limit) {
			t.Errorf("limit %d: %d tokens", limit, a.Usage.Output.N)
		}
		if !strings.HasPrefix(whole.Text, a.Text) || !strings.HasPrefix(whole.Reasoning, a.Reasoning) {
			t.Errorf("limit %d: %q, %q are no beginning of the whole answer", limit, a.Reasoning, a.Text)
		}
		if !utf8.ValidString(a.Text) {
			t.Errorf("limit %d: %q is not UTF-8", limit, a.Text)
		}
		if cut := a.Text != whole.Text; cut != a.Cut {
			t.Errorf("limit %d: cut is %t with text %q", limit, a.Cut, a.Text)
		}
	}
}

func TestUsageCountsFourBytesAToken(t *testing.T) {
	u := Request{Prompt: "hello", InputBytes: 5, Reasoning: true}.Answer().Usage
	reasoning := int64(len(thought)+3) / 4
	text := int64(len("You said: hello")+3) / 4
	if u.Input.N != 2 || u.Reasoning.N != reasoning || u.Output.N != reasoning+text {
		t.Errorf("got %+v", u)
	}

	call := Request{Tools: []Tool{{Name: "clock"}}, ToolRequired: true}.Answer().Usage
	if want := int64(len("clock{}")+3) / 4; call.Output.N != want {
		t.Errorf("a call took %d tokens, want %d", call.Output.N, want)
	}
}
