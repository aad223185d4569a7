package plugintest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"testing"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/inbound"
	"github.com/weirhq/weir/plugins/translate"
)

// clients are the APIs in which clients are answered: how a stream and an object are checked,
// and at how many points an answer is cut off.
var clients = map[plugins.Dialect]struct {
	stream, object func([]byte) (content, error)
	cuts           int
}{
	plugins.Responses: {checkResponses, readResponse, 100},
	plugins.Chat:      {check(CheckChat), check(ReadChat), 15},
	plugins.Messages:  {check(CheckMessages), check(ReadMessages), 15},
}

// content is the content of an answer, as a client reads it.
type content interface{ same(other content) bool }

func check(read func([]byte) (*Message, error)) func([]byte) (content, error) {
	return func(b []byte) (content, error) { return read(b) }
}

// response is a response of the Responses API without the ids of items.
type response map[string]any

func (r response) same(other content) bool { return reflect.DeepEqual(r, other) }

func readResponse(object []byte) (content, error) {
	var r response
	if err := decode(object, &r); err != nil {
		return nil, err
	}
	items, _ := r["output"].([]any)
	for _, i := range items {
		if i, ok := i.(map[string]any); ok {
			delete(i, "id")
		}
	}
	return r, nil
}

func checkResponses(stream []byte) (content, error) {
	r, err := Check(stream)
	if err != nil {
		return nil, err
	}
	return readResponse(r.Response)
}

// exchange is a fixture in one mode.
type exchange struct {
	Fixture
	provider translate.Provider
	target   translate.Target // the zero Target if the request is not to be translated
	stream   bool
}

// serve answers a client, who wants all there is, with what the provider answers. A stream
// must be legal, and say what the object says.
func (x exchange) serve(t *testing.T, d plugins.Dialect, answer io.Reader, o translate.Options) (content, error) {
	t.Helper()
	request := x.request(t, x.stream)
	var req *http.Request
	if x.target.BaseURL != "" {
		var err error
		if req, err = x.provider.Prepare(context.Background(), request, x.target); err != nil {
			t.Fatal(err)
		}
	}
	api, _ := inbound.Of(d)
	if d == plugins.Chat {
		request.Raw, _ = sjson.SetBytes(request.Raw, "stream_options.include_usage", true) // an object
	}
	o.Encoder = api.Encoder(request)
	header, _ := x.answer(x.stream)
	var sink bytes.Buffer
	a := translate.NewAssembler(request, &sink, o)
	if err := decodeAnswer(x.provider, req, header, answer, a); err != nil {
		if errors.Is(err, io.EOF) {
			t.Error("the end of an answer is no error")
		}
		a.Fail(plugins.Upstream("%v", err))
	}
	end := a.End()
	if !gjson.ValidBytes(a.Response()) {
		return nil, fmt.Errorf("the response is not JSON: %s", a.Response())
	}
	object, err := clients[d].object(a.Response())
	if err != nil {
		return nil, fmt.Errorf("%w in %s", err, a.Response())
	}
	if !x.stream {
		return object, nil
	}
	sink.Write(end)
	streamed, err := clients[d].stream(sink.Bytes())
	if err != nil {
		return nil, fmt.Errorf("an illegal stream: %w in\n%s", err, sink.Bytes())
	}
	if !streamed.same(object) {
		return nil, fmt.Errorf("the stream says %+v, the object %+v", streamed, object)
	}
	return streamed, nil
}

// decode lets a provider decode a successful answer to the request, which was not prepared.
func (f Fixture) decode(t testing.TB, p translate.Provider, stream bool, body io.Reader) (*translate.Assembler, error) {
	t.Helper()
	header, _ := f.answer(stream)
	a := translate.NewAssembler(f.request(t, stream), io.Discard, options())
	return a, decodeAnswer(p, nil, header, body, a)
}

func decodeAnswer(p translate.Provider, req *http.Request, header http.Header, body io.Reader, a *translate.Assembler) error {
	return p.Decode(&http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(body), Request: req}, a)
}
