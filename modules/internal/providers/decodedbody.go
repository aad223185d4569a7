package providers

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/weirhq/weir/plugins/coding"
)

// maxDecoded bounds an answer that was compressed, in bytes.
const maxDecoded = 256 << 20

// decode decodes an answer: some providers compress what nobody asked them to. An answer with an unknown
// encoding keeps its header, and nothing of it can be read.
func decode(resp *http.Response) {
	encoding := strings.Join(resp.Header.Values("Content-Encoding"), ", ")
	if encoding == "" {
		return
	}
	decoded, known := coding.NewReader(encoding, resp.Body, maxDecoded) //nolint:forbidigo // intake is for what clients send
	if !known {
		resp.Body = unreadable{fmt.Errorf("the provider answered with the Content-Encoding %q, which is not known", encoding), resp.Body}
		return
	}
	resp.Body = decodedBody{decoded, resp.Body}
	resp.Header.Del("Content-Encoding")
	resp.Header.Del("Content-Length")
	resp.ContentLength = -1
}

// decodedBody is a body that closes what it reads from, too.
type decodedBody struct {
	io.ReadCloser
	encoded io.Closer
}

func (b decodedBody) Close() error { return errors.Join(b.ReadCloser.Close(), b.encoded.Close()) }

// unreadable is a body that returns an error for every read.
type unreadable struct {
	err error
	io.Closer
}

func (b unreadable) Read([]byte) (int, error) { return 0, b.err }
