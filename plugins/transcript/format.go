package transcript

import "iter"

// Format says how the bodies of one wire format become transcripts. Its places
// are gjson paths (https://github.com/tidwall/gjson/blob/master/SYNTAX.md). The
// zero Format is one of which nothing is known: its streams are stored as they
// came, and its bodies have no texts.
type Format struct {
	// Chunk says how the events of a stream join to the object that the same call
	// returns without streaming. Nil: streams are stored as they came.
	Chunk *Shape
	// Input are the places of a request's texts, in the order in which a model
	// reads them: a text, or messages and parts with texts. Those named "system",
	// "instructions", "systemInstruction" and "system_instruction" are the
	// system's, others the user's unless they have a role.
	Input []string
	// Output are the places of a response's texts.
	Output []string
	// Message is the place of a response's one message, or of the list of its
	// parts.
	Message string
	// Choices is the place of a response's messages where it has a list of
	// alternatives.
	Choices string
	// Finish is the place of the reason for which the message or each choice
	// ended.
	Finish string

	// assemble makes the object of a stream whose events are no chunks of it.
	// None means that the events are not those of the format.
	assemble func(iter.Seq[event]) *node
	// last is the event of a stream that has the whole object, if there is one.
	last func(stream string) (event, bool)
	// array is true where a stream may be one JSON array.
	array bool
}

// object is what the events of a stream come to, none if they are not those of
// the format.
func (f *Format) object(events iter.Seq[event]) *node {
	if f.assemble != nil {
		return f.assemble(events)
	}
	root := new(node)
	for e := range events {
		e.add(root, e.Result, f.Chunk)
	}
	for _, m := range root.members {
		if !m.node.none() {
			return root
		}
	}
	return nil
}
