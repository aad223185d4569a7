package transcript

import (
	"iter"
	"slices"
)

// Format says how the bodies of one wire format become transcripts. Its paths are gjson
// paths (https://github.com/tidwall/gjson/blob/master/SYNTAX.md). By the zero Format, streams
// are stored unchanged and bodies have no texts.
type Format struct {
	// Chunk says how the events of a stream join to the object that the same call
	// returns without streaming. Nil: streams are stored as they came.
	Chunk *Shape
	// Input are the paths of a request's texts, in the order in which a model
	// reads them: a text, or messages and parts with texts. Those named "system",
	// "instructions", "systemInstruction" and "system_instruction" are the
	// system's, others the user's unless they have a role.
	Input []string
	// Output are the paths of a response's texts.
	Output []string
	// Message is the path of a response's one message, or of the list of its
	// parts.
	Message string
	// Choices is the path of a response's messages, if they are alternatives.
	Choices string
	// Finish is the path of the finish reason of the message, or of each choice.
	Finish string
	// Calls is how requests and responses have the calls of tools.
	Calls []CallForm

	// add adds an event to the object of its stream, if Chunk alone cannot.
	add func(root *node, e event)
	// assemble makes the object of all events, if add would have to know of earlier ones.
	assemble func(root *node, events iter.Seq[event])
	// finish gives the object of a stream the form of a response without streaming.
	finish func(root *node)
	// required are keys. The object has at least one of them. Default: any key.
	required []string
	// last finds the event of a stream that has the whole object.
	last func(stream []byte) (event, bool)
	// array is true if a stream may be one JSON array.
	array bool
}

// streams reports whether the format says how events become an object.
func (f *Format) streams() bool { return f.Chunk != nil || f.add != nil || f.assemble != nil }

// object returns the object that the events of a stream make, nil if they are not of the
// format.
func (f *Format) object(events iter.Seq[event]) *node {
	root := new(node)
	if f.assemble != nil {
		f.assemble(root, events)
	} else {
		for e := range events {
			if f.add != nil {
				f.add(root, e)
			} else {
				e.add(root, e.Result, f.Chunk)
			}
		}
	}
	if f.finish != nil {
		f.finish(root)
	}
	if f.required == nil && root.kind == complete && !root.isEmpty() {
		return root
	}
	for _, m := range root.members {
		if !m.node.isEmpty() && (f.required == nil || slices.Contains(f.required, m.key)) {
			return root
		}
	}
	return nil
}
