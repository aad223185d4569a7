package observe

import (
	"encoding/base64"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/coding"
)

// eventStream is the framing of application/vnd.amazon.eventstream: binary
// frames of at most 16 MiB, each with headers, an event in JSON, and checksums.
// A frame that breaks them ends the reading.
type eventStream struct {
	x     *observer
	pump  *coding.Pump
	chunk []byte // what the bytes of an InvokeModel frame decode to
}

func newEventStream(x *observer) *eventStream {
	s := &eventStream{x: x}
	s.pump = coding.NewPump(s.read)
	return s
}

func (s *eventStream) write(p []byte) { s.pump.Write(p) }
func (s *eventStream) close()         { s.pump.Close() }

func (s *eventStream) read(r io.Reader) error {
	d := eventstream.NewDecoder()
	payload := make([]byte, 0, 1<<10)
	for {
		m, err := d.Decode(r, payload)
		if err != nil {
			return err
		}
		s.frame(m)
		payload = m.Payload[:0]
	}
}

// frame reads one frame. Bedrock's operations that stream have no other
// terminal frame than an exception, and InvokeModel's events hold the model's
// own, in base64.
func (s *eventStream) frame(m eventstream.Message) {
	x := s.x
	switch header(m, ":message-type") {
	case "exception":
		x.fail(typedError, header(m, ":exception-type"))
	case "error":
		x.fail(typedError, header(m, ":error-code"))
	}
	name := header(m, ":event-type")
	if x.seen.Dialect == plugins.Unknown && name != "" {
		x.adopt(plugins.Converse)
		if name == "chunk" {
			x.adopt(plugins.Invoke)
		}
	}
	x.begin()
	x.event([]byte(name))
	if name != "chunk" {
		x.data(m.Payload)
		return
	}
	var err error
	s.chunk, err = base64.StdEncoding.AppendDecode(s.chunk[:0], []byte(gjson.GetBytes(m.Payload, "bytes").Str))
	if err == nil {
		x.data(s.chunk)
	}
}

func header(m eventstream.Message, name string) string {
	if v, ok := m.Headers.Get(name).(eventstream.StringValue); ok {
		return string(v)
	}
	return ""
}
