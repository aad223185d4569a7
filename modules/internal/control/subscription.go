package control

import (
	"encoding/json"
	"net/http"
	"strings"
)

// IsSubscription reports whether a request is made on a subscription, and not with a key:
// Claude Code then sends an OAuth token of Anthropic's, and Codex the account of ChatGPT.
func IsSubscription(header http.Header) bool {
	return header.Get("Chatgpt-Account-Id") != "" || strings.HasPrefix(Bearer(header.Get("Authorization")), "sk-ant-oat")
}

// rateLimits are how the names of the headers begin in which providers tell what is left
// of a subscription.
var rateLimits = []string{"Anthropic-Ratelimit-", "X-Codex-Primary-", "X-Codex-Secondary-", "X-Codex-Credits-", "X-Ratelimit-"}

// Bounds of the headers that are kept, of which Anthropic sends 20.
const (
	maxRateLimits     = 40
	maxRateLimitValue = 128 // bytes
)

// RateLimits returns a JSON object of what a provider's header says is left of a
// subscription, "" for nothing.
func RateLimits(header http.Header) string {
	limits := make(map[string]string)
	for name, values := range header {
		for _, prefix := range rateLimits {
			if strings.HasPrefix(name, prefix) && len(name) <= MaxName && len(values[0]) <= maxRateLimitValue && len(limits) < maxRateLimits {
				limits[strings.ToLower(name)] = values[0]
			}
		}
	}
	if len(limits) == 0 {
		return ""
	}
	text, _ := json.Marshal(limits) // strings always marshal
	return string(text)
}
