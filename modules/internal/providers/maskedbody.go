package providers

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
)

// minMaskedKey is how long a key is at least that is looked for in answers, in bytes. Shorter ones are
// placeholders for servers that need none, and could be words.
const minMaskedKey = 12

// maskKey puts asterisks in the place of the account's key in an answer of the provider, which has no
// encoding. Some repeat the key that they refuse (https://github.com/BerriAI/litellm/issues/18731), also
// with the status 200 or within a stream, and clients, records and logs get the words of the provider.
func (a *Account) maskKey(resp *http.Response) {
	if len(a.key) < minMaskedKey {
		return
	}
	for _, values := range resp.Header {
		for i, value := range values {
			values[i] = strings.ReplaceAll(value, a.key, strings.Repeat("*", len(a.key)))
		}
	}
	body := &maskedBody{body: resp.Body, secret: []byte(a.key)}
	resp.Body = readCloser{bufio.NewReaderSize(body, max(minRead, 2*len(a.key))), resp.Body}
}

// minRead is how many bytes of a masked body are read at once at least. io.ReadAll begins with as many.
const minRead = 512

// readCloser reads a body in another way.
type readCloser struct {
	io.Reader
	io.Closer
}

// maskedBody reads a body with asterisks in the place of a secret, so that the body keeps its length. It
// masks in the reader's own bytes, which must be more than the secret has, and holds back only what the
// secret may begin with.
type maskedBody struct {
	body   io.Reader
	secret []byte
	begun  int   // bytes of the secret that were read last, and are held back
	err    error // of body
}

func (m *maskedBody) Read(p []byte) (int, error) {
	for m.err == nil {
		n := copy(p, m.secret[:m.begun])
		var read int
		read, m.err = m.body.Read(p[n:])
		text := p[:n+read]
		m.mask(text)
		m.begun = 0
		if m.err == nil {
			m.begun = m.beginning(text)
		}
		if n := len(text) - m.begun; n > 0 {
			return n, nil
		}
	}
	return 0, m.err
}

func (m *maskedBody) mask(text []byte) {
	for i := bytes.Index(text, m.secret); i >= 0; i = bytes.Index(text, m.secret) {
		for n := range m.secret {
			text[i+n] = '*'
		}
		text = text[i+len(m.secret):]
	}
}

// beginning returns how many bytes at the end of a text may be the beginning of the secret.
func (m *maskedBody) beginning(text []byte) int {
	text = text[max(0, len(text)-len(m.secret)+1):]
	for {
		i := bytes.IndexByte(text, m.secret[0])
		if i < 0 {
			return 0
		}
		if text = text[i:]; bytes.HasPrefix(m.secret, text) {
			return len(text)
		}
		text = text[1:]
	}
}
