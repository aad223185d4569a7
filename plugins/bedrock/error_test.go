package bedrock

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/plugintest"
)

func TestErrors(t *testing.T) {
	plugintest.Errors(t, new(Provider))
	for _, test := range []struct {
		status                  int
		kind, body              string
		wantStatus              int
		wantType, code, message string
	}{
		{400, "ValidationException:http://internal.amazon.com/coral/", `{"message":"max_tokens"}`, 400, "invalid_request_error", "", "max_tokens"},
		{400, "ValidationException", `{"message":"The provided model identifier is invalid."}`, 400, "invalid_request_error", "model_not_found", "The provided model identifier is invalid."},
		{400, "ValidationException", `{"message":"Input is too long for requested model."}`, 400, "invalid_request_error", "context_length_exceeded", "Input is too long for requested model."},
		{403, "UnrecognizedClientException", `{"message":"bad token"}`, 401, "invalid_request_error", "invalid_api_key", "bad token"},
		{403, "AccessDeniedException", `{"Message":"no"}`, 403, "invalid_request_error", "permission_denied", "no"},
		{404, "ResourceNotFoundException", `{"message":"gone"}`, 404, "invalid_request_error", "model_not_found", "gone"},
		{429, "", `{"__type":"com.amazon.coral.service#ThrottlingException","message":"slow"}`, 429, "rate_limit_error", "rate_limit_exceeded", "slow"},
		{400, "ServiceQuotaExceededException", `{"message":"quota"}`, 429, "rate_limit_error", "rate_limit_exceeded", "quota"},
		{408, "ModelTimeoutException", `{"message":"late"}`, 504, "server_error", "server_error", "late"},
		{424, "ModelStreamErrorException", `{"message":"broke"}`, 502, "server_error", "server_error", "broke"},
		{424, "ModelErrorException", `{"message":"broke"}`, 502, "server_error", "server_error", "broke"},
		{429, "ModelNotReadyException", `{"message":"cold"}`, 503, "server_error", "overloaded", "cold"},
		{503, "ServiceUnavailableException", `{"message":"busy"}`, 503, "server_error", "overloaded", "busy"},
		{500, "InternalServerException", `{"message":"oops"}`, 500, "server_error", "server_error", "oops"},
		{502, "", "<html>", 502, "server_error", "server_error", "The provider answered with status 502."},
		{418, "OfTheFutureException", `{"message":"?"}`, 418, "invalid_request_error", "", "?"},
	} {
		r := plugintest.Response(test.status, test.body)
		r.Header.Set("X-Amzn-Errortype", test.kind)
		want := plugins.Error{Status: test.wantStatus, Type: test.wantType, Code: test.code, Message: test.message}
		want.Reported, _, _ = strings.Cut(test.kind, ":")
		if test.kind == "" && test.status == 429 {
			want.Reported = "ThrottlingException"
		}
		if got := new(Provider).Error(r); *got != want {
			t.Errorf("%d %s %s:\ngot  %+v\nwant %+v", test.status, test.kind, test.body, *got, want)
		}
	}
}
