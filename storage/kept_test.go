package storage_test

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

func TestWhatMustNotBeKeptIsLeftOut(t *testing.T) {
	secret := storage.Body{Type: "application/json", Data: []byte(`{"mcp_servers":[{"authorization_token":"canary","name":"a"}],"messages":[]}`)}
	const clean = `{"mcp_servers":[{"authorization_token":null,"name":"a"}],"messages":[]}`

	t.Run("omitted", func(t *testing.T) {
		var k storage.Kept
		r := &storage.Record{RequestOmitted: true, ResponseOmitted: true}
		k.Inputs(r, map[string]string{"city": "Ulm"})
		k.Media(r, true)
		k.Request(r, secret, 1<<20, true)
		k.Response(r, secret, 1<<20, true)
		c := k.Content(r)
		if c.Inputs != nil || c.Media || c.Request.Data != nil || c.Response.Data != nil || r.RequestTruncated || r.ResponseTruncated {
			t.Errorf("kept %+v of %+v", c, r)
		}
	})
	t.Run("omitted for good", func(t *testing.T) {
		var k storage.Kept
		r := new(storage.Record)
		k.Request(r, secret, 1<<20, false)
		k.Omit(r, true, true)
		r.RequestOmitted, r.ResponseOmitted = false, false
		k.Inputs(r, map[string]string{"city": "Ulm"})
		k.Response(r, secret, 1<<20, false)
		if c := k.Content(r); c.Inputs != nil || c.Request.Data != nil || c.Response.Data != nil || !r.RequestOmitted || !r.ResponseOmitted {
			t.Errorf("kept %+v of %+v", c, r)
		}
	})
	t.Run("a key that an error quotes", func(t *testing.T) {
		const quotes, answer = `{"error":{"param":"sk-canary-0123456789","message":"no sk-canary-0123456789"}}`, `{"text":"your sk-canary-0123456789"}`
		const want = `{"error":{"param":"[redacted]","message":"no [redacted]"}}`
		for _, status := range []int64{400, 401, 500} {
			var k storage.Kept
			k.Response(&storage.Record{Status: plugins.Known(status)}, storage.Body{Data: []byte(quotes)}, 1<<20, false)
			if got := string(k.Content(new(storage.Record)).Response.Data); got != want {
				t.Errorf("%d: %s", status, got)
			}
		}
		var k storage.Kept
		k.Response(&storage.Record{Status: plugins.Known(200)}, storage.Body{Data: []byte(answer)}, 1<<20, false)
		if got := string(k.Content(new(storage.Record)).Response.Data); got != answer {
			t.Errorf("an answer became %s", got)
		}
	})
	t.Run("credentials", func(t *testing.T) {
		var k storage.Kept
		r := new(storage.Record)
		for range 2 { // for each version of the record
			k.Request(r, secret, 1<<20, false)
			k.Response(r, secret, 1<<20, false)
		}
		if c := k.Content(r); string(c.Request.Data) != clean || string(c.Response.Data) != clean || r.RequestTruncated || r.ResponseTruncated {
			t.Errorf("kept %s and %s, truncated %t, %t", c.Request.Data, c.Response.Data, r.RequestTruncated, r.ResponseTruncated)
		}
	})
	t.Run("limit", func(t *testing.T) {
		var k storage.Kept
		r := new(storage.Record)
		k.Request(r, secret, 20, false)
		if c := k.Content(r); string(c.Request.Data) != clean[:20] || !r.RequestTruncated {
			t.Errorf("kept %s, truncated %t", c.Request.Data, r.RequestTruncated)
		}
	})
	t.Run("too deep", func(t *testing.T) {
		var k storage.Kept
		r := new(storage.Record)
		k.Request(r, storage.Body{Data: []byte(strings.Repeat("[", 1<<20) + `"mcp"`)}, 1<<20, false)
		if c := k.Content(r); c.Request.Data != nil || !r.RequestTruncated {
			t.Errorf("kept %d bytes, truncated %t", len(c.Request.Data), r.RequestTruncated)
		}
	})
	t.Run("more of a stream", func(t *testing.T) {
		var k storage.Kept
		r := new(storage.Record)
		body := []byte("data: one\n\ndata: two\n\n")
		k.Response(r, storage.Body{Type: "text/event-stream"}, 1<<20, false)
		k.Response(r, storage.Body{Data: body[:11]}, 1<<20, false)
		k.Response(r, storage.Body{Data: body}, 1<<20, false)
		if c := k.Content(r); string(c.Response.Data) != string(body) || c.Response.Type != "text/event-stream" {
			t.Errorf("kept %q of type %q", c.Response.Data, c.Response.Type)
		}
	})
}

func TestAnnotationsHaveNoCredentials(t *testing.T) {
	secret := `{"tools":[{"type":"mcp","authorization":"canary"}]}`
	a := &storage.Annotation{
		View:         &storage.View{Screen: "requests", State: secret},
		Conversation: &storage.ConversationChange{Metadata: secret, Items: []string{secret, `{"a":1}`}},
	}
	if err := a.Redact(nil); err != nil {
		t.Fatal(err)
	}
	for _, text := range append(a.Conversation.Items, a.Conversation.Metadata, a.View.State) {
		if strings.Contains(text, "canary") {
			t.Errorf("kept %s", text)
		}
	}
	a.View.State = strings.Repeat("[", 1<<20) + `"mcp"`
	if a.Redact(nil) == nil {
		t.Error("a text that cannot be read is kept")
	}
}
