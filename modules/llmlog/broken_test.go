package llmlog

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins"
)

// What is broken off is billed by providers, though they have not stated its usage, or only what
// they began with: its cost is counted, and the record says so.
func TestTheCostOfABrokenOffAnswerIsCounted(t *testing.T) {
	const words = "word word word word word word word word " // ten tokens
	says := event(`{"id":"c1","object":"chat.completion.chunk","model":"gpt-4o","choices":[{"index":0,"delta":{"content":"` + words + `"}}]}`)
	anthropic := event(`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"claude-opus-4-6","content":[],"usage":{"input_tokens":1000,"output_tokens":1}}}`) +
		event(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`) +
		event(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"`+words+`"}}`)
	gemini := event(`{"candidates":[{"content":{"role":"model","parts":[{"text":"` + words + `"}]}}],"usageMetadata":{"promptTokenCount":1000,"totalTokenCount":1000},"modelVersion":"gemini-2.5-flash"}`)
	const (
		geminiPath = "/v1beta/models/gemini-2.5-flash:streamGenerateContent"
		hi         = `[{"role":"user","content":"hi"}]`
		picture    = `[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]}]`
	)
	for _, c := range []struct {
		name, provider, path, messages string
		pieces                         []string
		omit                           string
		least, most                    plugins.Nanodollars // 0 if the cost is unknown
		counted                        bool
	}{
		{"nothing stated", "openai", chatPath, hi, []string{says}, "", 100_000, 200_000, true},
		{"output that begins with 1", "anthropic", "/v1/messages", hi, []string{anthropic}, "", 5_000_000 + 9*25_000, 5_000_000 + 13*25_000, true},
		{"output that begins with 0", "gemini", geminiPath, hi, []string{gemini}, "", 300_000 + 9*2_500, 300_000 + 13*2_500, true},
		{"all stated", "openai", chatPath, hi, []string{says, finishEvent, usageEvent}, "", 27_500 + 70_000, 27_500 + 70_000, false},
		{"a picture of any size", "openai", chatPath, picture, []string{says}, "", 0, 0, false},
		{"an answer that is not kept", "openai", chatPath, hi, []string{says}, "Service-Omit-Response", 0, 0, false},
		{"output that begins with 1, not kept", "anthropic", "/v1/messages", hi, []string{anthropic}, "Service-Omit-Response", 0, 0, false},
		{"a request that is not kept", "openai", chatPath, hi, []string{says}, "Service-Omit-Request", 0, 0, false},
		{"a request that is not kept, with its input stated", "anthropic", "/v1/messages", hi, []string{anthropic}, "Service-Omit-Request", 5_000_000 + 9*25_000, 5_000_000 + 13*25_000, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			upstream := streaming(c.pieces, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
			defer upstream.Close()
			s := serve(t, options{upstream: upstream.Listener.Addr().String(), config: object{"provider": c.provider}})
			r, err := http.NewRequest("POST", s.url(c.path), strings.NewReader(`{"model":"gpt-4o","stream":true,"messages":`+c.messages+`}`))
			if err != nil {
				t.Fatal(err)
			}
			if c.omit != "" {
				r.Header.Set(c.omit, "true")
			}
			resp, err := s.client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			e := s.record()
			if e.Cost.Valid != (c.most > 0) || e.Cost.N < c.least || e.Cost.N > c.most || e.CostCounted != c.counted {
				t.Errorf("%s: cost %v, counted %v; want %v to %v, %v", e.EndState, e.Cost, e.CostCounted, c.least, c.most, c.counted)
			}
		})
	}
}
