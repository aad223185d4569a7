package plugins

import (
	"net/http"
	"regexp"
	"slices"
)

// emptyAccountCodes are the codes and types of errors for an account whose money, or whose limit of
// spending, is used up.
var emptyAccountCodes = []string{
	"insufficient_quota",           // OpenAI: https://platform.openai.com/docs/guides/error-codes
	"billing_hard_limit_reached",   // OpenAI, of images
	"billing_not_active",           // OpenAI
	"blocked_api_access",           // Groq: https://console.groq.com/docs/spend-limits
	"exceeded_current_quota_error", // Moonshot
	"Arrearage",                    // Alibaba
}

// emptyAccountMessages finds the beginning of a message that says so. What a request says can stand
// further behind in a message.
var emptyAccountMessages = regexp.MustCompile(`(?i)^(?:` +
	`your credit balance is too low` + // Anthropic
	`|you have reached your specified .*usage limits` + // Anthropic, of an organisation or a workspace
	`|insufficient (?:account )?(?:balance|credits)` + // DeepSeek, Z.ai, OpenRouter
	`|key limit exceeded` + // OpenRouter, of a key with a limit of its own
	`|account \S+ is suspended, possibly due to reaching the monthly spending limit` + // Fireworks, with 412
	`|your team \S+ has either used all available credits` + // xAI, with 403
	`|your newly created team doesn't have any credits` + // xAI
	`|sorry, your account balance is insufficient` + // SiliconFlow, with 403
	`|your prepayment credits are depleted` + // Gemini
	`)`)

// EmptyAccount reports whether a provider refuses all calls of an account until somebody pays, or
// until the limit of spending that the account has there begins anew.
func (e *Error) EmptyAccount() bool {
	return e.Status == http.StatusPaymentRequired || slices.Contains(emptyAccountCodes, e.Code) ||
		slices.Contains(emptyAccountCodes, e.Type) || emptyAccountMessages.MatchString(e.Message)
}
