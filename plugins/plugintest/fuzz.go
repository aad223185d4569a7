package plugintest

import (
	"bytes"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/weirhq/weir/plugins/translate"
)

// Bits for the conditions that Fuzz varies beside the answer.
const (
	asStream  = 1 << iota // a stream was asked for
	formatted             // the text had to be of a JSON schema
	breaksOff             // reading the body ends in an error
	narrow                // the response may be no longer than 64 bytes
	modes
)

// Fuzz checks what must hold whatever comes from upstream: a stream is legal, an
// object is JSON, and nothing panics. Beside the bytes, the events of a stream are
// fuzzed: they are lost, doubled, moved, cut, and mixed with those of the other
// fixtures. For streams that are not text, encode makes the stream of the fixtures'
// lines; nil for streams of text.
func Fuzz(f *testing.F, p translate.Provider, fixtures []Fixture, encode func(t testing.TB, stream []byte) []byte) {
	separator := []byte("\n\n")
	if encode != nil {
		separator = []byte("\n")
	}
	var pool [][]byte
	random := rand.New(rand.NewPCG(1, 2))
	for i, x := range fixtures {
		pool = append(pool, bytes.SplitAfter(x.Stream, separator)...)
		for _, stream := range []byte{0, asStream} {
			body := x.JSON
			if stream != 0 {
				body = x.Stream
			}
			edits := make([]byte, 3*(i%4))
			for i := range edits {
				edits[i] = byte(random.Uint32())
			}
			f.Add(body, edits, byte(i)<<1%modes|stream)
		}
	}
	request := `{"model":"m","input":"hi","tools":[{"type":"function","name":"weather"},{"type":"custom","name":"patch"},{"type":"web_search"},` +
		`{"type":"namespace","name":"crm","tools":[{"type":"function","name":"find"}]}]`
	f.Fuzz(func(t *testing.T, body, edits []byte, mode byte) {
		x := Fixture{Request: request + "}", JSON: body}
		if mode&formatted != 0 {
			x.Request = request + `,"text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object"}}}}`
		}
		stream := mode&asStream != 0
		if stream {
			x.Stream = bytes.Join(edit(bytes.SplitAfter(body, separator), pool, edits), nil)
			if encode != nil {
				x.Stream, x.StreamType = encode(t, x.Stream), "application/vnd.amazon.eventstream"
			}
		}
		o := options()
		if mode&narrow != 0 {
			o.Limit = 64
		}
		_, body = x.answer(stream)
		for d := range clients {
			read := io.Reader(bytes.NewReader(body))
			if mode&breaksOff != 0 {
				read = io.MultiReader(read, iotest.ErrReader(io.ErrUnexpectedEOF))
			}
			if _, err := (exchange{Fixture: x, provider: p, stream: stream}).serve(t, d, read, o); err != nil {
				t.Errorf("%s: %v", d, err)
			}
		}
	})
}

// edit changes events as edits say, three bytes each.
func edit(events, pool [][]byte, edits []byte) [][]byte {
	for e := range slices.Chunk(edits, 3) {
		if len(e) < 3 || len(events) == 0 {
			break
		}
		i, j := int(e[1])%len(events), int(e[2])
		switch e[0] % 6 {
		case 0:
			events = slices.Delete(events, i, i+1)
		case 1:
			events = slices.Insert(events, j%len(events), events[i])
		case 2:
			k := j % len(events)
			events[i], events[k] = events[k], events[i]
		case 3:
			events = slices.Insert(events, i, pool[(j<<3+i)%len(pool)])
		case 4:
			events[i] = events[i][:min(j, len(events[i]))]
		case 5:
			events = events[:i+1]
		}
	}
	return events
}
