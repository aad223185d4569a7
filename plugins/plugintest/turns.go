package plugintest

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/translate"
)

// Send is the body that a provider is sent for a request, which must be one that
// can be sent, to a target that has a key.
func Send(t testing.TB, p translate.Provider, target translate.Target, request string, strict bool) (gjson.Result, *translate.Request) {
	t.Helper()
	prompt, err := translate.ParseRequest([]byte(request))
	if err != nil {
		t.Fatal(err)
	}
	prompt.Strict, target.Key = strict, "secret"
	req, err := p.Prepare(context.Background(), prompt, target)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(req.Body)
	if err != nil || !gjson.ValidBytes(body) {
		t.Fatalf("%v: %s", err, body)
	}
	return gjson.ParseBytes(body), prompt
}

// Message is what one of the messages of a provider's request has of calls and
// outputs: their ids.
type Message struct {
	Role           string
	Calls, Outputs []gjson.Result
}

// Messages reads the messages of a provider's request.
type Messages func(body gjson.Result) []Message

// Calls holds a provider to the order of calls and outputs that models demand,
// in whichever order clients send them: all calls of a turn are in one message,
// and their outputs are next. Alternates says that no two messages in a row have
// the same role; legal is what an id may be to the provider, nil for anything.
func Calls(t *testing.T, p translate.Provider, target translate.Target, read Messages, alternates bool, legal func(id string) bool) {
	t.Helper()
	call := func(id string) string {
		return `{"type":"function_call","call_id":"` + id + `","name":"f","arguments":"{}"}`
	}
	output := func(id string) string {
		return `{"type":"function_call_output","call_id":"` + id + `","output":"x"}`
	}
	said := `{"role":"assistant","content":"a"}`
	send := func(t *testing.T, items []string) []Message {
		body, _ := Send(t, p, target, `{"model":"m","tools":[{"type":"function","name":"f"}],"input":[{"role":"user","content":"hi"},`+
			strings.Join(items, ",")+`,{"role":"user","content":"?"}]}`, false)
		messages := read(body)
		follow(t, messages, alternates)
		return messages
	}
	for name, items := range map[string][]string{
		"bug 14: in turn":                  {call("1"), call("2"), output("1"), output("2")},
		"bug 14: one by one":               {call("1"), output("1"), call("2"), output("2")},
		"bug 14: the other way around":     {said, call("1"), call("2"), output("2"), output("1")},
		"bug 15: a message in their midst": {call("1"), said, output("1")},
	} {
		t.Run(name, func(t *testing.T) { send(t, items) })
	}
	for _, id := range []string{"functions.f:0", "é", strings.Repeat("x", 100)} {
		t.Run("bug 8: "+id, func(t *testing.T) {
			var calls []gjson.Result
			for _, m := range send(t, []string{call(id), call(id + "."), output(id + "."), output(id)}) {
				calls = append(calls, m.Calls...)
			}
			if len(calls) != 2 || calls[0].Str == calls[1].Str || legal != nil && !legal(calls[0].Str) {
				t.Errorf("the calls are %v", calls)
			}
		})
	}
}

// follow holds messages to outputs that follow their calls.
func follow(t *testing.T, messages []Message, alternates bool) {
	t.Helper()
	var open []string
	calls := 0
	for i, m := range messages {
		if alternates && i > 0 && m.Role == messages[i-1].Role {
			t.Errorf("two messages of the %s in a row: %+v", m.Role, messages)
		}
		for _, output := range m.Outputs {
			id := output.Str
			if !slices.Contains(open, id) {
				t.Errorf("an output without its call: %+v", messages)
			}
			open = slices.DeleteFunc(open, func(other string) bool { return other == id })
		}
		if len(open) > 0 && len(m.Outputs) == 0 {
			t.Errorf("the calls %q have no output: %+v", open, messages)
		}
		for _, call := range m.Calls {
			open = append(open, call.Str)
			calls++
		}
	}
	if len(open) > 0 || calls == 0 {
		t.Errorf("the calls %q have no output: %+v", open, messages)
	}
}

// Next is the body that a provider is sent when a client goes on from the
// fixture's response, with outputs for its calls and fields (`"name":value`)
// beside. Nothing of the response may be left out but what the provider ran.
func (f Fixture) Next(t testing.TB, p translate.Provider, target translate.Target, stream bool, fields ...string) gjson.Result {
	t.Helper()
	response, _ := f.Answer(t, p, stream)
	input := `{"role":"user","content":"hi"}`
	for _, item := range response.Get("output").Array() {
		input += "," + item.Raw
	}
	for _, call := range response.Get("output.#(call_id)#").Array() {
		input += `,{"type":"` + call.Get("type").Str + `_output","call_id":` + call.Get("call_id").Raw + `,"output":"x"}`
	}
	body, _ := Send(t, p, target, `{"model":"m","input":[`+input+`,{"role":"user","content":"?"}],`+strings.Join(append(fields, `"store":false}`), ","), true)
	return body
}
