package bedrock

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"github.com/weirhq/weir/plugins/translate"
)

// eventStream encodes frames that are written as lines: the type of an event, or
// that of an exception after a "!", and the payload.
func eventStream(t testing.TB, lines string) []byte {
	t.Helper()
	var b bytes.Buffer
	for line := range strings.Lines(lines) {
		name, payload, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		m := eventstream.Message{Payload: []byte(payload)}
		m.Headers.Set(":content-type", eventstream.StringValue("application/json"))
		if exception, ok := strings.CutPrefix(name, "!"); ok {
			m.Headers.Set(":message-type", eventstream.StringValue("exception"))
			m.Headers.Set(":exception-type", eventstream.StringValue(exception))
		} else {
			m.Headers.Set(":message-type", eventstream.StringValue("event"))
			m.Headers.Set(":event-type", eventstream.StringValue(name))
		}
		if err := eventstream.NewEncoder().Encode(&b, m); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// fixture is a file of testdata, a stream with its frames encoded.
func fixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(name, ".events") {
		return eventStream(t, string(b))
	}
	return b
}

func assembler(stream bool) *translate.Assembler {
	return translate.NewAssembler(&translate.Request{Model: "m", Stream: stream}, io.Discard, translate.Options{})
}
