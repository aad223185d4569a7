package plugins

import (
	"io"
	"net/http"
	"strings"
)

// maxObject is how long an answer that is not a stream may be, in bytes.
const maxObject = 64 << 20

// ReadObject reads an answer to p that is one object: none was to be streamed,
// or the provider does not stream after all. It is nil for a stream. What is over
// 64 MiB long is cut off, and so no JSON.
func ReadObject(resp *http.Response, p *Prompt) ([]byte, error) {
	if p.Stream && !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxObject))
	if err != nil {
		return nil, err
	}
	return body, nil
}
