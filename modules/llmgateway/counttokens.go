package llmgateway

import (
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
)

// mediaTokens is the largest number of tokens of an image, by Anthropic's documentation.
// Documents count as images: how many pages they have is not known.
const mediaTokens = 1600

// answerEstimate answers how many tokens a request has, where its target counts none.
func (at candidate) answerEstimate() {
	c, t := at.call, at.target
	text, media := measure(gjson.ParseBytes(c.input.sent), 0)
	tokens := bound.Likely.Text(int64(text)) + int64(media)*mediaTokens
	c.controls.Warnings = append(c.controls.Warnings, fmt.Sprintf("input_tokens: estimated, a token for %d bytes of JSON and %d for an image or document, because %s counts none",
		bound.Likely.TextBytes, mediaTokens, t.Account.Label))
	x := c.exchange
	x.Record.Provider, x.Record.Account, x.TargetModel = t.Account.Provider, t.Account.Label, t.Model
	c.reply(&recording.LocalReply{Status: http.StatusOK, Body: storage.Body{Type: jsonType, Data: countBody(c.dialect, tokens)}})
}

// countBody is the answer to a request that counts tokens.
func countBody(d plugins.Dialect, tokens int64) []byte {
	body := []byte(`{`)
	if d == plugins.InputTokens {
		body = append(body, `"object":"response.input_tokens",`...)
	}
	return append(strconv.AppendInt(append(body, `"input_tokens":`...), tokens, 10), '}')
}

// tokenCount is the lane in which a provider counts the tokens of a request of Responses or
// Messages, asked in its own format.
type tokenCount struct{ translation }

// Request implements lane.
func (t *tokenCount) Request() (*http.Request, error) {
	parsed, err := t.parsed()
	counter, ok := t.a.target.Account.API.(translate.Counter)
	switch {
	case !ok && (err == nil || t.a.call.dialect == plugins.CountTokens): // clients count parts of conversations, too
		return nil, noEndpoint(t.a.target)
	case err != nil:
		return nil, err
	}
	return t.prepare(parsed, counter.PrepareCount)
}

// Answer implements lane.
func (t *tokenCount) Answer(resp *http.Response) (routing.Outcome, *plugins.Error) {
	a := t.a
	a.x.Answer = observe.New(a.call.dialect, a.x.Record.Provider, resp.Header)
	body, err := translate.ReadAll(io.LimitReader(resp.Body, recording.MaxError), resp.ContentLength)
	if err != nil {
		return a.endBroken(plugins.Upstream("The provider broke off its answer."))
	}
	tokens, ok := a.target.Account.API.(translate.Counter).Tokens(body)
	if !ok || !plugins.ValidJSON(body) {
		return a.endBroken(plugins.Upstream("The provider answered with something that is no count of tokens."))
	}
	a.client.writeObject(countBody(a.call.dialect, tokens), jsonType, resp.Header)
	a.finish(true)
	return routing.Answered, nil
}

// mediaDepth is how deep media are looked for: in the content of a result of a tool they are
// six levels deep. Each level reads all that is below the level again.
const mediaDepth = 8

// measure returns the bytes of a value without its media, and how many media it has.
func measure(v gjson.Result, depth int) (text, media int) {
	text = len(v.Raw)
	if depth == mediaDepth {
		return text, 0
	}
	v.ForEach(func(_, child gjson.Result) bool {
		if !child.IsObject() && !child.IsArray() {
			return true
		}
		within, n := measure(child, depth+1)
		switch child.Get("source.type").Str {
		case "base64", "url", "file":
			within, n = 0, 1
		}
		switch child.Get("type").Str {
		case "input_image", "input_file":
			within, n = 0, 1
		}
		text += within - len(child.Raw)
		media += n
		return true
	})
	return text, media
}
