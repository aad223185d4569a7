package translate

import (
	"bytes"
	"io"
	"net/http"
	"strings"
)

// maxObject is how long an answer that is not a stream may be, in bytes.
const maxObject = 64 << 20

// ReadObject reads an answer to p that is one object: none was to be streamed,
// or the provider does not stream after all. It is nil for a stream. What is over
// 64 MiB long is cut off, and so no JSON.
func ReadObject(resp *http.Response, p *Request) ([]byte, error) {
	if p.Stream && !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		return nil, nil
	}
	body, err := ReadAll(io.LimitReader(resp.Body, maxObject), resp.ContentLength)
	if err != nil {
		return nil, err
	}
	return body, nil
}

// maxTrust is how much memory a mere announcement of a length gets.
const maxTrust = 1 << 20

// ReadAll is io.ReadAll of a body whose Content-Length is announced, or -1.
func ReadAll(r io.Reader, announced int64) ([]byte, error) {
	room := min(max(announced, 0), maxTrust)
	b := bytes.NewBuffer(make([]byte, 0, room+bytes.MinRead)) // else it grows to see the end
	_, err := b.ReadFrom(r)
	return b.Bytes(), err
}
