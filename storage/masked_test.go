package storage_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"github.com/weirhq/weir/internal/mask"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

func masker(t *testing.T) *mask.Masker {
	t.Helper()
	m, err := mask.New([]*mask.Rule{{Kinds: []string{"email", "card"}}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// framing is how a dialect separates the events of its streams.
type framing struct {
	contentType string
	frame       func(t *testing.T, events []string) []byte
}

var (
	serverSent = framing{"text/event-stream", func(_ *testing.T, events []string) []byte {
		return []byte("data: " + strings.Join(events, "\n\ndata: ") + "\n\n")
	}}
	lines = framing{"application/x-ndjson", func(_ *testing.T, events []string) []byte {
		return []byte(strings.Join(events, "\n") + "\n")
	}}
	array = framing{"application/json", func(_ *testing.T, events []string) []byte {
		return []byte("[" + strings.Join(events, ",") + "]")
	}}
	// amazon has the type of each event before it.
	amazon = framing{"application/vnd.amazon.eventstream", func(t *testing.T, events []string) []byte {
		var b bytes.Buffer
		for _, e := range events {
			name, payload, _ := strings.Cut(e, " ")
			m := eventstream.Message{Payload: []byte(payload)}
			m.Headers.Set(":event-type", eventstream.StringValue(name))
			if err := eventstream.NewEncoder().Encode(&b, m); err != nil {
				t.Fatal(err)
			}
		}
		return b.Bytes()
	}}
	// invoked has the events of a maker of models within those of Amazon.
	invoked = framing{amazon.contentType, func(t *testing.T, events []string) []byte {
		chunks := make([]string, len(events))
		for i, e := range events {
			chunks[i] = `chunk {"bytes":"` + base64.StdEncoding.EncodeToString([]byte(e)) + `"}`
		}
		return amazon.frame(t, chunks)
	}}
)

// streamed are the streams of the dialects that are stored as objects: what they begin with, and
// an event that adds a text to an answer, or to the arguments of a tool.
var streamed = []struct {
	dialect plugins.Dialect
	framing
	head  []string
	event string
}{
	{plugins.Chat, serverSent, nil, `{"id":"a","object":"chat.completion.chunk","choices":[{"index":1,"delta":{"content":%q}}]}`},
	{plugins.Chat, serverSent, []string{`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}}]}`},
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":%q}}]}}]}`},
	{plugins.Messages, serverSent, []string{
		`{"type":"message_start","message":{"id":"a","type":"message","role":"assistant","content":[],"usage":{}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
	}, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q}}`},
	{plugins.Responses, serverSent, []string{
		`{"type":"response.created","response":{"id":"a","object":"response","output":[]}}`,
		`{"type":"response.output_item.added","output_index":0,"item":{"id":"i","type":"message","role":"assistant","content":[]}}`,
		`{"type":"response.content_part.added","item_id":"i","output_index":0,"content_index":0,"part":{"type":"output_text","text":""}}`,
	}, `{"type":"response.output_text.delta","item_id":"i","output_index":0,"content_index":0,"delta":%q}`},
	{plugins.Responses, serverSent, []string{
		`{"type":"response.created","response":{"id":"a","object":"response","output":[]}}`,
		`{"type":"response.output_item.added","output_index":0,"item":{"id":"i","type":"function_call","name":"f","arguments":""}}`,
	}, `{"type":"response.function_call_arguments.delta","item_id":"i","output_index":0,"delta":%q}`},
	{plugins.Completions, serverSent, nil, `{"id":"a","object":"text_completion","choices":[{"index":0,"text":%q}]}`},
	{plugins.OllamaChat, lines, nil, `{"model":"m","message":{"role":"assistant","content":%q},"done":false}`},
	{plugins.OllamaGenerate, lines, nil, `{"model":"m","response":%q,"done":false}`},
	{plugins.GenerateContent, array, nil, `{"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":%q}]}}]}`},
	{plugins.GenerateContent, serverSent, nil, `{"candidates":[{"index":1,"content":{"role":"model","parts":[{"text":%q}]}}]}`},
	{plugins.Interactions, serverSent, []string{
		`{"event_type":"interaction.start","interaction":{"id":"v1","model":"g","status":"in_progress"}}`,
		`{"event_type":"content.start","index":0,"content":{"type":"text"}}`,
	}, `{"event_type":"content.delta","index":0,"delta":{"type":"text","text":%q}}`},
	{plugins.CohereChat, serverSent, []string{
		`{"type":"message-start","id":"a","delta":{"message":{"role":"assistant"}}}`,
		`{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":""}}}}`,
	}, `{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":%q}}}}`},
	{plugins.Converse, amazon, []string{`messageStart {"role":"assistant"}`}, `contentBlockDelta {"contentBlockIndex":0,"delta":{"text":%q}}`},
	{plugins.Invoke, invoked, nil, `{"generation":%q}`},
	{plugins.Invoke, invoked, nil, `{"outputText":%q,"index":0}`},
}

// A value is masked wherever a stream splits it between two events, or all its letters among as
// many, in each dialect whose streams are stored as objects.
func TestValuesThatStreamsSplitAreMasked(t *testing.T) {
	const canary, text = "alice@example.com", "Write to alice@example.com today."
	m := masker(t)
	dialects := make(map[plugins.Dialect]bool)
	for _, s := range streamed {
		dialects[s.dialect] = true
		for split := 1; split <= len(text); split++ {
			parts := []string{text[:split], text[split:]}
			if split == len(text) {
				parts = strings.Split(text, "")
			}
			events := slices.Clone(s.head)
			for _, part := range parts {
				events = append(events, fmt.Sprintf(s.event, part))
			}
			r := &storage.Record{Dialect: s.dialect, Stream: true}
			k := storage.Keep(r, storage.Content{Response: storage.Body{Type: s.contentType, Data: s.frame(t, events)}}, 1<<20)
			masked, c := k.Masked(r, m)
			if got := string(c.Response.Data); strings.Contains(got, canary) || !strings.Contains(got, "Write to [EMAIL] today.") {
				t.Errorf("%s, split at %d: %s", s.dialect, split, got)
			}
			if masked.Masked != `{"email":1}` || r.Masked != "" {
				t.Errorf("%s: counted %q, and %q of the record that was given", s.dialect, masked.Masked, r.Masked)
			}
		}
	}
	if len(dialects) < 11 {
		t.Errorf("only %d dialects", len(dialects))
	}
}

// A stream that cannot be put together is left out, and so is the end of a body that was cut.
func TestWhatMayHavePartsOfValuesIsLeftOut(t *testing.T) {
	m := masker(t)
	r := new(storage.Record)
	k := storage.Keep(r, storage.Content{
		Request:  storage.Body{Type: "text/plain", Data: []byte(strings.Repeat("a ", 1000) + "4111 1111 1111 1111")},
		Response: storage.Body{Type: "text/event-stream", Data: []byte("data: alice@exa\n\ndata: mple.com\n\n")},
	}, 2015)
	masked, c := k.Masked(r, m)
	if c.Response.Data != nil || !masked.ResponseTruncated {
		t.Errorf("kept of the stream: %s", c.Response.Data)
	}
	if strings.Contains(string(c.Request.Data), "4") || len(c.Request.Data) == 0 {
		t.Errorf("kept of the request: %s", c.Request.Data)
	}
}

// Every text of a record is masked, except what says to whom the record belongs, what the
// operator configures, and what is no text of anybody. A new field is masked, or stands here.
func TestEveryTextOfARecordIsMasked(t *testing.T) {
	const canary = "alice@example.com"
	own := []string{
		"Org", "AuthHash", "KeyID", "Project", "VerifiedBy", "Account", "Arm", "GatewayNode", "PriceVersion", "Dialect", "AnswerCache",
		"TraceID", "SpanID", "SpanKeys", "Charges", "Assets", "Masked", // hexadecimal digits, and counts
	}
	r := new(storage.Record)
	var fill func(v reflect.Value)
	fill = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.String:
			v.SetString(canary)
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0))
		case reflect.Map:
			name, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(name)
			fill(value)
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(name, value)
		}
	}
	fields := reflect.ValueOf(r).Elem()
	for i := range fields.NumField() {
		if !slices.Contains(own, fields.Type().Field(i).Name) {
			fill(fields.Field(i))
		}
	}
	masked, _ := new(storage.Kept).Masked(r, masker(t))
	fields = reflect.ValueOf(masked).Elem()
	for i := range fields.NumField() {
		if got := fmt.Sprint(fields.Field(i)); strings.Contains(got, canary) {
			t.Errorf("%s is %s", fields.Type().Field(i).Name, got)
		}
	}
}

func TestNamesAndAnnotationsAreMasked(t *testing.T) {
	const canary = "alice@example.com"
	m := masker(t)
	r := &storage.Record{
		UserID: canary, SessionID: canary, SessionName: canary, SessionPath: "/" + canary, JobID: canary, ErrorType: canary, ErrorMessage: canary, TargetURL: "https://a.b/?q=" + canary,
		Properties: map[string]string{canary: canary, "Team": "a"}, Masked: `{"card":2,"email":1}`,
	}
	k := storage.Keep(r, storage.Content{Inputs: map[string]string{"to": canary}}, 1<<20)
	masked, c := k.Masked(r, m)
	if got := fmt.Sprintf("%+v %+v", *masked, *c); strings.Contains(got, canary) {
		t.Errorf("kept: %s", got)
	}
	if masked.Properties["Team"] != "a" || r.UserID != canary || masked.Masked != `{"card":2,"email":12}` {
		t.Errorf("%v, %s, %s", masked.Properties, r.UserID, masked.Masked)
	}
	if same, _ := k.Masked(r, nil); same != r {
		t.Error("a record is copied that nothing masks")
	}
	tag := canary
	a := &storage.Annotation{
		SessionID: canary, Tag: &tag, Property: &storage.Property{Name: canary, Value: canary},
		Scores: map[string]float64{canary: 1}, Removed: []string{canary},
		Conversation: &storage.ConversationChange{
			User: canary, Add: []string{canary}, Remove: canary,
			Metadata: `{"a":"` + canary + `"}`, Items: []string{`{"text":"alice\u0040example.com"}`},
		},
		View: &storage.View{Name: canary, Screen: canary, State: `{"q":"` + canary + `"}`},
	}
	if err := a.Redact(m); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		a.SessionID, *a.Tag, a.Property.Name, a.Property.Value, a.Conversation.Metadata, a.Conversation.Items[0], a.View.State,
		a.View.Name, a.View.Screen, a.Conversation.User, a.Conversation.Add[0], a.Conversation.Remove, a.Removed[0], fmt.Sprint(a.Scores),
	} {
		if !strings.Contains(text, "[EMAIL]") || strings.Contains(text, "example.com") {
			t.Errorf("kept: %s", text)
		}
	}
}

// The versions of a record, and its export, mask each body once.
func TestBodiesAreMaskedOnce(t *testing.T) {
	m := masker(t)
	r := &storage.Record{Dialect: plugins.Chat}
	k := storage.Keep(r, storage.Content{
		Request:  storage.Body{Type: "application/json", Data: []byte(`{"a":"alice@example.com"}`)},
		Response: storage.Body{Type: "text/event-stream", Data: []byte(`data: {"id":"a","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"bob@example.com"}}]}` + "\n\n")},
	}, 1<<20)
	first, c := k.Masked(r, m)
	again, c2 := k.Masked(r, m)
	if &c.Request.Data[0] != &c2.Request.Data[0] || &c.Response.Data[0] != &c2.Response.Data[0] {
		t.Error("a body is masked twice")
	}
	if first.Masked != again.Masked || first.Masked != `{"email":2}` {
		t.Errorf("counted %s, then %s", first.Masked, again.Masked)
	}
}
