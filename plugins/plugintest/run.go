package plugintest

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/translate"
)

// Run checks what every provider must do. Each fixture is read in chunks of several sizes, an
// event stream also with other line endings, with comments and spaces, and cut off at many
// points. Clients of each API must get a legal stream. The response must not depend on how
// the bytes came, nor on whether a stream was asked for, or answered. An answer without end
// must be a failure.
func Run(t *testing.T, p translate.Provider, target translate.Target, fixtures []Fixture) {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // thousands of short answers in a small heap
	if len(fixtures) == 0 {
		t.Fatal("there is no fixture to run")
	}
	for _, f := range fixtures {
		t.Run(f.Name, func(t *testing.T) { f.run(t, p, target) })
	}
	if _, known := endless.LoadOrStore(reflect.TypeOf(p), true); known {
		return
	}
	t.Run("an answer without end", func(t *testing.T) {
		body := &io.LimitedReader{R: blanks{}, N: 128 << 20}
		a, err := Fixture{}.decode(t, p, false, body)
		if err == nil && a.Failure() == nil {
			t.Error("it is no failure")
		}
		if body.N == 0 {
			t.Error("over 128 MiB of it are read")
		}
	})
}

// endless has the types of providers that were given an answer without end: it
// takes seconds, and vendors that differ in their Vendor alone read it alike.
var endless sync.Map

// blanks are no answer.
type blanks struct{}

var spaces = bytes.Repeat([]byte{' '}, 64<<10)

func (blanks) Read(p []byte) (int, error) {
	return copy(p, spaces), nil
}

func (f Fixture) run(t *testing.T, p translate.Provider, target translate.Target) {
	var responses []any
	for _, stream := range []bool{true, false} {
		x := exchange{f, p, target, stream}
		_, body := f.answer(stream)
		if body == nil {
			continue
		}
		for d := range clients {
			got := x.check(t, d, body)
			if d == plugins.Responses {
				f.compare(t, got.(response))
				responses = append(responses, got)
			}
		}
		x.bills(t, body)
	}
	if f.JSON != nil {
		want := responses[len(responses)-1]
		f.Stream, f.StreamType = f.JSON, "application/json; charset=utf-8"
		x := exchange{f, p, target, true}
		if got, err := x.serve(t, plugins.Responses, bytes.NewReader(f.JSON), options()); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("an object in place of a stream comes to %v, want %v, error %v", got, want, err)
		}
	}
	if len(responses) == 2 && !reflect.DeepEqual(responses[0], responses[1]) {
		t.Errorf("the stream comes to %v, the object to %v", responses[0], responses[1])
	}
}

// check answers a client whole, in other chunks, and cut off at many points. It returns what
// the client is told.
func (x exchange) check(t *testing.T, d plugins.Dialect, body []byte) content {
	t.Helper()
	want, err := x.serve(t, d, bytes.NewReader(body), options())
	if err != nil {
		t.Fatalf("%s: %v", d, err)
	}
	for name, r := range x.readers(body) {
		if got, err := x.serve(t, d, r, options()); err != nil || !got.same(want) {
			t.Errorf("%s, %s: got %+v, want %+v, error %v", d, name, got, want, err)
		}
	}
	for n := 0; n < len(body); n += 1 + len(body)/clients[d].cuts {
		for _, end := range []error{io.EOF, io.ErrUnexpectedEOF} {
			r := io.MultiReader(bytes.NewReader(body[:n]), iotest.ErrReader(end))
			if _, err := x.serve(t, d, r, options()); err != nil {
				t.Errorf("%s, cut off after %d bytes by %v: %v", d, n, end, err)
			}
		}
	}
	return want
}

// bills checks that what the provider bills is the same in the gateway, which translates an
// answer, and in the proxy, which observes it. It knows the answer by its shape.
func (x exchange) bills(t *testing.T, body []byte) {
	t.Helper()
	header, _ := x.answer(x.stream)
	observed := observe.Read(plugins.Unknown, "", header, body)
	a, err := x.decode(t, x.provider, x.stream, bytes.NewReader(body))
	if err != nil || a.Failure() != nil || observed.Dialect == plugins.Unknown {
		return
	}
	got, want := a.Info(), observe.Read(observed.Dialect, "", header, body)          // which the proxy knows by the path
	got.Usage.ReportedCost, want.Usage.ReportedCost = plugins.Cost{}, plugins.Cost{} // which depends on who is asked
	if got.Usage != want.Usage || !reflect.DeepEqual(got.Beside, want.Beside) {
		t.Errorf("the gateway bills %+v and %+v, the proxy %+v and %+v", got.Usage, got.Beside, want.Usage, want.Beside)
	}
}

func (f Fixture) compare(t *testing.T, got response) {
	t.Helper()
	if f.Want == "" {
		return
	}
	want, err := readResponse([]byte(f.Want))
	if err != nil {
		t.Fatalf("Want: %v", err)
	}
	for key, value := range want.(response) {
		if !reflect.DeepEqual(got[key], value) {
			t.Errorf("%s is %v, want %v", key, got[key], value)
		}
	}
}

// options make everything that is not the provider's the same in every run.
func options() translate.Options {
	n := 0
	return translate.Options{
		ID: func(prefix string) string {
			n++
			return fmt.Sprint(prefix, n)
		},
		Now: func() time.Time { return time.Unix(1, 0) },
	}
}

// readers are other ways for the same answer to come.
func (x exchange) readers(body []byte) map[string]io.Reader {
	all := map[string]io.Reader{
		"byte by byte":   iotest.OneByteReader(bytes.NewReader(body)),
		"seven by seven": &chunks{body, func() int { return 7 }},
		"random chunks":  &chunks{body, func() int { return 1 + rand.IntN(100) }},
		"EOF with data":  iotest.DataErrReader(bytes.NewReader(body)),
	}
	if x.stream && (x.StreamType == "" || strings.HasPrefix(x.StreamType, "text/event-stream")) {
		lf := bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n"))
		commented := bytes.ReplaceAll(lf, []byte("\n\n"), []byte("\n\n: PROCESSING\n\n"))
		all["CRLF"] = bytes.NewReader(crlf(lf))
		all["comments"] = bytes.NewReader(commented)
		all["CRLF and comments byte by byte"] = iotest.OneByteReader(bytes.NewReader(crlf(commented)))
		all["no event like another"] = bytes.NewReader(unlike(lf))
		all["byte order mark"] = io.MultiReader(strings.NewReader("\xef\xbb\xbf"), bytes.NewReader(body))
	}
	return all
}

// crlf are lines that end as HTTP's own do.
func crlf(lines []byte) []byte { return bytes.ReplaceAll(lines, []byte("\n"), []byte("\r\n")) }

// unlike are the same events, where no two have the same spaces.
func unlike(lines []byte) []byte {
	var b []byte
	for i, rest := range bytes.SplitAfter(lines, []byte("\ndata: {")) {
		b = append(append(b, bytes.Repeat([]byte(" "), i)...), rest...)
	}
	return b
}

// chunks reads in pieces.
type chunks struct {
	rest []byte
	size func() int
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.rest[:min(c.size(), len(c.rest))])
	c.rest = c.rest[n:]
	return n, nil
}
