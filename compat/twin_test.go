package compat

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/weirhq/weir/compat/replay"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/body"
)

// bodies are the dialects as package body knows them.
var bodies = map[string]plugins.Dialect{
	"chat.completions": plugins.Chat,
	"responses":        plugins.Responses,
	"messages":         plugins.Messages,
	"generateContent":  plugins.GenerateContent,
	"cohere.v2.chat":   plugins.CohereChat,
}

// twin is the same answer in the other mode: the object that a stream comes to,
// or where the dialect has chunks of the same shape, the stream of one chunk.
// It is nil where that can't be told.
func twin(t *testing.T, r *replay.Recording) *replay.Recording {
	t.Helper()
	if r.Status != http.StatusOK {
		return nil
	}
	other := *r
	other.Name += "_twin"
	other.Stream = !r.Stream
	url := *r.URL
	other.URL = &url
	if r.Stream {
		stored, contentType := body.Stored(bodies[r.Endpoint], r.Header["content-type"], r.Response)
		other.Response, other.Header = stored, map[string]string{"content-type": contentType}
		url.Path = strings.Replace(url.Path, ":streamGenerateContent", ":generateContent", 1)
		return &other
	}
	var chunk bytes.Buffer
	if err := json.Compact(&chunk, r.Response); err != nil {
		t.Fatal(err)
	}
	switch r.Endpoint {
	case "chat.completions":
		chunk = *bytes.NewBuffer(bytes.Replace(chunk.Bytes(), []byte(`"message":{`), []byte(`"delta":{`), 1))
	case "generateContent":
		url.Path = strings.Replace(url.Path, ":generateContent", ":streamGenerateContent", 1)
	default:
		return nil
	}
	other.Response = []byte("data: " + chunk.String() + "\n\n")
	other.Header = map[string]string{"content-type": "text/event-stream"}
	return &other
}
