package anthropic

import (
	"cmp"
	"net/http"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// Error implements translate.Provider.
func (Provider) Error(resp *http.Response) *plugins.Error {
	return translate.ReadError(resp, func(status int, body gjson.Result) *plugins.Error {
		e := newError(status, body)
		if e.Status == http.StatusTooManyRequests {
			e.RetryAfter = untilReset(resp.Header)
		}
		return e
	})
}

var limits = [...]string{"Requests", "Tokens", "Input-Tokens", "Output-Tokens"}

// untilReset returns how long it takes until every exhausted limit is reset, by the
// provider's own clock; 0 if the header does not say.
func untilReset(h http.Header) time.Duration {
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	var wait time.Duration
	for _, limit := range limits {
		limit = "Anthropic-Ratelimit-" + limit
		if reset, err := time.Parse(time.RFC3339, h.Get(limit+"-Reset")); err == nil && h.Get(limit+"-Remaining") == "0" {
			wait = max(wait, reset.Sub(now))
		}
	}
	return wait
}

// newError is the error of an answer. status is 0 for an error in an event.
func newError(status int, body gjson.Result) *plugins.Error {
	v := body.Get("error")
	message := plugins.ErrorMessage(body)
	if status != plugins.StatusOverloaded { // which says more than any type
		status = cmp.Or(plugins.AnthropicStatus(v.Get("type").Str), status)
	}
	return plugins.Refused(status, message)
}
