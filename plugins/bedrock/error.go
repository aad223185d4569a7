package bedrock

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// kinds are the statuses of Bedrock's errors by their type, in lower case and
// without "exception"
// (https://docs.aws.amazon.com/bedrock/latest/APIReference/CommonErrors.html).
var kinds = map[string]int{
	"validation":           http.StatusBadRequest,
	"unrecognizedclient":   http.StatusUnauthorized,
	"invalidsignature":     http.StatusUnauthorized,
	"expiredtoken":         http.StatusUnauthorized,
	"accessdenied":         http.StatusForbidden,
	"resourcenotfound":     http.StatusNotFound,
	"requesttoolarge":      http.StatusRequestEntityTooLarge,
	"throttling":           http.StatusTooManyRequests,
	"servicequotaexceeded": http.StatusTooManyRequests,
	"internalserver":       http.StatusInternalServerError,
	"modelerror":           http.StatusBadGateway,
	"modelstreamerror":     http.StatusBadGateway,
	"modelnotready":        http.StatusServiceUnavailable,
	"serviceunavailable":   http.StatusServiceUnavailable,
	"modeltimeout":         http.StatusGatewayTimeout,
}

// Error implements translate.Provider.
func (*Provider) Error(resp *http.Response) *plugins.Error {
	return translate.ReadError(resp, func(status int, body gjson.Result) *plugins.Error {
		switch status {
		case http.StatusRequestTimeout: // of the model, not of the client
			status = http.StatusGatewayTimeout
		case http.StatusFailedDependency:
			status = http.StatusBadGateway
		}
		return newError(status,
			cmp.Or(resp.Header.Get("X-Amzn-Errortype"), body.Get("__type").Str),
			plugins.ErrorMessage(body))
	})
}

// newError is the error of an answer. status is 0 for an error in a frame. The type may have a namespace
// before a hash, and an address after a colon.
func newError(status int, kind, message string) *plugins.Error {
	kind = kind[strings.LastIndexByte(kind, '#')+1:]
	kind, _, _ = strings.Cut(kind, ":")
	e := plugins.Refused(cmp.Or(kinds[strings.TrimSuffix(strings.ToLower(kind), "exception")], status), message)
	e.Reported = kind
	if strings.Contains(message, "model identifier is invalid") {
		e.Code = "model_not_found"
	}
	return e
}
