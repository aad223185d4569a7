package cohere

import (
	"net/http"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// Error implements translate.Provider.
func (Provider) Error(resp *http.Response) *plugins.Error {
	return translate.ReadError(resp, func(status int, body gjson.Result) *plugins.Error {
		e := plugins.Refused(status, plugins.ErrorMessage(body)) // https://docs.cohere.com/reference/errors
		e.Reported = plugins.ErrorType(body)
		return e
	})
}
