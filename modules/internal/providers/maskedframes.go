package providers

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/gobwas/ws"
)

// maskedFrames reads what a provider sends over a WebSocket with asterisks in the place of a secret
// (RFC 6455, section 5.2). No end of a frame waits for the next one.
type maskedFrames struct {
	socket  *bufio.Reader
	secret  []byte
	payload *maskedBody // of the frame that is read, nil between two frames
}

// Read implements io.Reader. There must be room for the header of a frame and the escaped secret.
func (m *maskedFrames) Read(p []byte) (n int, err error) {
	for n == 0 && err == nil {
		if m.payload == nil {
			head := bytes.NewBuffer(p[:0])
			header, err := ws.ReadHeader(io.TeeReader(m.socket, head)) //nolint:forbidigo // a head is short, and no message is read
			if n = head.Len(); err != nil {
				return n, err
			}
			m.payload = &maskedBody{body: io.LimitReader(m.socket, header.Length), secret: m.secret}
		}
		var read int
		read, err = m.payload.Read(p[n:])
		if n += read; errors.Is(err, io.EOF) {
			m.payload, err = nil, nil
		}
	}
	return n, err
}
