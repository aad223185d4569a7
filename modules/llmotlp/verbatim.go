package llmotlp

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"
)

// The attributes that have a body as it was sent, in the dialect of url.path. They are Weir's:
// no convention has such attributes.
const (
	requestBody  = "weir.request.body"
	responseBody = "weir.response.body"
)

// path returns the path at the provider, "" if the span does not say it.
func (c *call) path() string {
	if path := c.text("url.path"); path != "" {
		return path
	}
	if u, err := url.Parse(c.text("url.full")); err == nil {
		return u.Path
	}
	return ""
}

// verbatim reports whether the span has bodies as they were sent. They are in the dialect of the
// call.
func (c *call) verbatim() bool { return c.text(requestBody, responseBody) != "" }

// wholeBody is a body as it was sent, the zero Body for an empty text.
func wholeBody(text string) storage.Body {
	if text == "" {
		return storage.Body{}
	}
	body := storage.Body{Type: string(jsonText), Data: []byte(text)}
	switch {
	case json.Valid(body.Data):
	case strings.HasPrefix(text, "data: "), strings.HasPrefix(text, "event: "):
		body.Type = "text/event-stream"
	default:
		body.Type = "text/plain; charset=utf-8"
	}
	return body
}

// hasMedia reports whether a request as it was sent has images, audio or files.
func (c *call) hasMedia() bool {
	reader := observe.NewRequestReader(c.dialect)
	reader.Write([]byte(c.text(requestBody)))
	return reader.Request().Media
}
