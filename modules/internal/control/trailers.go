package control

import (
	"io"
	"maps"
	"net/http"
)

// RemoveTrailers takes the control headers out of the trailers of r, where they
// come too late to count: their names now, and the values at the body's end.
func RemoveTrailers(r *http.Request, headers *Headers) {
	if r.Trailer == nil {
		return
	}
	b := &trailedBody{r.Body, r.Trailer, headers} //nolint:forbidigo // the body passes as it comes
	b.clean()
	r.Body = b //nolint:forbidigo // likewise
}

// trailedBody is the body of a request with trailers, which net/http fills in
// before Read returns io.EOF.
type trailedBody struct {
	io.ReadCloser
	trailer http.Header
	headers *Headers
}

// Read implements io.Reader.
func (b *trailedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.clean()
	}
	return n, err
}

func (b *trailedBody) clean() {
	maps.DeleteFunc(b.trailer, func(name string, _ []string) bool {
		_, control := b.headers.Cut(name)
		return control
	})
}
