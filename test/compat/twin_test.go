package compat

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
)

// bodies are the dialects as package body knows them.
var bodies = map[string]plugins.Dialect{
	"chat.completions": plugins.Chat,
	"responses":        plugins.Responses,
	"messages":         plugins.Messages,
	"generateContent":  plugins.GenerateContent,
	"cohere.v2.chat":   plugins.CohereChat,
	"converse":         plugins.Converse,
}

// The endpoints whose two modes have paths of their own.
var (
	whole   = strings.NewReplacer(":streamGenerateContent", ":generateContent", "/converse-stream", "/converse")
	chunked = strings.NewReplacer(":generateContent", ":streamGenerateContent")
)

// twin is the same answer in the other mode: the object that a stream comes to,
// or where the dialect has chunks of the same shape, the stream of one chunk.
// It is nil where that can't be told.
func twin(t *testing.T, r *Recording) *Recording {
	t.Helper()
	if r.Status != http.StatusOK {
		return nil
	}
	other := *r
	other.Name += "_twin"
	other.Stream = !r.Stream
	address := r.URL.String()
	if r.Stream {
		stored, contentType := observe.Transcript(bodies[r.Endpoint]).Stored(r.Header["content-type"], r.Response)
		other.Response, other.Header = stored, map[string]string{"content-type": contentType}
		address = whole.Replace(address)
	} else {
		chunk := oneLine(t, r.Response)
		switch r.Endpoint {
		case "chat.completions":
			chunk = strings.Replace(chunk, `"message":{`, `"delta":{`, 1)
		case "generateContent":
			address = chunked.Replace(address)
		default:
			return nil
		}
		other.Response = []byte("data: " + chunk + "\n\n")
		other.Header = map[string]string{"content-type": "text/event-stream"}
	}
	var err error
	if other.URL, err = url.Parse(address); err != nil {
		t.Fatal(err)
	}
	return &other
}

func oneLine(t *testing.T, text []byte) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
