// Package websocket reads the messages of a WebSocket (RFC 6455) as its bytes
// pass, those that permessage-deflate (RFC 7692) has compressed too. It owns no
// connection and changes nothing.
package websocket

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/gobwas/httphead"
	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsflate"
	"github.com/gobwas/ws/wsutil"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirhq/weir/modules/internal/capture"
	"github.com/weirhq/weir/plugins/coding"
)

// maxMessage is how much of a message is read at most, in bytes, decompressed.
const maxMessage = 64 << 20

// window is how far back DEFLATE refers, in bytes.
const window = 32 << 10

// errTooLong ends the reading of a direction: a compressed message cannot be
// skipped without decompressing it.
var errTooLong = fmt.Errorf("a compressed message is over %d MiB long", maxMessage>>20)

// Unreadable lives as long as the process, so that it survives reloads. Whoever passes
// a WebSocket on counts it.
var Unreadable = prometheus.NewCounter(prometheus.CounterOpts{
	Name: "weir_websocket_unreadable_total", Help: "Directions of WebSockets whose frames could not be read to their end: they pass, and calls in them have no record.",
})

// Reader reads the messages of one direction. It starts no goroutines, and what
// it can read of the bytes so far has been read when Write returns.
type Reader struct {
	frames   wsutil.Reader
	deflate  wsflate.MessageState // of the message under way
	takeover bool                 // messages refer to those before them
	window   []byte               // what they may refer to

	message capture.Copy // the one under way
	read    int64        // its length
	scratch [4 << 10]byte
	on      func(message []byte, cut bool)
	pump    *coding.Pump
	closed  bool
	code    ws.StatusCode // of the frame that closed the direction, 0 for none
	reason  string        // likewise
}

// Open makes the readers of both directions of a WebSocket that the answer to its
// handshake has opened. Each gets its messages, which hold for the call alone:
// data of up to maxMessage bytes, cut where they are longer or memory is short. Header is the answer's: an
// extension in it that nobody here knows is an error.
func Open(header http.Header, fromClient, fromServer func(message []byte, cut bool)) (client, server *Reader, err error) {
	var values []string
	for key, v := range header {
		if strings.EqualFold(key, "Sec-WebSocket-Extensions") { // Caddy writes it as RFC 6455 does
			values = append(values, v...)
		}
	}
	extensions := strings.Join(values, ",")
	options, ok := httphead.ParseOptions([]byte(extensions), nil)
	if !ok && extensions != "" {
		return nil, nil, errors.New("the extensions of the WebSocket are malformed")
	}
	client, server = newReader(ws.StateServerSide, fromClient), newReader(ws.StateClientSide, fromServer)
	for i, option := range options {
		var p wsflate.Parameters
		if i > 0 || string(option.Name) != wsflate.ExtensionName {
			return nil, nil, fmt.Errorf("the extension %.64q of the WebSocket is not known", option.Name)
		}
		if err := p.Parse(option); err != nil {
			return nil, nil, err
		}
		client.decompress(!p.ClientNoContextTakeover)
		server.decompress(!p.ServerNoContextTakeover)
	}
	return client, server, nil
}

// newReader reads what an endpoint of that state receives.
func newReader(receiver ws.State, on func(message []byte, cut bool)) *Reader {
	r := &Reader{on: on}
	r.frames.State = receiver
	r.pump = coding.NewPump(func(in io.Reader) error {
		r.frames.Source = in
		return r.run()
	})
	return r
}

func (r *Reader) decompress(takeover bool) {
	r.frames.State = r.frames.State.Set(ws.StateExtended)
	r.frames.Extensions = []wsutil.RecvExtension{&r.deflate}
	r.takeover = takeover
}

// Write reads the next bytes of the connection. It does not keep p. After an error
// and after the frame that closes the direction, it does nothing.
func (r *Reader) Write(p []byte) { r.pump.Write(p) }

// Stop ends the reading. A Reader that was written to must be stopped.
func (r *Reader) Stop() { r.pump.Close() }

// Closed reports whether the frame was read that closes the direction.
func (r *Reader) Closed() bool { return r.closed }

// CloseReason returns the code of the frame that closed the direction, 0 for none, and the reason.
func (r *Reader) CloseReason() (code int, reason string) { return int(r.code), r.reason }

// Err is why the frames cannot be read any more, nil as long as they can and once
// the direction is closed. Stop makes it say that the connection broke off.
func (r *Reader) Err() error { return r.pump.Err() }

func (r *Reader) run() error {
	for {
		header, err := r.frames.NextFrame()
		if err != nil {
			return err
		}
		switch {
		case header.OpCode == ws.OpClose:
			r.closed = true
			payload, err := io.ReadAll(io.LimitReader(&r.frames, ws.MaxControlFramePayloadSize))
			r.code, r.reason = ws.ParseCloseFrameData(payload)
			return err
		case header.OpCode.IsControl():
			err = r.frames.Discard()
		default:
			err = r.data()
		}
		if err != nil {
			return err
		}
	}
}

// data reads a message to its end, and hands it on.
func (r *Reader) data() error {
	r.message, r.read = capture.Copy{}, 0
	r.message.Keep(maxMessage, 0)
	defer r.message.Free()
	var err error
	if r.deflate.IsCompressed() {
		err = coding.InflateMessage(inflater{r}, &r.frames, r.window)
		if err == nil { // a sender may add to what it has finished: RFC 7692, section 7.2.3.4
			err = r.frames.Discard()
		}
	} else {
		_, err = io.CopyBuffer(plainMessage{r}, &r.frames, r.scratch[:])
	}
	if err == nil {
		r.on(r.message.Bytes(), r.message.Truncated())
	}
	return err
}

// plainMessage keeps a message that is not compressed.
type plainMessage struct{ *Reader }

func (k plainMessage) Write(p []byte) (int, error) {
	k.message.Write(p)
	return len(p), nil
}

// inflater keeps a message, and what the next one may refer to.
type inflater struct{ *Reader }

func (i inflater) Write(p []byte) (int, error) {
	if i.read += int64(len(p)); i.read > maxMessage {
		return 0, errTooLong
	}
	i.message.Write(p)
	if i.takeover {
		i.window = append(i.window, p[max(0, len(p)-window):]...)
		if over := len(i.window) - window; over > 0 {
			i.window = append(i.window[:0], i.window[over:]...)
		}
	}
	return len(p), nil
}
