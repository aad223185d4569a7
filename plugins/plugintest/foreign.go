package plugintest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"
	"testing/iotest"

	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/inbound"
	"github.com/weirhq/weir/plugins/translate"
)

// foreign are the APIs beside Responses in which clients are answered: how a stream
// and an object are checked.
var foreign = map[plugins.Dialect]struct {
	stream, object func([]byte) (*Message, error)
}{
	plugins.Chat:     {CheckChat, ReadChat},
	plugins.Messages: {CheckMessages, ReadMessages},
}

// runForeign answers the fixture in the other APIs: whole, and cut off at some points.
// A stream must be legal, and say what the object says.
func (x exchange) runForeign(t *testing.T, body []byte) {
	t.Helper()
	for dialect := range foreign {
		whole, err := x.answerIn(t, dialect, bytes.NewReader(body))
		if err != nil {
			t.Errorf("%s: %v", dialect, err)
			continue
		}
		if pieces, err := x.answerIn(t, dialect, iotest.OneByteReader(bytes.NewReader(body))); err != nil || !pieces.same(whole) {
			t.Errorf("%s, byte by byte: got %+v, want %+v, error %v", dialect, pieces, whole, err)
		}
		for n := 0; n < len(body); n += 1 + len(body)/maxForeignCuts {
			if _, err := x.answerIn(t, dialect, bytes.NewReader(body[:n])); err != nil {
				t.Errorf("%s, cut off after %d bytes: %v", dialect, n, err)
			}
		}
	}
}

// maxForeignCuts is at how many points an answer in another API is cut off.
const maxForeignCuts = 15

// answerIn is what the client of another API gets.
func (x exchange) answerIn(t *testing.T, d plugins.Dialect, answer io.Reader) (*Message, error) {
	t.Helper()
	request := x.request(t, x.stream)
	req, err := x.provider.Prepare(context.Background(), request, x.target)
	if err != nil {
		t.Fatal(err)
	}
	header, _ := x.answer(x.stream)
	a, sink := newForeign(d, request, options())
	if err := decodeAnswer(x.provider, req, header, answer, a); err != nil {
		a.Fail(plugins.Upstream("%v", err))
	}
	return endForeign(d, a, sink)
}

// newForeign is an Assembler that answers a client of another API, who wants all
// there is.
func newForeign(d plugins.Dialect, p *translate.Request, o translate.Options) (*translate.Assembler, *bytes.Buffer) {
	sink := new(bytes.Buffer)
	api, _ := inbound.Of(d)
	p.Raw, _ = sjson.SetBytes(p.Raw, "stream_options.include_usage", true) // an object
	o.Encoder = api.Encoder(p)
	return translate.NewAssembler(p, sink, o), sink
}

// endForeign ends an answer and checks it.
func endForeign(d plugins.Dialect, a *translate.Assembler, sink *bytes.Buffer) (*Message, error) {
	check := foreign[d]
	end := a.End()
	object, err := check.object(a.Response())
	if err != nil {
		return nil, fmt.Errorf("%w in %s", err, a.Response())
	}
	if !a.Request().Stream {
		return object, nil
	}
	sink.Write(end)
	streamed, err := check.stream(sink.Bytes())
	if err != nil {
		return nil, fmt.Errorf("an illegal stream: %w in\n%s", err, sink.Bytes())
	}
	if !streamed.same(object) {
		return nil, fmt.Errorf("the stream says %+v, the object %+v", streamed, object)
	}
	return streamed, nil
}
