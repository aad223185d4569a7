package anthropic

import (
	"cmp"
	"net/http"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// Error implements translate.Provider.
func (Provider) Error(resp *http.Response) *plugins.Error {
	return translate.ReadError(resp, newError)
}

// newError is the error of an answer. status is 0 for an error in an event.
func newError(status int, body gjson.Result) *plugins.Error {
	v := body.Get("error")
	message := plugins.ErrorMessage(body)
	if status != plugins.StatusOverloaded { // which says more than any type
		status = cmp.Or(plugins.AnthropicStatus(v.Get("type").Str), status, plugins.BaseStatus(body))
	}
	e := plugins.Refused(status, message)
	e.Reported = plugins.ErrorType(body)
	return e
}
