package storage

import "testing"

func TestErrorsOfOneCauseAreOneGroup(t *testing.T) {
	for group, messages := range map[string][]string{
		"": {""},
		"Rate limit reached for … in organization … on tokens per min: Limit …, Used …. Please try again in ….": {
			"Rate limit reached for gpt-5 in organization org-4Xk on tokens per min: Limit 30,000, Used 29900. Please try again in 9.6s.",
			"Rate limit reached for gpt-4.1-mini in organization org-7aB on tokens per min: Limit 200000, Used 200000. Please try again in 1m2s.",
		},
		"messages.….content: field required (request …)": {
			"messages.3.content: field required (request req_011CSHoEeqs5C35K2UUqR7Fy)",
			"messages.12.content: field required (request 0198a3c2-5b1e-7c3f-9f4e-1c2d3e4f5a6b)",
		},
		`Too little is left of the budget each for this call. Of the limit of $… for user "…", $… is spent.`: {
			`Too little is left of the budget each for this call. Of the limit of $100 for user "ada", $99.50 is spent.`,
			`Too little is left of the budget each for this call. Of the limit of $100 for user "bo@example.com", $100 is spent.`,
		},
		"… is not a member of the organization": {
			"ada@example.com is not a member of the organization",
			"bo.b+test@mail.example.co.uk is not a member of the organization",
		},
		"The budget team ($… of $…) is spent until …": {
			"The budget team ($500.00 of $500) is spent until 2026-12-01T00:00:00Z",
		},
	} {
		for _, message := range messages {
			if got := errorGroup(message); got != group {
				t.Errorf("%q: %q, want %q", message, got, group)
			}
		}
	}
}
