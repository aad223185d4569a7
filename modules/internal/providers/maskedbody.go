package providers

import (
	"bytes"
	"io"
	"net/http"
)

// minMaskedKey is how long a key is at least that is looked for in answers, in bytes. Shorter ones are
// placeholders for servers that need none, and could be words.
const minMaskedKey = 12

// maskKey puts asterisks in the place of the account's key in an error of the provider. Some repeat
// the key that they refuse (https://github.com/BerriAI/litellm/issues/18731), and clients, records and
// logs get the words of the provider.
func (a *Account) maskKey(resp *http.Response) {
	if resp.StatusCode >= http.StatusBadRequest && len(a.key) >= minMaskedKey {
		resp.Body = &maskedBody{body: resp.Body, secret: []byte(a.key), mask: bytes.Repeat([]byte("*"), len(a.key))}
	}
}

// maskedBody reads a body with a mask in the place of a secret. Both have the same length, so that
// the body keeps its own.
type maskedBody struct {
	body         io.ReadCloser
	secret, mask []byte
	masked       []byte // to be read next
	held         []byte // behind masked: what the secret may begin with
	err          error  // of body
}

func (m *maskedBody) Read(p []byte) (int, error) {
	for len(m.masked) == 0 && m.err == nil {
		var n int
		chunk := make([]byte, len(m.held)+4<<10)
		copy(chunk, m.held)
		n, m.err = m.body.Read(chunk[len(m.held):])
		text := bytes.ReplaceAll(chunk[:len(m.held)+n], m.secret, m.mask)
		end := len(text)
		if m.err == nil {
			end -= m.begun(text)
		}
		m.masked, m.held = text[:end], text[end:]
	}
	n := copy(p, m.masked)
	m.masked = m.masked[n:]
	if len(m.masked) == 0 && n == 0 {
		return 0, m.err
	}
	return n, nil
}

// begun returns how many bytes at the end of a text may be the beginning of the secret.
func (m *maskedBody) begun(text []byte) int {
	for n := min(len(m.secret)-1, len(text)); n > 0; n-- {
		if bytes.HasSuffix(text, m.secret[:n]) {
			return n
		}
	}
	return 0
}

func (m *maskedBody) Close() error { return m.body.Close() }
