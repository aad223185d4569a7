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

	base, err := caddy.ProvisionContext(nil)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := caddy.NewContext(base)
	defer cancel()
	loaded, err := ctx.LoadModuleByID("llm", json.RawMessage(`{"keys": [{"secret": "k"}], "providers": [
		{"label": "openai", "api_key": "k"}, {"label": "anthropic", "api_key": "k"}, {"label": "gemini", "api_key": "k"}]}`))
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
			body := chunks(bytes.SplitAfter(bytes.Join(streams[account.Label], nil), []byte("\n\n")))
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: &body}, nil
		}))
	}
	for _, model := range []string{"openai/gpt-4o-mini", "anthropic/claude-haiku-4-5", "gemini/gemini-2.5-flash"} {
		b.Run(model, func(b *testing.B) {
			body := `{"model":"` + model + `","input":"` + strings.Repeat("word ", 400) + `","stream":true}`
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest("POST", "/v1/responses", strings.NewReader(body))
				r.Header.Set("Authorization", "Bearer k")
				if err := h.ServeHTTP(discard{http.Header{}}, r, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
