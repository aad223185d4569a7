// Package redact removes credentials and content from what is stored or logged.
package redact

import (
	"iter"
	"slices"
	"strings"
	"unicode/utf8"
)

// Header reports whether a header of that canonical name carries credentials, or
// content: prompts travel in `<prefix>-Prompt-Input-<Name>`, and any property in
// `<prefix>-Properties`.
func Header(name string) bool {
	return Credential(name) || strings.Contains(name, "-Prompt-Input-") || strings.HasSuffix(name, "-Properties")
}

// Credential tells by its name whether a header, a parameter or a property is a
// credential. Gateways, clouds and applications have names of their own for keys
// and tokens, so any that has such a word in it is; browsers send OpenAI's key in
// Sec-WebSocket-Protocol.
func Credential(name string) bool {
	if strings.EqualFold(name, "Sec-Websocket-Protocol") {
		return true
	}
	for word := range words(name) {
		if credentials[word] || slices.ContainsFunc(credentialEnds, func(end string) bool { return strings.HasSuffix(word, end) }) {
			return true
		}
	}
	return false
}

var (
	credentials = map[string]bool{
		"key": true, "keys": true, "credentials": true, "secrets": true, "pass": true, "passcode": true,
		"sig": true, "jwt": true, "bearer": true, "cookies": true,
	}
	credentialEnds = []string{
		"apikey", "apikeys", "accesskey", "secretkey", "subscriptionkey", "token", "secret", "auth", "authorization",
		"password", "passwd", "pwd", "passphrase", "credential", "signature", "cookie",
	}
)

// words are the words of a name like X-Api-Key, api_key or apiKey, in lower case.
func words(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start, before := 0, 'A'
		for i, r := range name + "-" {
			letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
			hump := 'A' <= r && r <= 'Z' && 'a' <= before && before <= 'z'
			before = r
			if letter && !hump {
				continue
			}
			if start < i && !yield(strings.ToLower(name[start:i])) {
				return
			}
			if start = i; !letter {
				start += utf8.RuneLen(r)
			}
		}
	}
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
	if query = Query(query); hasQuery && query != "" {
		raw += "?" + query
	}
	return raw
}

// Query is a query with the values that are known to be harmless. All others are
// left out, and so is a parameter that has a name and no value, or one whose name
// is odd: there is no end to the names that credentials have.
func Query(query string) string {
	var kept []string
	for pair := range strings.SplitSeq(query, "&") {
		name, value, hasValue := strings.Cut(pair, "=")
		switch {
		case !hasValue || !plain(name):
		case parameters[strings.ToLower(name)] && plain(value):
			kept = append(kept, pair)
		default:
			kept = append(kept, name+"=")
		}
	}
	return strings.Join(kept, "&")
}

// parameters are those of providers' APIs that say how, and not what or who.
var parameters = map[string]bool{
	"after": true, "alt": true, "api-version": true, "before": true, "beta": true, "deployment": true, "include": true,
	"include[]": true, "intent": true, "limit": true, "model": true, "offset": true, "order": true, "page": true,
	"page_size": true, "pagesize": true, "per_page": true, "prettyprint": true, "purpose": true, "stream": true, "version": true,
}

// plain is true of text with nothing escaped or hidden in it.
func plain(text string) bool {
	const maxText = 64
	return len(text) <= maxText && strings.IndexFunc(text, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-._~,:[]$", r))
	}) < 0
}
