//go:build !race

package llmgateway

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// The limit holds for a body that does not tell its length, of which nothing is
// sent on.
func TestLongRequest(t *testing.T) {
	for path, at := range byPath {
		r := at.methods["POST"]
		if r == nil || r.tag != "models" || r.native && path != "/v1/embeddings" { // those are read in the same way
			continue
		}
		s := serve(t, map[string][]upstream{"raw": {speaksResponses}})
		body := io.MultiReader(strings.NewReader(`{"model":"raw/m","input":"`), io.LimitReader(forever('x'), maxRequest))
		resp, answer := s.postTo(path, body)
		if resp.StatusCode != http.StatusRequestEntityTooLarge || gjson.Get(answer, "error.message").Str == "" {
			t.Errorf("%s: %d %.100s", path, resp.StatusCode, answer)
		}
		if records := s.kept.all(); len(records) != 1 || records[0].Status.N != http.StatusRequestEntityTooLarge || !records[0].RequestTruncated {
			t.Errorf("%s: %d records", path, len(records))
		}
	}
}

// What cannot be decoded is refused, and so is a small body that becomes a large one.
func TestEncodedRequestsAreBounded(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {hello}})
	bomb := append([]byte(`{"model":"one/m","input":"`), bytes.Repeat([]byte("0"), maxRequest)...)
	for name, c := range map[string]struct {
		encoding string
		wire     []byte
		status   int
	}{
		"a bomb":            {"gzip", encoded(t, "gzip", bomb), http.StatusRequestEntityTooLarge},
		"a bomb in a bomb":  {"zstd, gzip", encoded(t, "zstd, gzip", bomb), http.StatusRequestEntityTooLarge},
		"cut off":           {"zstd", encoded(t, "zstd", []byte(ask))[:20], http.StatusBadRequest},
		"another encoding":  {"gzip", encoded(t, "zstd", []byte(ask)), http.StatusBadRequest},
		"no encoding":       {"br", []byte(ask), http.StatusBadRequest},
		"unknown encoding":  {"compress", []byte(ask), http.StatusUnsupportedMediaType},
		"too many of them":  {"gzip,gzip,gzip,gzip", []byte(ask), http.StatusUnsupportedMediaType},
		"nothing is undone": {"identity", []byte(ask), http.StatusOK},
	} {
		resp, body := s.postTo("/v1/responses", bytes.NewReader(c.wire), "Content-Encoding", c.encoding)
		if resp.StatusCode != c.status || c.status != http.StatusOK && !gjson.Get(body, "error.message").Exists() {
			t.Errorf("%s: %d %.300s", name, resp.StatusCode, body)
		}
	}
}
