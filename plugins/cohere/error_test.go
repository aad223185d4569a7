package cohere

import (
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/plugintest"
)

func TestErrors(t *testing.T) {
	plugintest.Errors(t, Provider{})
	for _, test := range []struct {
		status  int
		message string
		want    plugins.Error
	}{
		{400, "invalid request", plugins.Error{Type: "invalid_request_error"}},
		{400, "too many tokens: 9 > 8", plugins.Error{Type: "invalid_request_error", Code: "context_length_exceeded"}},
		{401, "invalid api token", plugins.Error{Type: "invalid_request_error", Code: "invalid_api_key"}},
		{402, "pay", plugins.Error{Type: "insufficient_quota", Code: "insufficient_quota"}},
		{403, "no", plugins.Error{Type: "invalid_request_error", Code: "permission_denied"}},
		{404, "model 'x' not found", plugins.Error{Type: "invalid_request_error", Code: "model_not_found"}},
		{422, "bad field", plugins.Error{Type: "invalid_request_error"}},
		{429, "slow down", plugins.Error{Type: "rate_limit_error", Code: "rate_limit_exceeded"}},
		{498, "blocked", plugins.Error{Type: "invalid_request_error"}},
		{503, "later", plugins.Error{Type: "server_error", Code: "overloaded"}},
	} {
		test.want.Status, test.want.Message = test.status, test.message
		if got := (Provider{}).Error(plugintest.Response(test.status, `{"id":"1","message":"`+test.message+`"}`)); *got != test.want {
			t.Errorf("%d:\ngot  %+v\nwant %+v", test.status, *got, test.want)
		}
	}
}
