package plugins

import (
	"net/http"
	"regexp"
)

// refusedReasoningCode is OpenAI's code of an error for reasoning in a request that it cannot decrypt.
const refusedReasoningCode = "invalid_encrypted_content"

// refusedReasoning finds how vendors say that they do not accept the reasoning of an earlier turn.
var refusedReasoning = regexp.MustCompile("(?i)" +
	`encrypted content .{0,200}could not be verified` + // OpenAI, Azure, and relays that drop the code
	`|encrypted_content.? was not issued to this caller` + // opencode Zen: https://github.com/anomalyco/opencode/issues/48864
	`|invalid .?signature.? in .?thinking.? block` + // Anthropic, Bedrock, Vertex AI: https://github.com/anomalyco/opencode/issues/48637
	`|(?:corrupted|invalid) thought signature|thought signature is not valid`) // Gemini

// RefusesReasoning reports whether a provider refuses the reasoning of earlier turns in a request: another
// account, model or conversation has it.
func (e *Error) RefusesReasoning() bool {
	return e.Status == http.StatusBadRequest &&
		(e.Code == refusedReasoningCode || e.Reported == refusedReasoningCode || refusedReasoning.MatchString(e.Message))
}
