package redact

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// secrets matches what keys and tokens begin with, of Weir and of providers, who quote in errors
// what they refuse: "Incorrect API key provided: sk-proj-…".
var secrets = regexp.MustCompile(`\b(?:weir_|sk-|sk_|pk-|rk-|ek_|gsk_|xai-|pplx-|hf_|r8_|fw_|nvapi-|AIza|AKIA|ASIA|ya29\.|eyJ)[\w*.~+/=-]{6,}|\b((?i:bearer|basic) )[\w.~+/=-]{8,}`)

// redacted takes the place of what secrets matches.
const redacted = "$1[redacted]"

// Error returns the body of an error as Body does, and without the credentials that it quotes.
func Error(body []byte) []byte {
	if body = Body(body); secrets.Match(body) {
		return secrets.ReplaceAll(body, []byte(redacted))
	}
	return body
}

// Message returns the message of an error in one line, without credentials, in at most limit bytes.
func Message(text string, limit int) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	text = secrets.ReplaceAllString(text, redacted)
	if len(text) <= limit {
		return text
	}
	cut := limit - len("…")
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
