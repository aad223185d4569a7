// Package redact takes credentials and content out of what is stored or logged.
package redact

import (
	"net/url"
	"strings"
)

// Header tells whether a header of that canonical name carries credentials, or
// content: whatever the configured prefixes, `<prefix>-Auth` and
// `<prefix>-Prompt-Input-<Name>` do. Gateways and clouds have headers of their
// own for keys and tokens, which share the ends of their names; browsers send
// OpenAI's key in Sec-WebSocket-Protocol.
func Header(name string) bool {
	switch name {
	case "Cookie", "Set-Cookie", "Sec-Websocket-Protocol":
		return true
	}
	for _, end := range [...]string{"-Auth", "Authorization", "-Key", "-Token", "-Secret"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return strings.Contains(name, "-Prompt-Input-")
}

// URL is a URL, or the path and query of one, without its user, its fragment
// and the secrets in its query.
func URL(raw string) string {
	raw, _, _ = strings.Cut(raw, "#")
	raw, query, hasQuery := strings.Cut(raw, "?")
	if scheme, rest, ok := strings.Cut(raw, "://"); ok {
		authority, path, hasPath := strings.Cut(rest, "/")
		raw = scheme + "://" + authority[strings.LastIndexByte(authority, '@')+1:]
		if hasPath {
			raw += "/" + path
		}
	}
	if hasQuery {
		raw += "?" + Query(query)
	}
	return raw
}

// Query is a query without the values that are credentials.
func Query(query string) string {
	var b strings.Builder
	for i, pair := range strings.Split(query, "&") {
		if i > 0 {
			b.WriteByte('&')
		}
		name, _, hasValue := strings.Cut(pair, "=")
		if hasValue && isSecret(name) {
			pair = name + "="
		}
		b.WriteString(pair)
	}
	return b.String()
}

// isSecret knows the query parameters by which providers, clouds and gateways
// take credentials and signatures.
func isSecret(escaped string) bool {
	name, err := url.QueryUnescape(escaped)
	if err != nil {
		return true
	}
	name = strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))
	switch name {
	case "key", "auth", "authorization", "sig", "signature", "password", "jwt", "bearer", "credential":
		return true
	}
	if strings.HasPrefix(name, "xamz") || strings.HasPrefix(name, "xgoog") {
		return true
	}
	for _, end := range [...]string{"apikey", "accesskey", "subscriptionkey", "token", "secret"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}
