package observe

import (
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// TwoWay says how a dialect has responses in a two-way stream, such as a WebSocket's.
// Events of both sides are JSON objects with a "type"; those of a response that is
// not the only one have its id as "response_id" or "response.id".
type TwoWay struct {
	// Create is the type of the client's event that asks for a response.
	Create string
	// Conversation is true where a response answers all that the client has said
	// since the one before, and where the provider may begin one unasked. Its events
	// without a response's id belong to none.
	Conversation bool
	// Media are the types of events that carry a piece of audio or an image, of
	// which nothing is kept: the object of the whole response has none either.
	Media []string
	// Transcriber are the places of the model that transcribes what the client says,
	// as gjson paths. Events without a response's id that report usage report its, of
	// the "item_id" that an event of the type Heard had.
	Transcriber []string
	Heard       string
}

// TwoWayOf returns how dialect d has responses in a two-way stream, nil if it has
// none.
func TwoWayOf(d plugins.Dialect) *TwoWay { return lookup(d).Dialect.TwoWay }

// Envelope reads the type of an event of a two-way stream, and the id of the response
// that it belongs to, "" where it names none.
func Envelope(event []byte) (kind, response string) {
	kind = gjson.GetBytes(event, "type").Str
	if response = gjson.GetBytes(event, "response_id").Str; response == "" {
		response = gjson.GetBytes(event, "response.id").Str
	}
	return kind, response
}

// NewEvents reads a two-way stream, such as a WebSocket's, in which every Write is
// a whole event.
func NewEvents(d plugins.Dialect, provider string) plugins.Observer {
	x := New(d, provider, nil).(*observer)
	x.framing = &messageFraming{x}
	return x
}

// messageFraming is that of a transport which keeps events apart.
type messageFraming struct{ to stream }

func (m *messageFraming) write(p []byte) {
	m.to.data(p)
	m.to.dispatch(nil)
}

func (m *messageFraming) close() {}
