package streams

import (
	"testing"

	"github.com/tidwall/gjson"
)

func TestRepeat(t *testing.T) {
	const event = `{"n":1,"text":"a","usage":{"in":10,"parts":[{"kind":"TEXT","n":3}],"cost":0.5},"id":"r1"}`
	v := gjson.Parse(event)
	var r Repeat
	if _, ok := r.Text([]byte(event)); ok {
		t.Error("there is a text before anything was learned")
	}
	r.Learn([]byte(event), v.Get("text"), v.Get("usage"))
	for _, c := range []struct {
		event, text string
		ok          bool
	}{
		{event, "a", true},
		{`{"n":1,"text":"","usage":{"in":0,"parts":[{"kind":"TEXT","n":1234}],"cost":0.5},"id":"r1"}`, "", true},
		{`{"n":1,"text":"\u00e4\n\"\\","usage":{"in":1,"parts":[{"kind":"TEXT","n":3}],"cost":0.5},"id":"r1"}`, "ä\n\"\\", true},
		{`{"n":2,"text":"a","usage":{"in":10,"parts":[{"kind":"TEXT","n":3}],"cost":0.5},"id":"r1"}`, "", false},
		{`{"n":1,"text":"a","usage":{"in":10,"parts":[{"kind":"AUDIO","n":3}],"cost":0.5},"id":"r1"}`, "", false},
		{`{"n":1,"text":"a","usage":{"in":10,"parts":[{"kind":"TEXT","n":3}],"cost":0.6},"id":"r1"}`, "", false},
		{`{"n":1,"text":"a","usage":{"in":10.5,"parts":[{"kind":"TEXT","n":3}],"cost":0.5},"id":"r1"}`, "", false},
		{`{"n":1,"text":"a","usage":{"in":-1,"parts":[{"kind":"TEXT","n":3}],"cost":0.5},"id":"r1"}`, "", false},
		{`{"n":1,"text":"a","usage":{"in":01,"parts":[{"kind":"TEXT","n":3}],"cost":0.5},"id":"r1"}`, "", false},
		{`{"n":1,"text":"a","usage":{"in":,"parts":[{"kind":"TEXT","n":3}],"cost":0.5},"id":"r1"}`, "", false},
		{`{"n":1,"text":"a\x","usage":{"in":10,"parts":[{"kind":"TEXT","n":3}],"cost":0.5},"id":"r1"}`, "", false},
		{"{\"n\":1,\"text\":\"a\n\",\"usage\":{\"in\":10,\"parts\":[{\"kind\":\"TEXT\",\"n\":3}],\"cost\":0.5},\"id\":\"r1\"}", "", false},
		{event + " ", "", false},
		{event[:30], "", false},
		{"", "", false},
	} {
		if text, ok := r.Text([]byte(c.event)); text != c.text || ok != c.ok {
			t.Errorf("%s has the text %q, %v", c.event, text, ok)
		}
	}
}

// What Repeat takes for a repetition is valid, and has that text.
func FuzzRepeat(f *testing.F) {
	const event = `{"text":"a","usage":{"in":10,"parts":[{"n":3}]}}`
	v := gjson.Parse(event)
	f.Add([]byte(event))
	f.Add([]byte(`{"text":"\ud83d\ude00","usage":{"in":7,"parts":[{"n":0}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var r Repeat
		r.Learn([]byte(event), v.Get("text"), v.Get("usage"))
		if text, ok := r.Text(data); ok && (!gjson.ValidBytes(data) || gjson.GetBytes(data, "text").Str != text) {
			t.Errorf("%s has the text %q", data, text)
		}
	})
}
