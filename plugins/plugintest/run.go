package plugintest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/translate"
)

// Run checks what every provider must do. Each fixture is read in chunks of several
// sizes, an event stream also with other line endings, with comments and spaces,
// and cut off at many points. The result must be a legal stream whose response does
// not depend on how the bytes came, nor on whether a stream was asked for, or
// answered. An answer without end must be a failure.
func Run(t *testing.T, p translate.Provider, target translate.Target, fixtures []Fixture) {
	t.Helper()
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
		header, _ := Fixture{}.answer(false)
		a := translate.NewAssembler(Fixture{}.request(t, false), nil, options())
		body := &io.LimitedReader{R: blanks{}, N: 128 << 20}
		if err := decodeAnswer(p, nil, header, body, a); err == nil && a.Failure() == nil {
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
	var responses []map[string]any
	for _, stream := range []bool{true, false} {
		body := f.JSON
		if stream {
			body = f.Stream
		}
		if body == nil {
			continue
		}
		x := exchange{f, p, target, stream}
		whole := x.decode(t, bytes.NewReader(body))
		for name, r := range x.readers(body) {
			if got := x.decode(t, r); !reflect.DeepEqual(got, whole) {
				t.Errorf("%s: got %v, want %v", name, got, whole)
			}
		}
		for n := 0; n < len(body); n += 1 + len(body)/maxCuts {
			x.decode(t, bytes.NewReader(body[:n]))
			x.decode(t, io.MultiReader(bytes.NewReader(body[:n]), iotest.ErrReader(io.ErrUnexpectedEOF)))
		}
		f.compare(t, whole)
		x.bills(t, body)
		x.runForeign(t, body)
		responses = append(responses, whole)
	}
	if f.JSON != nil {
		f.unstreamed(t, p, target, responses[len(responses)-1])
	}
	if len(responses) < 2 {
		return
	}
	t.Run("neither path drops anything", func(t *testing.T) {
		if !reflect.DeepEqual(responses[0], responses[1]) {
			t.Errorf("the stream comes to %v, the object to %v", responses[0], responses[1])
		}
	})
}

// bills checks that what the provider bills is the same in the gateway, which translates an
// answer, and in the proxy, which observes it. It knows the answer by its shape.
func (x exchange) bills(t *testing.T, body []byte) {
	t.Helper()
	header, _ := x.answer(x.stream)
	o := observe.New(plugins.Unknown, "", header)
	o.Write(body)
	o.Close()
	a := translate.NewAssembler(x.request(t, x.stream), io.Discard, options())
	if decodeAnswer(x.provider, nil, header, bytes.NewReader(body), a) != nil || a.Failure() != nil || o.Info().Dialect == plugins.Unknown {
		return
	}
	got, want := a.Info(), o.Info()
	got.Usage.ReportedCost, want.Usage.ReportedCost = plugins.Cost{}, plugins.Cost{} // which depends on who is asked
	if got.Usage != want.Usage || !reflect.DeepEqual(got.Beside, want.Beside) {
		t.Errorf("the gateway bills %+v and %+v, the proxy %+v and %+v", got.Usage, got.Beside, want.Usage, want.Beside)
	}
}

// unstreamed checks that an object in place of a stream gives the response that the
// object has.
func (f Fixture) unstreamed(t *testing.T, p translate.Provider, target translate.Target, want map[string]any) {
	t.Helper()
	f.Stream, f.StreamType = f.JSON, "application/json; charset=utf-8"
	x := exchange{f, p, target, true}
	if got := x.decode(t, bytes.NewReader(f.JSON)); !reflect.DeepEqual(got, want) {
		t.Errorf("an object in place of a stream comes to %v, want %v", got, want)
	}
}

// maxCuts is at how many points an answer is cut off.
const maxCuts = 100

func (f Fixture) compare(t *testing.T, got map[string]any) {
	t.Helper()
	var want map[string]any
	if err := decode([]byte(f.Want), &want); f.Want != "" && err != nil {
		t.Fatalf("Want: %v", err)
	}
	dropIDs(want)
	for key, value := range want {
		if !reflect.DeepEqual(got[key], value) {
			t.Errorf("%s is %v, want %v", key, got[key], value)
		}
	}
}

// exchange is a fixture in one mode.
type exchange struct {
	Fixture
	provider translate.Provider
	target   translate.Target
	stream   bool
}

// decode is the response, without the ids of items, that comes of an answer.
func (x exchange) decode(t *testing.T, answer io.Reader) map[string]any {
	t.Helper()
	request := x.request(t, x.stream)
	req, err := x.provider.Prepare(context.Background(), request, x.target)
	if err != nil {
		t.Fatal(err)
	}
	header, _ := x.answer(x.stream)
	var sink bytes.Buffer
	a := translate.NewAssembler(request, &sink, options())
	if err := decodeAnswer(x.provider, req, header, answer, a); err != nil {
		a.Fail(plugins.Upstream("%v", err))
	}
	end := a.End()
	if x.stream {
		sink.Write(end)
		if _, err := Check(sink.Bytes()); err != nil {
			t.Fatalf("an illegal stream: %v\n%s", err, sink.Bytes())
		}
	}
	var response map[string]any
	if err := decode(a.Response(), &response); err != nil {
		t.Fatalf("%v in %s", err, a.Response())
	}
	dropIDs(response)
	return response
}

// decodeAnswer lets a provider decode a successful answer.
func decodeAnswer(p translate.Provider, req *http.Request, header http.Header, body io.Reader, a *translate.Assembler) error {
	return p.Decode(&http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(body), Request: req}, a)
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

func dropIDs(response map[string]any) {
	items, _ := response["output"].([]any)
	for _, i := range items {
		if i, ok := i.(map[string]any); ok {
			delete(i, "id")
		}
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
