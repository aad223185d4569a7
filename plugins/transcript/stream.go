package transcript

import (
	"bytes"
	"iter"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/tidwall/gjson"
)

// event is one JSON value of a stream, an object. Its name is that of an AWS
// frame; other streams say in the object what it is.
type event struct {
	name string
	gjson.Result
	template *template // of its stream, nil where that has none
}

// objects are the events among the texts of a stream. Those that the template
// takes are none.
func (t *template) objects(texts iter.Seq[string]) iter.Seq[event] {
	return func(yield func(event) bool) {
		for data := range texts {
			data = strings.TrimSpace(data)
			if t.take(data) {
				continue
			}
			e, ok := eventOf("", data)
			if !ok {
				continue
			}
			t.raw, e.template = "", t // until the event has shown what it does
			if !yield(e) {
				return
			}
		}
	}
}

// sse reads the data of Server-Sent Events, the last also without its blank
// line.
func sse(raw string) iter.Seq[string] {
	return func(yield func(string) bool) {
		var data []string
		for line := range strings.Lines(strings.TrimPrefix(raw, "\ufeff")) {
			line = strings.TrimRight(line, "\r\n")
			if line == "" {
				if !yield(strings.Join(data, "\n")) {
					return
				}
				data = data[:0]
			} else if value, ok := strings.CutPrefix(line, "data:"); ok {
				data = append(data, value)
			}
		}
		yield(strings.Join(data, "\n"))
	}
}

// lastData returns the last data line of an event stream before [DONE], "" if there
// is none.
func lastData(raw string) string {
	for {
		raw = strings.TrimRight(raw, "\r\n")
		start := strings.LastIndexAny(raw, "\r\n") + 1
		value, ok := strings.CutPrefix(raw[start:], "data:")
		if value = strings.TrimSpace(value); value != "[DONE]" || !ok {
			return value
		}
		raw = raw[:start]
	}
}

// array reads the elements of one JSON array, which may lack its end.
func array(raw string) iter.Seq[string] {
	return func(yield func(string) bool) {
		gjson.Parse(raw).ForEach(func(_, element gjson.Result) bool {
			return yield(element.Raw)
		})
	}
}

// frames reads an AWS event stream up to the first frame that is cut or damaged.
// https://docs.aws.amazon.com/transcribe/latest/dg/event-stream.html
func frames(raw []byte) iter.Seq[event] {
	return func(yield func(event) bool) {
		r, d := bytes.NewReader(raw), eventstream.NewDecoder()
		var payload []byte
		for {
			m, err := d.Decode(r, payload)
			if err != nil {
				return
			}
			payload = m.Payload
			kind := m.Headers.Get(":event-type")
			if kind == nil {
				kind = m.Headers.Get(":exception-type")
			}
			if kind == nil {
				continue
			}
			if e, ok := eventOf(kind.String(), string(m.Payload)); ok && !yield(e) {
				return
			}
		}
	}
}

// eventOf is data as an event; ok is false if it is no JSON object.
func eventOf(name, data string) (event, bool) {
	data = strings.TrimSpace(data)
	if !strings.HasPrefix(data, "{") || !sound(data) {
		return event{}, false
	}
	return event{name: name, Result: gjson.Parse(data)}, true
}

// deepest is how far the values of a stream may be nested. gjson's validation
// calls itself for each level, and a stack that overflows ends the process.
const deepest = 1000

// sound is true of valid JSON that is not nested deeper than deepest.
func sound(data string) bool {
	if strings.Count(data, "{")+strings.Count(data, "[") > deepest && tooDeep(data) {
		return false
	}
	return gjson.Valid(data)
}

func tooDeep(data string) bool {
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > deepest {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}
