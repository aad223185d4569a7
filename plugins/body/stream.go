package body

import (
	"bytes"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/tidwall/gjson"
)

// event is one JSON value of a stream, an object. Its name is that of an AWS
// frame; other streams say in the object what it is.
type event struct {
	name string
	gjson.Result
}

// sse reads Server-Sent Events, the last also without its blank line.
func sse(raw string) []event {
	var events []event
	var data []string
	for line := range strings.Lines(strings.TrimPrefix(raw, "\ufeff")) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			events = appendObject(events, "", strings.Join(data, "\n"))
			data = data[:0]
		} else if value, ok := strings.CutPrefix(line, "data:"); ok {
			data = append(data, value)
		}
	}
	return appendObject(events, "", strings.Join(data, "\n"))
}

// ndjson reads one JSON value a line.
func ndjson(raw string) []event {
	var events []event
	for line := range strings.Lines(raw) {
		events = appendObject(events, "", line)
	}
	return events
}

// array reads the elements of one JSON array, which may lack its end.
func array(raw string) []event {
	var events []event
	gjson.Parse(raw).ForEach(func(_, element gjson.Result) bool {
		events = appendObject(events, "", element.Raw)
		return true
	})
	return events
}

// frames reads an AWS event stream up to the first frame that is cut or damaged.
// https://docs.aws.amazon.com/transcribe/latest/dg/event-stream.html
func frames(raw []byte) []event {
	var events []event
	r, d := bytes.NewReader(raw), eventstream.NewDecoder()
	var payload []byte
	for {
		m, err := d.Decode(r, payload)
		if err != nil {
			return events
		}
		payload = m.Payload
		kind := m.Headers.Get(":event-type")
		if kind == nil {
			kind = m.Headers.Get(":exception-type")
		}
		if kind != nil {
			events = appendObject(events, kind.String(), string(m.Payload))
		}
	}
}

// appendObject appends data to events where it is a JSON object.
func appendObject(events []event, name, data string) []event {
	data = strings.TrimSpace(data)
	if !strings.HasPrefix(data, "{") || !sound(data) {
		return events
	}
	return append(events, event{name, gjson.Parse(data)})
}

// deepest is how far the values of a stream may be nested. gjson's validation
// calls itself for each level, and a stack that overflows ends the process.
const deepest = 1000

// sound is true of valid JSON that is not nested deeper than deepest.
func sound(data string) bool {
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
				return false
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return gjson.Valid(data)
}
