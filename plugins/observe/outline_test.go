package observe

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins"
)

func outlineOf(d plugins.Dialect, body []byte, size func() int) *Outline {
	r := NewRequestReader(d)
	defer r.Free()
	feed(r.Write, body, size)
	o := r.Outline()
	if o == nil {
		return nil
	}
	kept := *o
	kept.Messages = slices.Clone(o.Messages)
	return &kept
}

func outline(t *testing.T, d plugins.Dialect, body string) *Outline {
	t.Helper()
	o := outlineOf(d, []byte(body), chunkings["whole"])
	if o == nil {
		t.Fatalf("no outline of %s", body)
	}
	for name, size := range chunkings {
		if cut := outlineOf(d, []byte(body), size); !reflect.DeepEqual(cut, o) {
			t.Fatalf("%s: %+v, as a whole %+v", name, cut, o)
		}
	}
	return o
}

// twoTurns are requests of each dialect: the second continues the first, after one
// message of the model and one of the user.
var twoTurns = map[plugins.Dialect][2]string{
	plugins.Chat: {
		`{"messages":[{"role":"system","content":"S"},{"role":"user","content":"Hello"}],"tools":[{"type":"function"}]}`,
		`{"tools": [{"type":"function"}], "messages":[{"role":"system","content":"S"},{"role":"user","content":[{"type":"text","text":"Hello"}]},{"role":"assistant","content":"Hi"},{"role":"user","content":"More"}]}`,
	},
	plugins.Responses: {
		`{"input":"Hello","instructions":"S","tools":[]}`,
		`{"input":"Hello","instructions":"S","tools":[]}`,
	},
	plugins.Messages: {
		`{"system":"S","messages":[{"role":"user","content":[{"type":"text","text":"Hello","cache_control":{"type":"ephemeral"}}]}],"tools":[{"name":"t"}]}`,
		`{"system":[{"type":"text","text":"S","cache_control":{"type":"ephemeral","ttl":"1h"}}],"messages":[{"role":"user","content":"Hello"},{"role":"assistant","content":[{"type":"tool_use","input":{"a":[1]}}]},{"role":"user","content":"More"}],"tools":[{"name":"t","cache_control":{"type":"ephemeral"}}]}`,
	},
	plugins.GenerateContent: {
		`{"systemInstruction":{"parts":[{"text":"S"}]},"contents":[{"role":"user","parts":[{"text":"Hello"}]}],"tools":[{}]}`,
		`{"systemInstruction":{"parts":[{"text":"S"}]},"contents":[{"role":"user","parts":[{"text":"Hello"}]},{"role":"model","parts":[{"functionCall":{"name":"f"}}]},{"role":"user","parts":[{"text":"More"}]}],"tools":[{}]}`,
	},
	plugins.Converse: {
		`{"system":[{"text":"S"}],"messages":[{"role":"user","content":[{"text":"Hello"},{"cachePoint":{"type":"default"}}]}],"toolConfig":{"tools":[{"toolSpec":{"name":"t"}}]}}`,
		`{"system":[{"text":"S"},{"cachePoint":{"type":"default"}}],"messages":[{"role":"user","content":[{"text":"Hello"}]},{"role":"assistant","content":[{"text":"Hi"}]},{"role":"user","content":[{"text":"More"}]}],"toolConfig":{"tools":[{"toolSpec":{"name":"t"}}]}}`,
	},
	plugins.CohereChat: {
		`{"messages":[{"role":"user","content":"Hello"}],"tools":[1]}`,
		`{"messages":[{"role":"user","content":"Hello"},{"role":"assistant","content":"Hi"},{"role":"user","content":"More"}],"tools":[1]}`,
	},
	plugins.OllamaChat: {
		`{"messages":[{"role":"user","content":"Hello"}]}`,
		`{"messages":[{"role":"user","content":"Hello"},{"role":"assistant","content":"Hi"},{"role":"user","content":"More"}]}`,
	},
}

func TestAnOutlineRepeatsWhatTheNextTurnRepeats(t *testing.T) {
	for d, bodies := range twoTurns {
		first, next := outline(t, d, bodies[0]), outline(t, d, bodies[1])
		if first.Instructions != next.Instructions || first.Tools != next.Tools || first.Messages[0].Hash != next.Messages[0].Hash {
			t.Errorf("%s: %+v, then %+v", d, first, next)
		}
		if d != plugins.Responses && (len(next.Messages) != 3 || !next.Messages[1].Model || next.Messages[2].Model) {
			t.Errorf("%s: messages %+v", d, next.Messages)
		}
	}
}

func TestAnOutlineChangesWithWhatIsSaid(t *testing.T) {
	for _, c := range [][2]string{
		{`"ab","c"`, `"a","bc"`},
		{`"ab"`, `"ac"`},
		{`{"type":"image_url","image_url":{"url":"a"}}`, `{"type":"image_url","image_url":{"url":"b"}}`},
		{`{"n":[1,{"m":2}]}`, `{"n":[1,{"m":3}]}`},
	} {
		of := func(content string) uint64 {
			return outline(t, plugins.Chat, `{"messages":[{"role":"user","content":[`+content+`]}]}`).Messages[0].Hash
		}
		if of(c[0]) == of(c[1]) {
			t.Errorf("%s and %s have the same hash", c[0], c[1])
		}
	}
}

func TestAnEmptyListOfToolsIsNone(t *testing.T) {
	for d, body := range map[plugins.Dialect]string{
		plugins.Chat:     `{"messages":[{"role":"user","content":"a"}],"tools":[]}`,
		plugins.Messages: `{"tools":[],"messages":[{"role":"user","content":"a"}]}`,
		plugins.Converse: `{"messages":[{"role":"user","content":[{"text":"a"}]}],"toolConfig":{"tools":[]}}`,
	} {
		if o := outline(t, d, body); o.Tools != 0 {
			t.Errorf("%s has tools", body)
		}
	}
}

func TestAnOutlineSaysWhatIsMarkedForTheCache(t *testing.T) {
	for body, marked := range map[string]int{
		`{"messages":[{"role":"user","content":"a"}]}`:                                                                                                         -1,
		`{"system":[{"text":"s","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":"a"}]}`:                                            0,
		`{"messages":[{"role":"user","content":"a"},{"role":"user","content":[{"text":"a","cache_control":{"type":"x"}}]},{"role":"assistant","content":""}]}`: 2,
		`{"cache_control":{"type":"ephemeral"},"messages":[{"role":"user","content":"a"}]}`:                                                                    maxMessages,
	} {
		o := outline(t, plugins.Messages, body)
		if o.Marked != (marked >= 0) || o.MarkedMessages != max(marked, 0) {
			t.Errorf("%s: marked %v, %d messages", body, o.Marked, o.MarkedMessages)
		}
	}
}

func TestATaskIsTheSameHoweverItIsEscaped(t *testing.T) {
	task := "Find all <callers> of \"Open\\Close\" – they are in C:\\new\\util, and é is one.\nSay which."
	want, ok := TextHash(task, TaskLetters)
	if !ok {
		t.Fatal("no hash")
	}
	escaped, _ := json.Marshal(task)
	for _, text := range []string{string(escaped), strings.ReplaceAll(string(escaped), "é", `\u00e9`), strings.ReplaceAll(string(escaped), `\u003c`, "<")} {
		o := outline(t, plugins.Messages, `{"messages":[{"role":"user","content":[{"type":"text","text":"Be brief, whatever it is."},{"type":"text","text":`+text+`}]}]}`)
		if len(o.Tasks) != 2 || o.Tasks[1] != want {
			t.Errorf("%s: %v, want %d", text, o.Tasks, want)
		}
	}
	if _, ok := TextHash("Yes, go on.", TaskLetters); ok {
		t.Error("a short text has a hash")
	}
}

func TestAMessageMatchesTheAnswerThatItRepeats(t *testing.T) {
	var answer []uint64
	for _, text := range []string{"I shall look at all of the \"files\" first.", "call_0123456789abcdef"} {
		hash, ok := TextHash(text, AnswerLetters)
		if !ok {
			t.Fatal("no hash")
		}
		answer = append(answer, hash)
	}
	o := outline(t, plugins.Chat, `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"I shall look at all of the \"files\" first.","tool_calls":[{"id":"call_0123456789abcdef","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","content":"I shall look at all of the others, which are none."}]}`)
	for i, want := range []int{0, 2, 0} {
		if n := o.Messages[i].Matches(answer); n != want {
			t.Errorf("message %d matches %d texts, not %d", i, n, want)
		}
	}
}

func TestWhatIsNoConversationHasNoOutline(t *testing.T) {
	for _, body := range []string{``, `{`, `{"messages":[{"role":"user"`, `{"messages":[]}`, `{"messages":null}`, `{"input":7}`, `[]`, `"x"`} {
		if o := outlineOf(plugins.Chat, []byte(body), chunkings["whole"]); o != nil {
			t.Errorf("%s: %+v", body, o)
		}
	}
}

// A transport may still read the body while somebody looks at the outline.
func TestAnOutlineStaysAsItWas(t *testing.T) {
	const first = `{"messages":[{"role":"user","content":"a"}],"prompt_cache_key":"a"}`
	r := NewRequestReader(plugins.Chat)
	r.Write([]byte(first))
	r.Write([]byte(`{"messages":[{"role":"user","content":"b"}],"prompt_cache_key":"b"}`))
	if got, want := r.Outline(), outline(t, plugins.Chat, first); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, before %+v", got, want)
	}
}
