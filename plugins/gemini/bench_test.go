package gemini

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
	const usage = `"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":20,"totalTokenCount":29,"promptTokensDetails":[{"modality":"TEXT","tokenCount":9}]},"modelVersion":"gemini-3-flash-preview","responseId":"r1"`
	event := "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\" and then some\"}],\"role\":\"model\"},\"index\":0}]," + usage + "}\r\n\r\n"
	body := strings.Repeat(event, 199) + "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]," + usage + "}\r\n\r\n"
	b.ReportAllocs()
	before := cpu(b)
	for b.Loop() {
		a := translate.NewAssembler(&translate.Request{Model: "m", Stream: true}, io.Discard, translate.Options{})
		if err := (Provider{}).Decode(response(http.StatusOK, body), a); err != nil || a.Failure() != nil {
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
