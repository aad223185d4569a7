package plugins

import (
	"net/http"
	"regexp"
	"slices"
)

// QuotaSpent is OpenAI's error code for an empty account.
const QuotaSpent = "insufficient_quota"

// emptyAccountCodes are the error codes and types for an account that has spent its money, or reached its
// spending limit.
var emptyAccountCodes = []string{
	QuotaSpent,                     // OpenAI: https://platform.openai.com/docs/guides/error-codes
	"billing_hard_limit_reached",   // OpenAI, of images
	"billing_not_active",           // OpenAI
	"blocked_api_access",           // Groq: https://console.groq.com/docs/spend-limits
	"exceeded_current_quota_error", // Moonshot
	"Arrearage",                    // Alibaba
	"AllocationQuota.FreeTierOnly", // Alibaba
	"AccountOverdueError",          // Volcengine
	"1113",                         // Z.ai
}

// emptyAccountMessages finds messages that say the same. It looks only at the beginning, because a message
// may quote the request later on.
var emptyAccountMessages = regexp.MustCompile(`(?i)^(?:` +
	`your credit balance is too low` + // Anthropic
	`|billing hard limit has been reached` + // OpenAI
	`|you have reached your specified .*usage limits` + // Anthropic, of an organisation or a workspace
	`|insufficient (?:account )?(?:balance|credits)` + // DeepSeek, Z.ai, OpenRouter
	`|key limit exceeded` + // OpenRouter, of a key with a limit of its own
	`|account \S+ is suspended, possibly due to reaching the monthly spending limit` + // Fireworks, with 412
	`|your team \S+ has either used all available credits` + // xAI, with 403
	`|your newly created team doesn't have any credits` + // xAI
	`|sorry, your account balance is insufficient` + // SiliconFlow, with 403
	`|your prepayment credits are depleted` + // Gemini; its daily quotas have other errors
	`|your project has exceeded its monthly spending cap` + // Gemini
	`|this api method requires billing to be enabled` + // Vertex AI, with 403
	`|too many tokens per day` + // Bedrock
	`|model access is denied due to invalid_payment_instrument` + // Bedrock, with 403
	`|you are using a trial key, which is limited to [0-9,]+ api calls / month` + // Cohere
	`)`)

// EmptyAccount reports whether the provider refuses all calls of the account until somebody pays, or
// until the period of its spending limit ends.
func (e *Error) EmptyAccount() bool {
	return e.Status == http.StatusPaymentRequired || emptyAccountMessages.MatchString(e.Message) ||
		slices.ContainsFunc([]string{e.Code, e.Type, e.Reported}, func(code string) bool { return slices.Contains(emptyAccountCodes, code) })
}
