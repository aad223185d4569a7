package llmgateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/modules/llmgateway/secret"
	"github.com/weirhq/weir/storage/shared"

	_ "github.com/weirhq/weir/plugins/anthropic"
	_ "github.com/weirhq/weir/plugins/gemini"
	_ "github.com/weirhq/weir/plugins/openai"
)

// chunks is a body that comes event by event.
type chunks [][]byte

func (c *chunks) Read(p []byte) (int, error) {
	if len(*c) == 0 {
		return 0, io.EOF
	}
	n := copy(p, (*c)[0])
	if (*c)[0] = (*c)[0][n:]; len((*c)[0]) == 0 {
		*c = (*c)[1:]
	}
	return n, nil
}

func (*chunks) Close() error { return nil }

// discard is a client that reads everything.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}
func (d discard) Flush()                      {}

// BenchmarkStream is a stream of 200 events without network and disk: of each
// provider, what the gateway itself takes.
func BenchmarkStream(b *testing.B) {
	b.Setenv("XDG_DATA_HOME", b.TempDir())
	streams := map[string][][]byte{}
	add := func(label, format string, args ...any) {
		streams[label] = append(streams[label], fmt.Appendf(nil, format, args...))
	}
	add("openai", "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"resp_1\",\"model\":\"gpt-4o-mini\"}}\n\n")
	add("anthropic", "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":\"claude-haiku-4-5\",\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n")
	add("anthropic", "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n")
	for i := range 195 {
		add("openai", "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":%d,\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"delta\":\"word \",\"logprobs\":[],\"obfuscation\":\"0123456789\"}\n\n", i+1)
		add("anthropic", "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"word \"}}\n\n")
		add("gemini", "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"word \"}],\"role\":\"model\"},\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":9,\"candidatesTokenCount\":%d,\"totalTokenCount\":%d,\"promptTokensDetails\":[{\"modality\":\"TEXT\",\"tokenCount\":9}]},\"modelVersion\":\"gemini-2.5-flash\",\"responseId\":\"r\"}\n\n", i, i+9)
	}
	add("openai", "event: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":196,\"response\":{\"id\":\"resp_1\",\"status\":\"completed\",\"model\":\"gpt-4o-mini\",\"usage\":{\"input_tokens\":9,\"output_tokens\":195}}}\n\n")
	add("anthropic", "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n")
	add("anthropic", "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":195}}\n\n")
	add("anthropic", "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
	add("gemini", "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"end\"}],\"role\":\"model\"},\"finishReason\":\"STOP\",\"index\":0}],\"modelVersion\":\"gemini-2.5-flash\",\"responseId\":\"r\"}\n\n")

	h := newBenchHandler(b, `{"keys": [{"secret": "k"}], "providers": [
		{"label": "openai", "api_key": "k"}, {"label": "anthropic", "api_key": "k"}, {"label": "gemini", "api_key": "k"}]}`, func(label string) *http.Response {
		body := chunks(bytes.SplitAfter(bytes.Join(streams[label], nil), []byte("\n\n")))
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: &body}
	})
	for _, model := range []string{"openai/gpt-4o-mini", "anthropic/claude-haiku-4-5", "gemini/gemini-2.5-flash"} {
		b.Run(model, func(b *testing.B) {
			callInLoop(b, h, "/v1/responses", `{"model":"`+model+`","input":"`+strings.Repeat("word ", 400)+`","stream":true}`)
		})
	}
}

// BenchmarkCall is a small call without network and disk: of a model at one account, and of an alias that
// chooses among eight.
func BenchmarkCall(b *testing.B) {
	b.Setenv("XDG_DATA_HOME", b.TempDir())
	accounts, models := make([]string, 8), make([]string, 8)
	for i := range accounts {
		accounts[i], models[i] = fmt.Sprintf(`{"label": "a%d", "api": {"kind": "openai"}, "api_key": "sk-proj-0000000000000000000000000000000%d"}`, i, i), fmt.Sprintf(`{"model": "a%d/gpt-4o-mini"}`, i)
	}
	answer := `{"id":"chatcmpl-1","object":"chat.completion","created":1763700000,"model":"gpt-4o-mini-2024-07-18","choices":[{"index":0,"message":{"role":"assistant","content":"` + strings.Repeat("word ", 250) + `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":512,"completion_tokens":375,"total_tokens":887}}`
	h := newBenchHandler(b, `{"keys": [{"secret": "k"}], "providers": [`+strings.Join(accounts, ",")+`], "aliases": {"pool": {"strategy": "weight", "models": [`+strings.Join(models, ",")+`]}}}`, func(string) *http.Response {
		header := http.Header{
			"Content-Type": {"application/json"}, "Date": {"Mon, 30 Nov 2026 12:00:00 GMT"}, "Openai-Processing-Ms": {"412"}, "Openai-Version": {"2020-10-01"},
			"X-Ratelimit-Limit-Requests": {"10000"}, "X-Ratelimit-Remaining-Requests": {"9999"}, "X-Request-Id": {"req_0123456789abcdef0123456789abcdef"},
		}
		return &http.Response{StatusCode: 200, Header: header, ContentLength: int64(len(answer)), Body: io.NopCloser(strings.NewReader(answer))}
	})
	for _, model := range []string{"a0/gpt-4o-mini", "pool"} {
		b.Run(model, func(b *testing.B) {
			callInLoop(b, h, "/v1/chat/completions", `{"model":"`+model+`","messages":[{"role":"user","content":"`+strings.Repeat("word ", 400)+`"}],"temperature":0.7}`)
		})
	}
}

// callInLoop makes a call as often as the benchmark asks for.
func callInLoop(b *testing.B, h *Handler, path, body string) {
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest("POST", path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer k")
		if err := h.ServeHTTP(discard{http.Header{}}, r, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// newBenchHandler returns a gateway with this configuration of the app, whose accounts answer what answer
// returns for their labels, and whose records are not stored.
func newBenchHandler(b *testing.B, config string, answer func(label string) *http.Response) *Handler {
	base, err := caddy.ProvisionContext(nil)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := caddy.NewContext(base)
	b.Cleanup(cancel)
	loaded, err := ctx.LoadModuleByID("llm", json.RawMessage(config))
	if err != nil {
		b.Fatal(err)
	}
	breakers := new(shared.LocalBreakers)
	app := loaded.(*llmapp.App)
	h := &Handler{MaxBody: defaultMaxBody, MaxItems: defaultMaxItems, MaxTools: defaultMaxTools}
	h.gateway = gateway{
		breakers: func() shared.Breakers { return breakers }, affinity: func() shared.Affinity { return nil },
		secrets: func() (*secret.Secrets, error) { return secret.New([]byte("secret"), nil) },
		site: &recording.Site{
			App: app, Store: stores.DefaultName, Logger: zap.NewNop(),
			Open: func(context.CancelFunc) (recording.Recorder, func(), error) {
				return nil, nil, errors.New("there is no store")
			},
		},
		policy: routing.Policy{Backoff: backoff, TryDuration: defaultTryDuration},
	}
	for _, account := range app.Accounts().Of("default") {
		account.Transport = providers.NewTransport(transport(func(*http.Request) (*http.Response, error) {
			return answer(account.Label), nil
		}))
	}
	return h
}
