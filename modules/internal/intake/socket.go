package intake

import (
	"context"
	"errors"
	"io"
	"net"
	"os"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"

	"github.com/weirhq/weir/plugins"
)

// Socket reads the messages of a client from a WebSocket that ends here.
type Socket struct {
	reader Reader
	conn   net.Conn
	frames wsutil.Reader
}

// Socket returns the socket whose frames come from in, which may have bytes of conn
// already. Answers to control frames are written to out.
func (rd Reader) Socket(conn net.Conn, in io.Reader, out io.Writer) *Socket {
	return &Socket{rd.withinMemory(), conn, wsutil.Reader{
		Source: in, State: ws.StateServerSide, CheckUTF8: true,
		OnIntermediate: wsutil.ControlFrameHandler(out, ws.StateServerSide),
	}}
}

// tryAgainLater is a status code of IANA's registry, which RFC 6455 does not have:
// https://www.iana.org/assignments/websocket/websocket.xhtml#close-code-number
const tryAgainLater ws.StatusCode = 1013

// ClosingError is why a socket has to close: the client is told the code and the reason.
type ClosingError struct {
	Code   ws.StatusCode
	Reason string
}

func (c *ClosingError) Error() string { return c.Reason }

// Next returns the next message, which is text. An error that is no *ClosingError means that
// the client is gone.
func (s *Socket) Next(ctx context.Context) (Body, error) {
	for {
		header, err := s.frames.NextFrame()
		switch {
		case err != nil:
			return Body{}, closingError(err)
		case header.OpCode.IsControl():
			if err := s.frames.OnIntermediate(header, &s.frames); err != nil {
				return Body{}, err // a malformed close has its answer
			}
			continue
		case header.OpCode != ws.OpText:
			return Body{}, &ClosingError{ws.StatusUnsupportedData, "messages are JSON, as text"}
		}
		announced := int64(-1)
		if header.Fin {
			announced = header.Length
		}
		if header.Length > s.reader.Limit {
			return Body{}, &ClosingError{ws.StatusMessageTooBig, ""}
		}
		b, err := s.reader.fill(ctx, &s.frames, announced, s.conn.SetReadDeadline)
		if err != nil {
			b.Release()
			return Body{}, closingError(err)
		}
		return b, nil
	}
}

// closingError is what a client is told whose frames cannot be read.
func closingError(err error) error {
	refused, _ := errors.AsType[*plugins.Error](err)
	_, malformed := errors.AsType[ws.ProtocolError](err)
	switch {
	case refused != nil && refused.Status >= 500:
		return &ClosingError{tryAgainLater, "the calls of others take all memory"}
	case refused != nil:
		return &ClosingError{ws.StatusMessageTooBig, ""}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &ClosingError{ws.StatusPolicyViolation, "the message did not come in time"}
	case errors.Is(err, wsutil.ErrInvalidUTF8):
		return &ClosingError{ws.StatusInvalidFramePayloadData, "the text is not UTF-8"}
	case malformed:
		return &ClosingError{ws.StatusProtocolError, err.Error()}
	}
	return err
}
