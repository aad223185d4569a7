package plugintest

import (
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

// Calls checks [Failures], and that a provider sends calls and outputs in the order that models require, in
// any order that clients send them. Strict knows the order that the vendor takes. ids is the
// path of the ids of all calls in the body. roles is the path of the roles of messages: no
// two messages in a row may have the same role, unless roles is "". legal reports whether the
// provider takes an id, nil if it takes any.
func Calls(t *testing.T, p translate.Provider, target translate.Target, ids, roles string, legal func(id string) bool) {
	t.Helper()
	Failures(t, p, target)
	call := func(id string) string {
		return `{"type":"function_call","call_id":"` + id + `","name":"f","arguments":"{}"}`
	}
	output := func(id string) string {
		return `{"type":"function_call_output","call_id":"` + id + `","output":"x"}`
	}
	message := `{"role":"assistant","content":"a"}`
	for name, items := range map[string][]string{
		"in turn":                  {call("1"), call("2"), output("1"), output("2")},
		"one by one":               {call("1"), output("1"), call("2"), output("2")},
		"the other way around":     {message, call("1"), call("2"), output("2"), output("1")},
		"a message in their midst": {call("1"), message, output("1"), call("2"), output("2")},
		"an id with a colon":       {call("functions.f:0"), call("functions.f:1"), output("functions.f:1"), output("functions.f:0")},
		"an id beyond ASCII":       {call("é"), call("é."), output("é."), output("é")},
		"a long id":                {call(long), call(long + "."), output(long + "."), output(long)},
	} {
		t.Run(name, func(t *testing.T) {
			body, _ := Send(t, p, target, `{"model":"m","tools":[{"type":"function","name":"f"}],"input":[{"role":"user","content":"hi"},`+
				strings.Join(items, ",")+`,{"role":"user","content":"?"}]}`, false)
			calls, speakers := body.Get(ids+"|@flatten").Array(), body.Get(roles).Array()
			if len(calls) != 2 || calls[0].Str == calls[1].Str || legal != nil && !legal(calls[0].Str) {
				t.Errorf("the calls are %v", calls)
			}
			for i := 1; i < len(speakers); i++ {
				if speakers[i].Str == speakers[i-1].Str {
					t.Errorf("two messages of the %s in a row: %s", speakers[i].Str, body.Raw)
				}
			}
		})
	}
}

// Failures checks that a model can tell the output of a failed call from that of another.
func Failures(t *testing.T, p translate.Provider, target translate.Target) {
	t.Helper()
	for _, output := range []string{`""`, `"no such file"`, `[{"type":"input_text","text":"no such file"}]`} {
		told := make(map[string]bool)
		for _, status := range []string{"completed", "incomplete"} {
			body, _ := Send(t, p, target, `{"model":"m","tools":[{"type":"function","name":"f"}],"input":[{"role":"user","content":"hi"},`+
				`{"type":"function_call","call_id":"call_1_abc","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"call_1_abc","output":`+output+`,"status":"`+status+`"}]}`, false)
			told[body.Raw] = true
		}
		if len(told) != 2 {
			t.Errorf("the output %s of a failed call reads as that of another: %v", output, told)
		}
	}
}

var long = strings.Repeat("x", 100)

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
