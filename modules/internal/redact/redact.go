// Package redact takes credentials and content out of what is stored or logged.
package redact

import (
	"net/url"
	"strings"
)

// Header tells whether a header of that canonical name carries credentials, or
// content: every `<prefix>-Auth` and `<prefix>-Prompt-Input-<Name>` does,
// whatever the configured prefixes.
func Header(name string) bool {
	switch name {
	case "Authorization", "Proxy-Authorization", "Cookie", "Set-Cookie",
		"X-Api-Key", "Api-Key", "X-Goog-Api-Key", "X-Amz-Security-Token":
		return true
	}
	return strings.HasSuffix(name, "-Auth") || strings.Contains(name, "-Prompt-Input-")
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
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	switch name {
	case "key", "api-key", "apikey", "access-key", "subscription-key", "token", "access-token",
		"auth", "authorization", "auth-token", "id-token", "refresh-token", "sig", "signature",
		"secret", "client-secret", "password", "jwt", "bearer", "credential":
		return true
	}
	return strings.HasPrefix(name, "x-amz-") || strings.HasPrefix(name, "x-goog-") ||
		strings.HasSuffix(name, "-api-key") || strings.HasSuffix(name, "-token")
}
