// Package streams finds the events in the bodies of streams: Server-Sent Events,
// newline-delimited JSON and the frames of AWS. Each framing has one reader, which
// takes its bytes in any pieces.
package streams

// Sink takes the events that a framing finds.
type Sink interface {
	// Data takes the next piece of an event's data, and does not keep it.
	Data(p []byte)
	// Dispatch ends an event. Its name is "" where the framing has none.
	Dispatch(name []byte)
}

// Framing finds the events in the bytes that are written to it.
type Framing interface {
	// Write reads the next bytes of the body, and does not keep them.
	Write(p []byte)
	// Close says that the body ended.
	Close()
}
