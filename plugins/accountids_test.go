package plugins

import (
	"strings"
	"testing"
)

// What vendors name of an account in errors is masked. An error says the same apart from that, and what a
// caller has named stays. Ids stand in angle brackets here, which are no part of the errors.
func TestAccountsAreMasked(t *testing.T) {
	const id = "16f2151a-40f4-4a80-8ad0-cae00c27e8dd"
	rows := make(map[string]bool)
	for _, test := range []struct{ vendor, message string }{
		{"anthropic", "This request would exceed the rate limit for your organization (‹" + id + "›) of 40,000 input tokens per minute."},
		{"anthropic", "The workspace ‹wrkspc_01JwQvzr7rXLA5AGx3HKfFUJ› has no access."},
		{"azure", "The resource '/subscriptions/‹" + id + "›/resourceGroups/‹rg.ai_1›/providers/Microsoft.CognitiveServices' was not found at https://‹acme-eu›.openai.azure.com/openai."},
		{"azure", "The principal `x` of tenant ‹" + id + "› lacks the required data action."},
		{"bedrock", "User: arn:aws:iam::‹123456789012:user/ci› is not authorized to perform: bedrock:InvokeModel on resource: arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-v2"},
		{"bedrock", "Account ‹123456789012› is not subscribed, key ‹AKIAIOSFODNN7EXAMPLE›."},
		{"fireworks", "Model accounts/‹acme›/models/m was not found, nor accounts/fireworks/models/m. Account ‹acme› is suspended."},
		{"gemini", "Quota exceeded for consumer 'projects/‹578829824020›', service account ‹ci@acme-prod.iam.gserviceaccount.com›."},
		{"gemini", "Permission denied: Consumer 'api_key:‹AIzaSyAhTarnL1PaQn_yu_uVf0gia9wUyJx8RSI›' of project ‹acme-42› or project number ‹578829824020› or project '‹acme›' has been suspended."},
		{"groq", "Rate limit reached for model `llama` in organization `‹org_01hxq2m3n4p5q6r7s8t9v0w1x2›` on tokens per minute."},
		{"moonshotai", "Your account ‹org-0123456789abcdef0123456789abcdef›<‹ak-ewr5ya4f9fx11fzzpfyi›> request reached organization max RPM: 3."},
		{"openai", "Rate limit reached for gpt-4o in organization ‹org-AbCdEfGhIjKlMnOpQrStUvWx› on tokens per min. Project `‹proj_AbCdEfGhIjKlMnOpQrStUvWx›` of ‹user-AbCdEfGhIjKlMnOpQrStUvWx›: key ‹sk-proj-****wxyz›."},
		{"openrouter", `{"error":{"message":"No.","code":429},"user_id":"‹user_2aBcDeFgHiJkLmNoPq›"}`},
		{"vercel", "The team ‹team_AbCdEfGhIjKlMnOpQrStUvWx› has no credits."},
		{"xai", "Content violates usage guidelines. Team: ‹" + id + "›, API key ID: ‹" + id + "›, Model: grok-4, Failed check: SAFETY_CHECK_TYPE_BIO"},
		{"xai", "Too many requests for team ‹" + id + "› and model grok-4. See https://console.x.ai/team/‹9f3c1e2a›. Key ‹xai-ab***yz›."},
		{"", "The project has exceeded its limit. Your account is not active. Sorry, your account balance is insufficient. The user-supplied org-specific team settings of org_settings are wrong, said the team deals at example.azure.com."},
		{"", "No file found with the id '" + id + "', nor file-AbCdEfGhIjKlMnOpQrStUvWx at projects."},
	} {
		rows[test.vendor] = true
		var want strings.Builder
		masked := false
		for _, r := range test.message {
			switch {
			case r == '‹' || r == '›':
				masked = r == '‹'
			case masked:
				want.WriteByte('*')
			default:
				want.WriteRune(r)
			}
		}
		got := []byte(strings.NewReplacer("‹", "", "›", "").Replace(test.message))
		if MaskAccount(got); string(got) != want.String() {
			t.Errorf("%s: got\n%s\nwant\n%s", test.vendor, got, want.String())
		}
	}
	for vendor := range accountIDs() {
		if !rows[vendor] || !IsVendor(vendor) && vendor != "bedrock" {
			t.Errorf("the row of %s has no test, or no vendor", vendor)
		}
	}
}
