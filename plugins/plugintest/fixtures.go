package plugintest

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins/translate"
)

// Fixture is one exchange with a provider.
type Fixture struct {
	Name string
	// Request is the body of POST /v1/responses, without stream; by default one
	// of the model "m" with the input "hi".
	Request string
	// Stream and JSON are the provider's answer to a request for a stream and for
	// an object. Where both are there, both must give the same response.
	Stream, JSON []byte
	// StreamType is the Content-Type of Stream, text/event-stream by default.
	StreamType string
	// Want are keys that the response must have. Ids of items are left out of
	// the comparison.
	Want string
}

// Fixtures are those of a folder: of each <name>.want.json, the request in
// <name>.request.json, the object in <name>.json, and the stream in <name>.sse
// or, for the plugin to encode, <name>.events. All but the first may lack.
func Fixtures(t testing.TB, folder string) []Fixture {
	t.Helper()
	wants, err := filepath.Glob(filepath.Join(folder, "*.want.json"))
	if err != nil || len(wants) == 0 {
		t.Fatalf("no fixtures in %s: %v", folder, err)
	}
	var all []Fixture
	for _, want := range wants {
		path := strings.TrimSuffix(want, ".want.json")
		read := func(suffix string) []byte {
			b, err := os.ReadFile(path + suffix)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			return b
		}
		f := Fixture{
			Name:    filepath.Base(path),
			Request: string(read(".request.json")),
			Stream:  read(".sse"),
			JSON:    read(".json"),
			Want:    string(read(".want.json")),
		}
		if f.Stream == nil {
			f.Stream = read(".events")
		}
		all = append(all, f)
	}
	return all
}

// File is a file of the folder testdata.
func File(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Named is the fixture of that name.
func Named(t testing.TB, fixtures []Fixture, name string) Fixture {
	t.Helper()
	for _, f := range fixtures {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("there is no fixture %q", name)
	return Fixture{}
}

func (f Fixture) request(t testing.TB, stream bool) *translate.Request {
	t.Helper()
	request := f.Request
	if request == "" {
		request = `{"model":"m","input":"hi"}`
	}
	request, err := sjson.Set(request, "stream", stream)
	if err != nil {
		t.Fatal(err)
	}
	p, err := translate.ParseRequest([]byte(request))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (f Fixture) answer(stream bool) (header http.Header, body []byte) {
	switch {
	case !stream:
		return http.Header{"Content-Type": {"application/json"}}, f.JSON
	case f.StreamType == "":
		return http.Header{"Content-Type": {"text/event-stream"}}, f.Stream
	}
	return http.Header{"Content-Type": {f.StreamType}}, f.Stream
}

// Answer is the response to the fixture's request, for a stream or for an
// object, and what the client was sent meanwhile of a stream.
func (f Fixture) Answer(t testing.TB, p translate.Provider, stream bool) (response gjson.Result, sent string) {
	t.Helper()
	header, body := f.answer(stream)
	var sink bytes.Buffer
	a := translate.NewAssembler(f.request(t, stream), &sink, options())
	if err := decodeAnswer(p, nil, header, bytes.NewReader(body), a); err != nil {
		t.Fatal(err)
	}
	a.End()
	return gjson.ParseBytes(a.Response()), sink.String()
}

// InTurn checks that a provider whose model makes one call after the other ends
// each call in the stream before the next begins. The fixture has at least two.
func (f Fixture) InTurn(t *testing.T, p translate.Provider) {
	t.Helper()
	_, sent := f.Answer(t, p, true)
	_, calls, _ := strings.Cut(sent, `"call_id"`)
	done, added := strings.Index(calls, "output_item.done"), strings.Index(calls, "output_item.added")
	if done < 0 || added < 0 || done > added {
		t.Error("the first call is not done when the second begins")
	}
}
