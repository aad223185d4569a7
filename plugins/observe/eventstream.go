package observe

import (
	"encoding/base64"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/streams"
)

// frame reads one frame of a Bedrock stream. Only an exception ends such a stream with a frame of its own.
// The chunks of InvokeModelWithResponseStream contain the model's events in base64.
func (x *observer) frame(f streams.Frame) {
	switch string(f.Header(":message-type")) {
	case "exception":
		x.fail(typedError, string(f.Header(":exception-type")))
	case "error":
		x.fail(typedError, string(f.Header(":error-code")))
	}
	name := f.Header(":event-type")
	if x.seen.Dialect == plugins.Unknown && len(name) > 0 {
		x.adopt(plugins.Converse)
		if string(name) == "chunk" {
			x.adopt(plugins.Invoke)
		}
	}
	x.begin()
	x.event(name)
	if string(name) != "chunk" {
		x.Data(f.Payload)
		return
	}
	var err error
	x.chunk, err = base64.StdEncoding.AppendDecode(x.chunk[:0], []byte(gjson.GetBytes(f.Payload, "bytes").Str))
	if err == nil {
		x.Data(x.chunk)
	}
}
