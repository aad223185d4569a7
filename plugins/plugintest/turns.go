package plugintest

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/translate"
)

// Send is the body that a provider is sent for a request, which must be one that
// can be sent, and the request with the warnings to the client.
func Send(t testing.TB, p translate.Provider, target translate.Target, request string, strict bool) (gjson.Result, *translate.Request) {
	t.Helper()
	_, body, r, err := Prepare(t, p, target, request, strict)
	if err != nil {
		t.Fatal(err)
	}
	return gjson.Parse(body), r
}

// Conversation is where the messages of a provider's request are, and where each
// has its role and the ids of its calls and outputs, as paths.
type Conversation struct {
	Messages, Role, Calls, Outputs string
}

// message is what one message has of calls and outputs.
type message struct {
	role           string
	calls, outputs []gjson.Result
}

func (c Conversation) read(body gjson.Result) (all []message) {
	for _, m := range body.Get(c.Messages).Array() {
		all = append(all, message{m.Get(c.Role).Str, m.Get(c.Calls).Array(), m.Get(c.Outputs).Array()})
	}
	return all
}

// Calls checks that a provider sends calls and outputs in the order that models
// require, in any order that clients send them: all calls of a turn are in one
// message, and their outputs are next. Alternates says that no two messages in a
// row have the same role; legal is what an id may be to the provider, nil for
// anything.
func Calls(t *testing.T, p translate.Provider, target translate.Target, c Conversation, alternates bool, legal func(id string) bool) {
	t.Helper()
	call := func(id string) string {
		return `{"type":"function_call","call_id":"` + id + `","name":"f","arguments":"{}"}`
	}
	output := func(id string) string {
		return `{"type":"function_call_output","call_id":"` + id + `","output":"x"}`
	}
	said := `{"role":"assistant","content":"a"}`
	send := func(t *testing.T, items []string) []message {
		body, _ := Send(t, p, target, `{"model":"m","tools":[{"type":"function","name":"f"}],"input":[{"role":"user","content":"hi"},`+
			strings.Join(items, ",")+`,{"role":"user","content":"?"}]}`, false)
		messages := c.read(body)
		follow(t, messages, alternates)
		return messages
	}
	for name, items := range map[string][]string{
		"in turn":                  {call("1"), call("2"), output("1"), output("2")},
		"one by one":               {call("1"), output("1"), call("2"), output("2")},
		"the other way around":     {said, call("1"), call("2"), output("2"), output("1")},
		"a message in their midst": {call("1"), said, output("1")},
	} {
		t.Run(name, func(t *testing.T) { send(t, items) })
	}
	for _, id := range []string{"functions.f:0", "é", strings.Repeat("x", 100)} {
		t.Run("an id like "+id, func(t *testing.T) {
			var calls []gjson.Result
			for _, m := range send(t, []string{call(id), call(id + "."), output(id + "."), output(id)}) {
				calls = append(calls, m.calls...)
			}
			if len(calls) != 2 || calls[0].Str == calls[1].Str || legal != nil && !legal(calls[0].Str) {
				t.Errorf("the calls are %v", calls)
			}
		})
	}
}

// follow holds messages to outputs that follow their calls.
func follow(t *testing.T, messages []message, alternates bool) {
	t.Helper()
	var open []string
	calls := 0
	for i, m := range messages {
		if alternates && i > 0 && m.role == messages[i-1].role {
			t.Errorf("two messages of the %s in a row: %+v", m.role, messages)
		}
		for _, output := range m.outputs {
			id := output.Str
			if !slices.Contains(open, id) {
				t.Errorf("an output without its call: %+v", messages)
			}
			open = slices.DeleteFunc(open, func(other string) bool { return other == id })
		}
		if len(open) > 0 && len(m.outputs) == 0 {
			t.Errorf("the calls %q have no output: %+v", open, messages)
		}
		for _, call := range m.calls {
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

// ComesBack checks that a provider gets the content of its answer back unchanged
// when a client continues from the fixture's response. The content is at one path
// of the answer, and at another of the body that is sent, which is returned.
func (f Fixture) ComesBack(t testing.TB, p translate.Provider, target translate.Target, answered, sent string) gjson.Result {
	t.Helper()
	body := f.Next(t, p, target, true, `"tools":[{"type":"function","name":"weather"}],"reasoning":{"effort":"high"}`)
	got, want := body.Get(sent).Array(), gjson.GetBytes(f.JSON, answered).Array()
	if len(got) != len(want) {
		t.Fatalf("%s: got %v, want %v", f.Name, got, want)
	}
	for i := range want {
		if got[i].Raw != want[i].Raw {
			t.Errorf("%s: block %d is %s, want %s", f.Name, i, got[i].Raw, want[i].Raw)
		}
	}
	return body
}
