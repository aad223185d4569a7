package providers

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins/openai"
)

// What a provider says of the platform's account is not for callers. What it says of their own request is.
func TestPlatformsFaultsAreKnown(t *testing.T) {
	a := &Account{API: openai.Provider{}, Platform: true}
	for _, c := range []struct {
		status int
		body   string
		want   bool
	}{
		{401, `{"error":{"message":"Your account was flagged for potential abuse. Contact us at help.openai.com","code":"account_deactivated"}}`, true},
		{401, `{"error":{"message":"The key violates our usage guidelines."}}`, true},
		{401, `{"error":{"message":"Your input was flagged."}}`, true},
		{403, `{"error":{"message":"Your access was terminated due to violation of our usage policy.","type":"access_terminated"}}`, true},
		{403, `{"error":{"message":"Violation of our content policy.","code":"account_deactivated"}}`, true},
		{403, `{"error":{"message":"This organization was flagged."}}`, true},
		{403, `{"error":{"message":"A violation of the usage policy."}}`, true},
		{403, `{"error":{"message":"Permission denied."}}`, true},
		{402, `payment`, true},
		{403, `{"error":{"message":"Your input was flagged.","code":403,"metadata":{"reasons":["sexual"],"flagged_input":"x"}}}`, false},
		{403, `{"error":{"message":"Content violates usage guidelines."}}`, false},
		{400, `{"error":{"message":"Your prompt was flagged: it violates our usage policy.","code":"invalid_prompt"}}`, false},
		{400, `{"error":{"message":"No account is named 'a'.","type":"invalid_request_error"}}`, false},
	} {
		resp := &http.Response{StatusCode: c.status, Header: make(http.Header), Body: io.NopCloser(strings.NewReader(c.body))}
		if got := a.IsPlatformAccountError(a.PeekError(resp), c.status); got != c.want {
			t.Errorf("%d %s: %v, want %v", c.status, c.body, got, c.want)
		}
		if left, err := io.ReadAll(resp.Body); string(left) != c.body || err != nil {
			t.Errorf("%d %s: %q is left, %v", c.status, c.body, left, err)
		}
	}
}
