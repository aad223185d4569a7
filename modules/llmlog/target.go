package llmlog

import (
	"net/url"
	"strings"
)

// targetURL is where a request went: the upstream that reverse_proxy chose,
// without one the path alone. Caddy tells no scheme, so it is https on port 443
// and http on any other.
func targetURL(hostport string, u *url.URL) string {
	target := u.EscapedPath()
	if u.RawQuery != "" {
		target += "?" + withoutSecretValues(u.RawQuery)
	}
	if hostport == "" {
		return target
	}
	if host, ok := strings.CutSuffix(hostport, ":443"); ok {
		return "https://" + host + target
	}
	return "http://" + strings.TrimSuffix(hostport, ":80") + target
}

// withoutSecrets is a URL without its user, its fragment and the secrets in its
// query.
func withoutSecrets(raw string) string {
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
		raw += "?" + withoutSecretValues(query)
	}
	return raw
}

// withoutSecretValues empties the values of a query that are credentials.
func withoutSecretValues(query string) string {
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
