package chat

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weirhq/weir/plugins/translate"
)

// BenchmarkDecode reads a stream of 200 events of text, and reports the CPU that
// it takes.
func BenchmarkDecode(b *testing.B) {
	event := `data: {"id":"chatcmpl-CMKBAQ4vWbdeHIVnqDgk62In6psws","object":"chat.completion.chunk","created":1759449904,` +
		`"model":"gpt-4o-2024-08-06","service_tier":"default","system_fingerprint":"fp_cbf1785567","choices":[{"index":0,` +
		`"delta":{"content":" and then"},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n"
	body := strings.Repeat(event, 198) +
		`data: {"id":"c","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":200}}` +
		"\n\ndata: [DONE]\n\n"
	p := For("openai")
	b.ReportAllocs()
	before := cpu(b)
	for b.Loop() {
		a := translate.NewAssembler(&translate.Request{Model: "m", Stream: true}, io.Discard, translate.Options{})
		if err := p.Decode(response(http.StatusOK, body), a); err != nil || a.Failure() != nil {
			b.Fatal(err, a.Failure())
		}
		a.End()
	}
	b.ReportMetric(float64(cpu(b)-before)/float64(b.N), "cpu-ns/op")
}

func cpu(b *testing.B) int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
