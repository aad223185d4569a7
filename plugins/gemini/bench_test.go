package gemini

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins/plugintest"
)

// BenchmarkDecode reads a stream of 200 events of text.
func BenchmarkDecode(b *testing.B) {
	const usage = `"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":20,"totalTokenCount":29,"promptTokensDetails":[{"modality":"TEXT","tokenCount":9}]},"modelVersion":"gemini-3-flash-preview","responseId":"r1"`
	event := "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\" and then some\"}],\"role\":\"model\"},\"index\":0}]," + usage + "}\r\n\r\n"
	body := strings.Repeat(event, 199) + "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]," + usage + "}\r\n\r\n"
	plugintest.BenchmarkDecode(b, Provider{}, body)
}
