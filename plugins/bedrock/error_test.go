package bedrock

import (
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/plugintest"
)

func TestErrors(t *testing.T) {
	plugintest.Errors(t, new(Provider))
	for _, test := range []struct {
		status     int
		kind, body string
		want       plugins.Error
	}{
		{400, "ValidationException:http://internal.amazon.com/coral/", `{"message":"max_tokens"}`,
			plugins.Error{Status: 400, Type: "invalid_request_error", Message: "max_tokens"}},
		{400, "ValidationException", `{"message":"The provided model identifier is invalid."}`,
			plugins.Error{Status: 400, Type: "invalid_request_error", Code: "model_not_found", Message: "The provided model identifier is invalid."}},
		{400, "ValidationException", `{"message":"Input is too long for requested model."}`,
			plugins.Error{Status: 400, Type: "invalid_request_error", Code: "context_length_exceeded", Message: "Input is too long for requested model."}},
		{403, "UnrecognizedClientException", `{"message":"bad token"}`,
			plugins.Error{Status: 401, Type: "invalid_request_error", Code: "invalid_api_key", Message: "bad token"}},
		{403, "AccessDeniedException", `{"Message":"no"}`,
			plugins.Error{Status: 403, Type: "invalid_request_error", Code: "permission_denied", Message: "no"}},
		{404, "ResourceNotFoundException", `{"message":"gone"}`,
			plugins.Error{Status: 404, Type: "invalid_request_error", Code: "model_not_found", Message: "gone"}},
		{429, "", `{"__type":"com.amazon.coral.service#ThrottlingException","message":"slow"}`,
			plugins.Error{Status: 429, Type: "rate_limit_error", Code: "rate_limit_exceeded", Message: "slow"}},
		{400, "ServiceQuotaExceededException", `{"message":"quota"}`,
			plugins.Error{Status: 429, Type: "rate_limit_error", Code: "rate_limit_exceeded", Message: "quota"}},
		{408, "ModelTimeoutException", `{"message":"late"}`,
			plugins.Error{Status: 504, Type: "server_error", Code: "server_error", Message: "late"}},
		{424, "ModelStreamErrorException", `{"message":"broke"}`,
			plugins.Error{Status: 502, Type: "server_error", Code: "server_error", Message: "broke"}},
		{424, "ModelErrorException", `{"message":"broke"}`,
			plugins.Error{Status: 502, Type: "server_error", Code: "server_error", Message: "broke"}},
		{429, "ModelNotReadyException", `{"message":"cold"}`,
			plugins.Error{Status: 503, Type: "server_error", Code: "overloaded", Message: "cold"}},
		{503, "ServiceUnavailableException", `{"message":"busy"}`,
			plugins.Error{Status: 503, Type: "server_error", Code: "overloaded", Message: "busy"}},
		{500, "InternalServerException", `{"message":"oops"}`,
			plugins.Error{Status: 500, Type: "server_error", Code: "server_error", Message: "oops"}},
		{502, "", "<html>", plugins.Error{Status: 502, Type: "server_error", Code: "server_error", Message: "The provider answered with status 502."}},
		{418, "OfTheFutureException", `{"message":"?"}`, plugins.Error{Status: 418, Type: "invalid_request_error", Message: "?"}},
	} {
		r := plugintest.Response(test.status, []byte(test.body))
		r.Header.Set("X-Amzn-Errortype", test.kind)
		if got := new(Provider).Error(r); *got != test.want {
			t.Errorf("%d %s %s:\ngot  %+v\nwant %+v", test.status, test.kind, test.body, *got, test.want)
		}
	}
}
