package providers

import (
	"bufio"
	"io"
	"net/http"
)

// minMaskedKey is how long a key is at least that is looked for in answers, in bytes. Shorter ones are
// placeholders for servers that need none, and could be words.
const minMaskedKey = 12

// maskKey puts asterisks in the place of the account's key in an answer of the provider, which has no
// encoding. Some repeat the key that they refuse (https://github.com/BerriAI/litellm/issues/18731), also
// with the status 200 or within a stream, and clients, records and logs get the words of the provider.
// The messages of a WebSocket are masked, too, unless they are compressed.
func (a *Account) maskKey(resp *http.Response) {
	if len(a.key) < minMaskedKey {
		return
	}
	secret := []byte(a.key)
	var masked []byte // each value in turn
	for _, values := range resp.Header {
		for i, value := range values {
			masked = append(masked[:0], value...)
			if maskSecret(masked, secret); string(masked) != value {
				values[i] = string(masked)
			}
		}
	}
	size := max(minRead, 2*maxEscape*len(secret))
	if socket, ok := resp.Body.(io.ReadWriteCloser); ok && resp.StatusCode == http.StatusSwitchingProtocols {
		frames := &maskedFrames{socket: bufio.NewReader(socket), message: maskedBody{secret: secret}}
		resp.Body = readWriteCloser{bufio.NewReaderSize(frames, size), socket, socket}
		return
	}
	resp.Body = readCloser{bufio.NewReaderSize(&maskedBody{body: resp.Body, secret: secret}, size), resp.Body}
}

// minRead is how many bytes of a masked body are read at once at least. io.ReadAll begins with as many.
const minRead = 512

// readCloser reads a body in another way.
type readCloser struct {
	io.Reader
	io.Closer
}

// readWriteCloser reads a connection in another way.
type readWriteCloser struct {
	io.Reader
	io.Writer
	io.Closer
}

// maskedBody reads a body with asterisks in the place of a secret, so that the body keeps its length. It
// masks in the reader's own bytes, which must be more than the escaped secret has, and holds back only what
// the secret may begin with.
type maskedBody struct {
	body      io.Reader
	secret    []byte
	begun     []byte // what was read last and the secret may begin with, which is held back
	err       error  // of body
	continues bool   // at the end of body, begun waits for a next body
}

func (m *maskedBody) Read(p []byte) (int, error) {
	for m.err == nil {
		n := copy(p, m.begun)
		var read int
		read, m.err = m.body.Read(p[n:])
		text := p[:n+read]
		begun := maskSecret(text, m.secret)
		if m.err != nil && !m.continues {
			begun = 0
		}
		m.begun = append(m.begun[:0], text[len(text)-begun:]...)
		if n := len(text) - begun; n > 0 {
			return n, nil
		}
	}
	return 0, m.err
}
