package observe

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins"
)

// benchmarkReads reads one body a turn, in chunks as a proxy has them.
func benchmarkReads(b *testing.B, body string, chunk int, read func() (write func([]byte), done func())) {
	b.Helper()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	whole := []byte(body)
	for b.Loop() {
		write, done := read()
		for rest := whole; len(rest) > 0; {
			n := min(len(rest), chunk)
			write(rest[:n])
			rest = rest[n:]
		}
		done()
	}
}

func observing(d plugins.Dialect, contentType string) func() (func([]byte), func()) {
	header := typed(contentType)
	return func() (func([]byte), func()) {
		x := New(d, "openai", header)
		return x.Write, x.Close
	}
}

func chatStream(events int) string {
	var b strings.Builder
	for i := range events {
		fmt.Fprintf(&b, `data: {"id":"chatcmpl-0123456789abcdefghijklmnopqrs","object":"chat.completion.chunk","created":1750000000,"model":"gpt-x-2025-01-01","service_tier":"default","system_fingerprint":"fp_0123456789","choices":[{"index":0,"delta":{"content":" token%d"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"abcdef"}`+"\n\n", i)
	}
	b.WriteString("data: [DONE]\n\n")
	return b.String()
}

func BenchmarkChatStream(b *testing.B) {
	body := chatStream(200)
	b.Run("pieces", func(b *testing.B) {
		benchmarkReads(b, body, len(body)/201, observing(plugins.Chat, sseType))
	})
	b.Run("whole", func(b *testing.B) { benchmarkReads(b, body, len(body), observing(plugins.Chat, sseType)) })
	b.Run("unknown", func(b *testing.B) { benchmarkReads(b, body, len(body), observing(plugins.Unknown, sseType)) })
}

func BenchmarkMessagesStream(b *testing.B) {
	body := strings.Repeat("event: content_block_delta\n"+`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"some words"}}`+"\n\n", 200)
	benchmarkReads(b, body, len(body)/200, observing(plugins.Messages, sseType))
}

func BenchmarkJSONAnswer(b *testing.B) {
	body := `{"id":"chatcmpl-1","object":"chat.completion","created":1750000000,"model":"gpt","choices":[{"index":0,"message":{"role":"assistant","content":"` +
		strings.Repeat(`Words of an answer, \"quoted\".\n`, 28) + `","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"default","system_fingerprint":"fp"}`
	benchmarkReads(b, body, 32<<10, observing(plugins.Chat, jsonType))
}

func BenchmarkResponsesCompleted(b *testing.B) {
	body := events(`{"type":"response.completed","response":{"id":"r","model":"gpt","output":[{"type":"message","content":[{"type":"output_text","text":"` +
		strings.Repeat(`Words of an answer, \"quoted\".\n`, 30_000) + `"}]}],"usage":{"input_tokens":1}}}`)
	benchmarkReads(b, body, 32<<10, observing(plugins.Responses, sseType))
}

func BenchmarkEmbeddings(b *testing.B) {
	body := `{"object":"list","data":[{"embedding":[` + strings.Repeat("-0.012345678,", 1535) + `0.1]}],"model":"m","usage":{"prompt_tokens":8}}`
	benchmarkReads(b, body, 32<<10, observing(plugins.Embeddings, jsonType))
}

func BenchmarkRequest(b *testing.B) {
	message := `{"role":"user","content":"` + strings.Repeat(`A line of a prompt, with a \"quote\" here and there, of eighty bytes or more.\n`, 12) + `"}`
	body := `{"model":"gpt","messages":[` + strings.Repeat(message+",", 100) + message + `],"stream":true}`
	benchmarkReads(b, body, 32<<10, func() (func([]byte), func()) {
		r := NewRequestReader(plugins.Chat)
		return r.Write, func() {}
	})
}

func BenchmarkEventStream(b *testing.B) {
	var body strings.Builder
	for range 200 {
		body.Write(eventFrame(b, "event", "contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"some words"},"p":"abcdefgh"}`))
	}
	benchmarkReads(b, body.String(), body.Len()/200, observing(plugins.Converse, eventStreamType))
}

func BenchmarkDetect(b *testing.B) {
	for b.Loop() {
		Detect("", "/v1/chat/completions")
	}
}
