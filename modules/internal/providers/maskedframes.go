package providers

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/gobwas/ws"
)

// errMaskedFrame ends a WebSocket whose provider masks a frame, which only a client may do (RFC 6455, section
// 5.1): it would hide a secret.
var errMaskedFrame = errors.New("the provider sent a masked frame over a WebSocket, which RFC 6455 forbids")

// maskedFrames reads what a provider sends over a WebSocket with asterisks in the place of a secret
// (RFC 6455, section 5.2). Of a message in fragments, each read is a fragment of its own, and what the secret
// may begin with waits for the next one. No end of a message waits, and no control frame.
type maskedFrames struct {
	socket  *bufio.Reader
	message maskedBody  // the payload of all frames of a message
	head    ws.Header   // of the message until some of it was read, then that of a continuation
	payload *maskedBody // of the frame that is read, nil between two frames
}

// Read implements io.Reader. There must be room for the header of a frame and the escaped secret.
func (m *maskedFrames) Read(p []byte) (n int, err error) {
	for n == 0 && err == nil {
		if m.payload == nil {
			if n, err = m.next(p); err != nil {
				return 0, err
			}
		}
		if m.payload.continues {
			n, err = m.fragment(p)
		} else {
			var read int
			read, err = m.payload.Read(p[n:])
			n += read
		}
		if errors.Is(err, io.EOF) {
			m.payload, err = nil, nil
		}
	}
	return n, err
}

// next begins the next frame of the socket. It writes the frame's header to p, unless the message continues.
func (m *maskedFrames) next(p []byte) (n int, err error) {
	header, err := ws.ReadHeader(m.socket) //nolint:forbidigo // a head is short, and no message is read
	if err != nil {
		return 0, err
	}
	if header.Masked {
		return 0, errMaskedFrame
	}
	payload := io.LimitReader(m.socket, header.Length)
	if header.OpCode.IsControl() { // it may stand between two fragments
		m.payload = &maskedBody{body: payload, secret: m.message.secret}
		return writeHeader(p, header)
	}
	if header.OpCode != ws.OpContinuation {
		m.head = header
	}
	m.message.body, m.message.err, m.message.continues = payload, nil, !header.Fin
	if m.payload = &m.message; m.message.continues {
		return 0, nil
	}
	return m.dataHeader(p, header.Length+int64(len(m.message.begun)), true)
}

// fragment reads what the next bytes of a fragment let pass, as a fragment of its own.
func (m *maskedFrames) fragment(p []byte) (n int, err error) {
	payload := p[ws.MaxHeaderSize:]
	read, err := m.message.Read(payload)
	if read == 0 {
		return 0, err
	}
	if n, err = m.dataHeader(p, int64(read), false); err != nil {
		return 0, err
	}
	return n + copy(p[n:], payload[:read]), nil
}

// dataHeader writes the header of the message's next frame to p.
func (m *maskedFrames) dataHeader(p []byte, length int64, fin bool) (n int, err error) {
	header := ws.Header{Fin: fin, Rsv: m.head.Rsv, OpCode: m.head.OpCode, Length: length}
	m.head = ws.Header{OpCode: ws.OpContinuation}
	return writeHeader(p, header)
}

func writeHeader(p []byte, header ws.Header) (n int, err error) {
	b := bytes.NewBuffer(p[:0])
	err = ws.WriteHeader(b, header)
	return b.Len(), err
}
