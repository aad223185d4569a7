package plugintest

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// toy is a provider whose stream has texts, and whose object has them all.
type toy struct{}

func (toy) Prepare(ctx context.Context, p *translate.Request, t translate.Target) (*http.Request, error) {
	if err := p.Apply(translate.DefaultPolicy); err != nil {
		return nil, err
	}
	return http.NewRequestWithContext(ctx, http.MethodPost, t.BaseURL, strings.NewReader(p.Model))
}

func (toy) Decode(resp *http.Response, a *translate.Assembler) error {
	return translate.ReadAnswer(resp, a, func(body []byte) {
		if gjson.ValidBytes(body) {
			a.Text(0, gjson.GetBytes(body, "text").Str)
			a.Finish(translate.ReasonStop)
		}
	}, func(_, data []byte) bool {
		if string(data) == "[DONE]" {
			a.Finish(translate.ReasonStop)
			return false
		}
		a.Text(0, gjson.GetBytes(data, "text").Str)
		return true
	})
}

func (toy) Error(resp *http.Response) *plugins.Error {
	e := plugins.Refused(resp.StatusCode, "")
	e.RetryAfter = plugins.RetryAfter(resp.Header)
	return e
}

func TestRun(t *testing.T) {
	Run(t, toy{}, translate.Target{BaseURL: "http://localhost"}, []Fixture{{
		Name:   "text",
		Stream: []byte("data: {\"text\":\"Hel\"}\n\ndata: {\"text\":\"lo\"}\n\ndata: [DONE]\n\n"),
		JSON:   []byte(`{"text":"Hello"}`),
		Want: `{"status":"completed","usage":null,"output":[{"type":"message","role":"assistant","status":"completed",
			"content":[{"type":"output_text","text":"Hello","annotations":[],"logprobs":[]}]}]}`,
	}})
	Errors(t, toy{})
}
