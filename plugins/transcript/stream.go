package transcript

import (
	"bytes"
	"iter"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/streams"
)

// event is a JSON object of a stream. The name is the event type of an AWS frame, "" in other streams.
type event struct {
	name string
	gjson.Result
	data     []byte    // the JSON of Result
	template *template // the template of the stream, nil if it has none
}

// objects are the events of a stream, without those that the template takes.
func (t *template) objects(stream iter.Seq[[]byte]) iter.Seq[event] {
	return func(yield func(event) bool) {
		for data := range stream {
			data = bytes.TrimSpace(data)
			if t.take(data) {
				continue
			}
			e, ok := eventOf("", data)
			if !ok {
				continue
			}
			t.Reset() // until the event has shown what it does
			e.template = t
			if !yield(e) {
				return
			}
		}
	}
}

// array reads the elements of one JSON array, which may lack its end.
func array(raw []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		gjson.Parse(plugins.View(raw)).ForEach(func(_, element gjson.Result) bool {
			return yield(raw[element.Index : element.Index+len(element.Raw)])
		})
	}
}

// frames reads an AWS event stream up to the first frame that is cut or damaged.
func frames(raw []byte) iter.Seq[event] {
	return func(yield func(event) bool) {
		for {
			f, rest, err := streams.CutFrame(raw)
			if err != nil {
				return
			}
			raw = rest
			kind := f.Header(":event-type")
			if kind == nil {
				kind = f.Header(":exception-type")
			}
			if kind == nil {
				continue
			}
			if e, ok := eventOf(string(kind), f.Payload); ok && !yield(e) {
				return
			}
		}
	}
}

// eventOf is data as an event, and false if it is no JSON object. Nobody writes to data
// while the event is used.
func eventOf(name string, data []byte) (event, bool) {
	data = bytes.TrimSpace(data)
	if !bytes.HasPrefix(data, []byte("{")) || !plugins.ValidNested(data, deepest) {
		return event{}, false
	}
	return event{name: name, data: data, Result: gjson.Parse(plugins.View(data))}, true
}

// deepest is how far the values of a stream may be nested. What becomes of a stream is nested
// a little further, and must be JSON to all that read it.
const deepest = 1000
