package observe

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"go.uber.org/goleak"

	"github.com/weirhq/weir/plugins"
)

const eventStreamType = "application/vnd.amazon.eventstream"

// eventFrame is one frame of an event stream; kind is its :message-type.
func eventFrame(t testing.TB, kind, name, payload string) []byte {
	t.Helper()
	var b bytes.Buffer
	m := eventstream.Message{Payload: []byte(payload)}
	m.Headers.Set(":message-type", eventstream.StringValue(kind))
	m.Headers.Set(":"+kind+"-type", eventstream.StringValue(name))
	if err := eventstream.NewEncoder().Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func chunkFrame(t testing.TB, event string) []byte {
	return eventFrame(t, "event", "chunk", `{"bytes":"`+base64.StdEncoding.EncodeToString([]byte(event))+`","p":"abc"}`)
}

func TestEventStream(t *testing.T) {
	type usage = plugins.Usage
	broken := eventFrame(t, "event", "metadata", `{"usage":{"inputTokens":1}}`)
	broken[len(broken)-1] ^= 1
	for _, c := range []struct {
		name    string
		dialect plugins.Dialect
		frames  [][]byte
		want    plugins.ResponseInfo
	}{{
		"converse", plugins.Converse, [][]byte{
			eventFrame(t, "event", "messageStart", `{"role":"assistant"}`),
			eventFrame(t, "event", "contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"x"},"p":"ab"}`),
			eventFrame(t, "event", "messageStop", `{"stopReason":"end_turn"}`),
			eventFrame(t, "event", "metadata", `{"usage":{"inputTokens":10,"outputTokens":4,"totalTokens":19,"cacheReadInputTokens":5}}`),
		}, plugins.ResponseInfo{Stream: true, Finish: "end_turn", Content: true, Phase: plugins.Ended,
			Usage: usage{Input: known(15), Output: known(4), CacheRead: known(5)}},
	}, {
		"converse before its metadata", plugins.Converse, [][]byte{
			eventFrame(t, "event", "messageStop", `{"stopReason":"tool_use"}`),
		}, plugins.ResponseInfo{Stream: true, Finish: "tool_use", Phase: plugins.Finished},
	}, {
		"exception", plugins.Converse, [][]byte{
			eventFrame(t, "event", "messageStart", `{"role":"assistant"}`),
			eventFrame(t, "exception", "throttlingException", `{"message":"x"}`),
		}, plugins.ResponseInfo{Stream: true, ErrorType: "throttlingException", ErrorMessage: "x"},
	}, {
		"broken frame", plugins.Converse, [][]byte{broken}, plugins.ResponseInfo{Stream: true},
	}, {
		"invoke claude", plugins.Invoke, [][]byte{
			chunkFrame(t, `{"type":"message_start","message":{"id":"m","model":"claude","usage":{"input_tokens":97,"output_tokens":1}}}`),
			chunkFrame(t, `{"type":"content_block_delta","delta":{"text":"x"}}`),
			chunkFrame(t, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":133}}`),
			chunkFrame(t, `{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":97,"outputTokenCount":90}}`),
		}, plugins.ResponseInfo{Stream: true, Model: "claude", ResponseID: "m", Finish: "end_turn", Content: true, Phase: plugins.Ended,
			Usage: usage{Input: known(97), Output: known(133)}},
	}, {
		"invoke nova", plugins.Invoke, [][]byte{
			chunkFrame(t, `{"contentBlockDelta":{"delta":{"text":"x"}}}`),
			chunkFrame(t, `{"messageStop":{"stopReason":"max_tokens"}}`),
			chunkFrame(t, `{"metadata":{"usage":{"inputTokens":3,"outputTokens":4}},"amazon-bedrock-invocationMetrics":{"inputTokenCount":3}}`),
		}, plugins.ResponseInfo{Stream: true, Finish: "max_tokens", Content: true, Phase: plugins.Ended, Usage: usage{Input: known(3), Output: known(4)}},
	}, {
		"invoke with metrics alone", plugins.Invoke, [][]byte{
			chunkFrame(t, `{"outputs":[{"text":"x","stop_reason":null}]}`),
			chunkFrame(t, `{"outputs":[{"text":"","stop_reason":"stop"}],"amazon-bedrock-invocationMetrics":{"inputTokenCount":5,"outputTokenCount":7,"cacheReadInputTokenCount":2}}`),
		}, plugins.ResponseInfo{Stream: true, Finish: "stop", Content: true, Phase: plugins.Ended, Usage: usage{Input: known(7), Output: known(7), CacheRead: known(2)}},
	}} {
		t.Run(c.name, func(t *testing.T) {
			defer goleak.VerifyNone(t)
			c.want.Dialect = c.dialect
			body := bytes.Join(c.frames, nil)
			for name, size := range chunkings {
				for _, contentType := range []string{eventStreamType, ""} {
					if got := observe(c.dialect, "bedrock", contentType, body, size); got != c.want {
						t.Errorf("%s, %q:\n got %+v\nwant %+v", name, contentType, got, c.want)
					}
				}
			}
		})
	}
}

func TestErrorDeclaredAsEventStream(t *testing.T) {
	got := observe(plugins.Converse, "bedrock", eventStreamType, []byte(`{"message":"x"}`), chunkings["bytes"])
	if got.Phase != plugins.Ended {
		t.Errorf("%+v", got)
	}
}

func FuzzEventStream(f *testing.F) {
	f.Add(chunkFrame(f, `{"type":"message_stop"}`), uint16(1))
	f.Add(eventFrame(f, "event", "metadata", `{"usage":{"inputTokens":1}}`), uint16(5))
	f.Add([]byte(strings.Repeat("\x00", 40)), uint16(5))
	f.Fuzz(func(t *testing.T, b []byte, seed uint16) {
		whole := observe(plugins.Invoke, "", eventStreamType, b, chunkings["whole"])
		cut := observe(plugins.Invoke, "", eventStreamType, b, cuts(seed))
		if whole != cut {
			t.Fatalf("in pieces %+v\nas a whole %+v", cut, whole)
		}
	})
}
