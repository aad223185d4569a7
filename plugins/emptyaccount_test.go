package plugins

import "testing"

// In whatever words a vendor says that an account is empty, Weir knows it. What a caller has written does not count.
func TestAccountsAreEmpty(t *testing.T) {
	for _, test := range []struct {
		status        int
		code, message string
	}{
		{402, "", "Insufficient Balance"},                                     // DeepSeek
		{402, "", "This request requires more credits, or fewer max_tokens."}, // OpenRouter
		{403, "", "Key limit exceeded (monthly limit). Manage it using https://openrouter.ai/settings/keys"},
		{429, "insufficient_quota", "You exceeded your current quota, please check your plan and billing details."},
		{401, "insufficient_quota", "You exceeded your current quota."}, // Perplexity
		{400, "billing_hard_limit_reached", "Billing hard limit has been reached."},
		{400, "", "Billing hard limit has been reached"},
		{429, "billing_not_active", "Your account is not active, please check your billing details on our website."},
		{400, "", "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing."},
		{400, "", "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."},
		{429, "ThrottlingException", "Too many tokens per day, please wait before trying again."},
		{403, "", "Model access is denied due to INVALID_PAYMENT_INSTRUMENT:A valid payment instrument must be provided."},
		{429, "", "Your prepayment credits are depleted."},
		{403, "", "This API method requires billing to be enabled."},
		{403, "", "Your team 16f2 has either used all available credits or reached its monthly spending limit."},
		{429, "1113", "Insufficient balance or no resource package. Please recharge."},
		{412, "", "Account acme is suspended, possibly due to reaching the monthly spending limit."},
		{403, "", "Sorry, your account balance is insufficient"},
		{429, "exceeded_current_quota_error", "Your account is not active."},
		{400, "Arrearage", "Access denied, please make sure your account is in good standing."},
		{429, "", "You are using a Trial key, which is limited to 1000 API calls / month."},
	} {
		e := Refused(test.status, test.message)
		e.Reported = test.code
		if !e.EmptyAccount() {
			t.Errorf("%d %s %s: not known", test.status, test.code, test.message)
		}
	}
	for _, test := range []struct {
		status        int
		code, message string
	}{
		{429, "rate_limit_exceeded", "Rate limit reached for requests."},
		{429, "RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan and billing details."}, // Gemini, of a minute
		{429, "ServiceQuotaExceededException", "Your request exceeds the service quota for your account."},          // Bedrock, of any quota: "You can resubmit your request later"
		{429, "ThrottlingException", "Too many tokens, please wait before trying again."},
		{403, "", "permission denied"},
		{400, "", "Unknown tool 'Your credit balance is too low'."}, // the caller's words
		{404, "", "The model `insufficient balance` does not exist."},
		{403, "", "Your input was flagged by moderation: key limit exceeded"},
	} {
		e := Refused(test.status, test.message)
		e.Reported = test.code
		if e.EmptyAccount() {
			t.Errorf("%d %s %s: taken for an empty account", test.status, test.code, test.message)
		}
	}
}
