package bedrock

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins/plugintest"
)

// BenchmarkDecode reads a stream of 200 events of text.
func BenchmarkDecode(b *testing.B) {
	body := eventStream(b, `messageStart {"p":"abcdefgh","role":"assistant"}`+"\n"+
		strings.Repeat(`contentBlockDelta {"contentBlockIndex":0,"delta":{"text":" and then some"},"p":"abcdefghijklmnopqrstuvwxyzABCDEFGHI"}`+"\n", 196)+
		`contentBlockStop {"contentBlockIndex":0}`+"\n"+
		`messageStop {"stopReason":"end_turn"}`+"\n"+
		`metadata {"usage":{"inputTokens":9,"outputTokens":20,"totalTokens":29}}`)
	plugintest.BenchmarkDecode(b, new(Provider), string(body))
}
