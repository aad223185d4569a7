package llmgateway

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/llmgateway/routing"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// mediaTokens is what an image takes at most, by Anthropic's documentation. Documents
// are counted like images: their pages are not known.
const mediaTokens = 1600

// answerEstimate answers how many tokens a request has, where its target counts none.
func (c *call) answerEstimate(t routing.Target) {
	text, media := measure(gjson.ParseBytes(c.sent))
	tokens := (text+bytesPerToken-1)/bytesPerToken + media*mediaTokens
	c.warnings = append(c.warnings, fmt.Sprintf("input_tokens: estimated, for %s counts none: a token for %d bytes of JSON, and %d for an image or document",
		t.Account.Label, bytesPerToken, mediaTokens))
	x := &c.exchange
	x.Record.Provider, x.TargetModel = t.Account.Provider, t.Model
	x.Record.Status = plugins.Known(http.StatusOK)
	body := []byte(`{"input_tokens":` + strconv.Itoa(tokens) + `}`)
	if !x.Record.ResponseOmitted {
		x.Content.Response = storage.Body{Type: jsonType, Data: body}
	}
	x.Record.ResponseBytes = int64(len(body))
	x.End(storage.Complete)
	c.warn(nil)
	c.w.Header().Set("Content-Type", jsonType)
	_, _ = c.w.Write(body) // the client is gone
}

// measure returns the bytes of a value without its media, and how many media it has.
func measure(v gjson.Result) (text, media int) {
	text = len(v.Raw)
	v.ForEach(func(_, child gjson.Result) bool {
		if !child.IsObject() && !child.IsArray() {
			return true
		}
		within, n := measure(child)
		if source := child.Get("source.type").Str; source == "base64" || source == "url" || source == "file" {
			within, n = 0, 1
		}
		text += within - len(child.Raw)
		media += n
		return true
	})
	return text, media
}
