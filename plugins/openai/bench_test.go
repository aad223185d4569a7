package openai

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
	event := "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":4,\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"delta\":\" and then some\",\"logprobs\":[]}\n\n"
	body := "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\",\"model\":\"m\"}}\n\n" +
		strings.Repeat(event, 198) +
		"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"usage\":{\"input_tokens\":9,\"output_tokens\":20}}}\n\n"
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
