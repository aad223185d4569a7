package llmgateway

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/plugins/observe"
)

// What the provider fetches or restores is set aside at the model's limit, here 1,000
// tokens of a thousandth of a dollar: a balance that does not cover it lets nothing pass.
func TestWhatTheProviderFetchesIsSetAside(t *testing.T) {
	for name, c := range map[string]struct{ path, fields string }{
		"a file by its URL":     {"/v1/responses", `"max_output_tokens":1,"input":[{"role":"user","content":[{"type":"input_file","file_url":"https://example.com/a.pdf"}]}]`},
		"a file within":         {"/v1/responses", `"max_output_tokens":1,"input":[{"role":"user","content":[{"type":"input_file","file_data":"data:application/pdf;base64,AAAA"}]}]`},
		"a file, named twice":   {"/v1/responses", `"max_output_tokens":1,"input":[{"role":"user","content":[{"type":"input_file","type":"input_text","text":"a","file_url":"https://example.com/a.pdf"}]}]`},
		"a picture by its URL":  {"/v1/responses", `"max_output_tokens":1,"input":[{"role":"user","content":[{"type":"input_image","image_url":"https://example.com/a.png"}]}]`},
		"a picture of a tool":   {"/v1/responses", `"max_output_tokens":1,"input":[{"type":"function_call_output","call_id":"c","output":[{"type":"input_image","image_url":"https://example.com/a.png"}]}]`},
		"a hosted search":       {"/v1/responses", `"max_output_tokens":1,"input":"hi","tools":[{"type":"web_search"}]`},
		"an MCP server":         {"/v1/responses", `"max_output_tokens":1,"input":"hi","tools":[{"type":"mcp","server_label":"a","server_url":"https://example.com"}]`},
		"chat, a picture":       {"/v1/chat/completions", `"max_tokens":1,"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]}]`},
		"chat, a video":         {"/v1/chat/completions", `"max_tokens":1,"messages":[{"role":"user","content":[{"type":"video_url","video_url":{"url":"https://example.com/a.mp4"}}]}]`},
		"chat, a search":        {"/v1/chat/completions", `"max_tokens":1,"messages":[],"web_search_options":{}`},
		"messages, a document":  {"/v1/messages", `"max_tokens":1,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"url","url":"https://example.com/a.pdf"}}]}]`},
		"messages, a tool's":    {"/v1/messages", `"max_tokens":1,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}]}]}]`},
		"messages, MCP servers": {"/v1/messages", `"max_tokens":1,"messages":[],"mcp_servers":[{"type":"url","url":"https://example.com","name":"a"}]`},
		"messages, what is new": {"/v1/messages", `"max_tokens":1,"messages":[],"something_new":{"fetch":"https://example.com"}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, map[string][]upstream{"raw": {speaksResponses}})
			s.grant(900)
			resp, body := s.postTo(c.path, strings.NewReader(`{"model":"raw/priced",`+c.fields+`}`), "Authorization", "Bearer payer")
			if resp.StatusCode != http.StatusPaymentRequired || resp.Header.Get("X-Should-Retry") != "false" || resp.Header.Get("Retry-After") != "" {
				t.Errorf("%d %s, header %v", resp.StatusCode, body, resp.Header)
			}
			s.grant(2000)
			if resp, body := s.postTo(c.path, strings.NewReader(`{"model":"raw/priced",`+c.fields+`}`), "Authorization", "Bearer payer"); resp.StatusCode == http.StatusPaymentRequired {
				t.Errorf("with enough: %d %s", resp.StatusCode, body)
			}
		})
	}
}

// Pictures of a hosted tool are set aside at the price of the tool's model: a tool whose model
// has no price is refused, unless the budget lets calls without a price pass.
func TestAPainterWithoutAPriceIsRefused(t *testing.T) {
	s := serve(t, map[string][]upstream{"raw": {speaksResponses}})
	s.grant(1e6)
	ask := func(key, painter string) (*http.Response, string) {
		body := fmt.Sprintf(`{"model":"raw/priced","input":"hi","max_output_tokens":1,"tools":[{"type":"image_generation","model":%q,"partial_images":3}]}`, painter)
		return s.postTo("/v1/responses", strings.NewReader(body), "Authorization", "Bearer "+key)
	}
	for _, key := range []string{"payer", "capped"} {
		if resp, body := ask(key, "unknown"); resp.StatusCode != http.StatusBadRequest || gjson.Get(body, "error.code").Str != "model_not_priced" {
			t.Errorf("%s, without a price: %d %s", key, resp.StatusCode, body)
		}
	}
	if resp, body := ask("payer", "paint"); resp.StatusCode != http.StatusOK {
		t.Errorf("with a price: %d %s", resp.StatusCode, body)
	}
	if resp, body := ask("patient", "unknown"); resp.StatusCode != http.StatusOK {
		t.Errorf("a budget that lets it pass: %d %s", resp.StatusCode, body)
	}
}

// An advisor is another model, which reads what the model reads at a price of its own. So is a
// painter that the request names in a second place.
func TestOtherModelsOfToolsAreSetAside(t *testing.T) {
	s := serve(t, map[string][]upstream{"raw": {speaksResponses}})
	s.grant(2000)
	for _, c := range []struct {
		tool    string
		granted int64 // in thousandths of a dollar
		status  int
	}{
		{`{"type":"function","name":"f","model":"unknown","parameters":{},"max_uses":1000000}`, 0, http.StatusOK},
		{`{"type":"advisor_20260301","name":"advisor","model":"priced","max_uses":2}`, 0, http.StatusPaymentRequired},
		{`{"type":"advisor_20260301","name":"advisor","model":"priced","max_uses":2}`, 1e6, http.StatusOK},
		{`{"type":"advisor_20260301","name":"advisor","model":"unknown"}`, 0, http.StatusBadRequest},
		{`{"type":"advisor_20260301","name":"advisor","model":"priced","model":"unknown"}`, 0, http.StatusBadRequest},
		{`{"type":"image_generation","model":"paint","model":"unknown","partial_images":3}`, 0, http.StatusBadRequest},
	} {
		s.grant(c.granted)
		body := `{"model":"raw/priced","input":"hi","max_output_tokens":1,"tools":[` + c.tool + `]}`
		if resp, answer := s.postTo("/v1/responses", strings.NewReader(body), "Authorization", "Bearer payer"); resp.StatusCode != c.status {
			t.Errorf("%s: %d %s", c.tool, resp.StatusCode, answer)
		}
	}
}

// A field that names another model, or that stands twice, tells nothing of the cost.
func TestWhatCannotBePaidIsRefused(t *testing.T) {
	s := serve(t, map[string][]upstream{"raw": {speaksResponses}})
	s.grant(1e6)
	for fields, param := range map[string]string{
		`"models":["dear/model"]`:                         "models",
		`"max_tokens":1,"max_tokens":100000`:              "max_tokens",
		`"max_tokens":1,"max_\u0074okens":100000`:         "max_tokens",
		`"max_tokens":1,"messages":[{"role":"user"}]`:     "messages",
		`"max_tokens":1,"n":10000000`:                     "n",
		`"max_tokens":1,"n":-5`:                           "n",
		`"max_tokens":1,"best_of":"129"`:                  "best_of",
		`"max_tokens":1,"fallbacks":[{"model":"dearer"}]`: "fallbacks",
	} {
		resp, body := s.postTo("/v1/chat/completions", strings.NewReader(`{"model":"raw/priced","messages":[],`+fields+`}`), "Authorization", "Bearer payer")
		if resp.StatusCode != http.StatusBadRequest || gjson.Get(body, "error.param").Str != param {
			t.Errorf("%s: %d %s", fields, resp.StatusCode, body)
		}
	}
}

// randomCall is a request, and the most that a provider can say that it used.
type randomCall struct {
	dialect plugins.Dialect
	body    string
	tier    string
	used    plugins.Usage
	whole   bool // the provider reads what the request only names
}

func newRandomCall(r *rand.Rand, m *catalog.Model) (c randomCall) {
	c.dialect = []plugins.Dialect{plugins.Responses, plugins.Chat, plugins.Messages}[r.IntN(3)]
	text := strings.Repeat([]string{"The quick brown fox. ", "if(a[i]!=b){c++;}", "我们明天去北京。", "8 3 1 7 "}[r.IntN(4)], 1+r.IntN(1<<r.IntN(14)))
	tokens := int64(len(text)) // at a tokenizer that has no token of more than a byte for the text
	fields, parts := "", []string{`{"type":"text","text":"` + text + `"}`}
	for range r.IntN(3) { // pictures of any size
		picture := []string{"https://example.com/a.png", "data:image/png;base64," + strings.Repeat("A", r.IntN(5000))}[r.IntN(2)]
		parts = append(parts, fmt.Sprintf(map[plugins.Dialect]string{
			plugins.Responses: `{"type":"input_image","image_url":%q}`, plugins.Chat: `{"type":"image_url","image_url":{"url":%q}}`,
			plugins.Messages: `{"type":"image","source":{"type":"url","url":%q}}`,
		}[c.dialect], picture))
		n := r.Int64N(bound.PictureTokens)
		tokens, c.used.InputImage = tokens+n, plugins.Known(c.used.InputImage.N+n)
	}
	switch r.IntN(6) {
	case 0:
		c.whole = true
		fields += map[plugins.Dialect]string{
			plugins.Responses: `,"previous_response_id":"resp_1"`, plugins.Chat: `,"web_search_options":{}`, plugins.Messages: `,"mcp_servers":[{"type":"url"}]`,
		}[c.dialect]
	case 1:
		c.whole = true
		parts = append(parts, map[plugins.Dialect]string{
			plugins.Responses: `{"type":"input_file","file_url":"https://example.com/a"}`, plugins.Chat: `{"type":"file","file":{"file_id":"file-1"}}`,
			plugins.Messages: `{"type":"document","source":{"type":"url","url":"https://example.com/a"}}`,
		}[c.dialect])
	case 2:
		fields += `,"cache_control":{"type":"ephemeral","ttl":"1h"}`
		c.used.CacheWrite1h = plugins.Known(1)
	}
	tokens = min(tokens, m.InputLimit())
	if c.whole {
		tokens = r.Int64N(m.InputLimit()) + 1
	}
	c.used.Input = plugins.Known(tokens)
	if c.used.CacheWrite1h.Valid {
		c.used.CacheWrite1h = plugins.Known(r.Int64N(tokens + 1))
		c.used.CacheWrite = plugins.Known(c.used.CacheWrite1h.N + r.Int64N(tokens-c.used.CacheWrite1h.N+1))
	}
	c.used.CacheRead = plugins.Known(r.Int64N(tokens - c.used.CacheWrite.N + 1))
	output := m.OutputLimit()
	if r.IntN(2) == 0 {
		asked := r.Int64N(2*output) + 1
		fields += fmt.Sprintf(`,%q:%d`, observe.OutputLimits(c.dialect)[0], asked)
		output = min(output, asked)
	}
	c.used.Output = plugins.Known(r.Int64N(output + 1))
	switch media := plugins.Known(r.Int64N(c.used.Output.N + 1)); {
	case slices.Contains(m.Output, "image"):
		c.used.OutputImage = media
	case slices.Contains(m.Output, "audio"):
		c.used.OutputAudio = media
	default:
		c.used.Reasoning = media
	}
	if c.tier = []string{"", "priority", "flex"}[r.IntN(3)]; c.tier != "" {
		fields += fmt.Sprintf(`,"service_tier":%q`, c.tier)
	}
	list := map[bool]string{true: "input", false: "messages"}[c.dialect == plugins.Responses]
	c.body = fmt.Sprintf(`{"model":"m",%q:[{"role":"user","content":[%s]}]%s}`, list, strings.Join(parts, ","), fields)
	return c
}
