package storage_test

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

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

// A value is masked wherever a stream splits it between two events, in each format whose
// streams are stored as objects.
func TestValuesThatStreamsSplitAreMasked(t *testing.T) {
	const canary, text = "alice@example.com", "Write to alice@example.com today."
	m := masker(t)
	types := map[plugins.Dialect]string{plugins.OllamaChat: "application/x-ndjson", plugins.GenerateContent: "application/json"}
	for dialect, event := range map[plugins.Dialect]string{
		plugins.Chat:            `data: {"id":"a","object":"chat.completion.chunk","choices":[{"index":1,"delta":{"content":%q}}]}`,
		plugins.Messages:        `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q}}`,
		plugins.Responses:       `data: {"type":"response.output_text.delta","item_id":"i","output_index":0,"content_index":0,"delta":%q}`,
		plugins.Completions:     `data: {"id":"a","object":"text_completion","choices":[{"index":0,"text":%q}]}`,
		plugins.OllamaChat:      `{"model":"m","message":{"role":"assistant","content":%q},"done":false}`,
		plugins.GenerateContent: `{"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":%q}]}}]}`,
	} {
		for split := 1; split < len(text); split++ {
			var stream strings.Builder
			switch dialect {
			case plugins.Messages:
				stream.WriteString(`data: {"type":"message_start","message":{"id":"a","type":"message","role":"assistant","content":[],"usage":{}}}` + "\n\n")
				stream.WriteString(`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n")
			case plugins.Responses:
				stream.WriteString(`data: {"type":"response.created","response":{"id":"a","object":"response","output":[]}}` + "\n\n")
				stream.WriteString(`data: {"type":"response.output_item.added","output_index":0,"item":{"id":"i","type":"message","role":"assistant","content":[]}}` + "\n\n")
				stream.WriteString(`data: {"type":"response.content_part.added","item_id":"i","output_index":0,"content_index":0,"part":{"type":"output_text","text":""}}` + "\n\n")
			}
			separator := "\n\n"
			switch dialect {
			case plugins.OllamaChat:
				separator = "\n"
			case plugins.GenerateContent:
				stream.WriteString("[")
				separator = ","
			}
			fmt.Fprintf(&stream, event+separator, text[:split])
			fmt.Fprintf(&stream, event, text[split:])
			if stream.WriteString("\n\n"); dialect == plugins.GenerateContent {
				stream.WriteString("]")
			}
			r := &storage.Record{Dialect: dialect, Stream: true}
			k := storage.Keep(r, storage.Content{Response: storage.Body{Type: cmp.Or(types[dialect], "text/event-stream"), Data: []byte(stream.String())}}, 1<<20)
			masked, c := k.Masked(r, m)
			if got := string(c.Response.Data); strings.Contains(got, canary) || !strings.Contains(got, "Write to [EMAIL] today.") {
				t.Errorf("%s, split at %d: %s", dialect, split, got)
			}
			if masked.Masked != `{"email":1}` || r.Masked != "" {
				t.Errorf("counted %q, and %q of the record that was given", masked.Masked, r.Masked)
			}
		}
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
