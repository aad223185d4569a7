package gemini

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// codes are the statuses of Google's errors by their code
// (https://cloud.google.com/apis/design/errors).
var codes = map[string]int{
	"INVALID_ARGUMENT":    http.StatusBadRequest,
	"FAILED_PRECONDITION": http.StatusBadRequest,
	"OUT_OF_RANGE":        http.StatusBadRequest,
	"UNAUTHENTICATED":     http.StatusUnauthorized,
	"PERMISSION_DENIED":   http.StatusForbidden,
	"NOT_FOUND":           http.StatusNotFound,
	"RESOURCE_EXHAUSTED":  http.StatusTooManyRequests,
	"INTERNAL":            http.StatusInternalServerError,
	"UNAVAILABLE":         http.StatusServiceUnavailable,
	"DEADLINE_EXCEEDED":   http.StatusGatewayTimeout,
}

// Error implements translate.Provider.
func (generateContent) Error(resp *http.Response) *plugins.Error {
	return translate.ReadError(resp, newError)
}

// newError is the error of an answer. status is 0 for an error in a piece of a stream.
func newError(status int, body gjson.Result) *plugins.Error {
	v := body.Get("error")
	status = cmp.Or(codes[v.Get("status").Str], status, int(v.Get("code").Int()))
	var wait time.Duration
	spent := false
	for _, detail := range v.Get("details").Array() {
		switch detail.Get("@type").Str {
		case "type.googleapis.com/google.rpc.RetryInfo":
			wait, _ = time.ParseDuration(detail.Get("retryDelay").Str) // 0 if it is none
		case "type.googleapis.com/google.rpc.QuotaFailure":
			spent = spent || strings.Contains(detail.Get("violations.#.quotaId").Raw, "PerDay")
		case "type.googleapis.com/google.rpc.ErrorInfo":
			if detail.Get("reason").Str == "API_KEY_INVALID" { // with status 400
				status = http.StatusUnauthorized
			}
		}
	}
	e := plugins.Refused(status, plugins.ErrorMessage(body))
	e.Reported = plugins.ErrorType(body)
	switch {
	case spent: // whatever the retryDelay says
		e.Code, e.RetryAfter = plugins.QuotaSpent, 0
	case wait > 0:
		e.RetryAfter = wait
	}
	return e
}
