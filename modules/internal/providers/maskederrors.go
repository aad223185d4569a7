package providers

import (
	"io"
	"net/http"
	"slices"

	"github.com/weirhq/weir/plugins"
)

// maskAccount puts asterisks in the place of what a refusal names of the platform's account, such as its
// organisation (plugins.MaskAccount). Any other answer may be what a model writes, and passes as it is.
func maskAccount(resp *http.Response) {
	if resp.StatusCode >= http.StatusBadRequest {
		resp.Body = readCloser{&maskedRefusal{body: resp.Body}, resp.Body}
	}
}

// HideAccount masks in an error what it names of the platform's account: also a 200 can state one.
func (a *Account) HideAccount(e *plugins.Error) {
	if masked := []byte(e.Message); a.Platform {
		plugins.MaskAccount(masked)
		e.Message = string(masked)
	}
}

// maxRefusal is how much of a refusal is masked at once, in bytes.
const maxRefusal = 64 << 10

// maskedRefusal reads the body of a refusal with the account masked.
type maskedRefusal struct {
	body io.Reader
	text []byte // masked, and not yet read
	err  error  // of body
}

// Read implements io.Reader. It reads up to maxRefusal of the body before it gives any of it.
func (m *maskedRefusal) Read(p []byte) (int, error) {
	if len(m.text) == 0 && m.err == nil {
		for m.text = m.text[:0]; m.err == nil && len(m.text) < maxRefusal; {
			m.text = slices.Grow(m.text, minRead)
			var n int
			n, m.err = m.body.Read(m.text[len(m.text):cap(m.text)])
			m.text = m.text[:len(m.text)+n]
		}
		plugins.MaskAccount(m.text)
	}
	if len(m.text) == 0 && len(p) > 0 {
		return 0, m.err
	}
	n := copy(p, m.text)
	m.text = m.text[n:]
	return n, nil
}
