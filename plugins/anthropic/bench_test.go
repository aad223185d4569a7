package anthropic

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
	event := "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" and then some\"}   }\n\n"
	body := "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":\"m\",\"usage\":{\"input_tokens\":9}}}\n\n" +
		strings.Repeat(event, 197) +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":20}}\n\n" +
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
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
