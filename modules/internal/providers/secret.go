package providers

import (
	"bytes"
	"fmt"
)

// maxEscape is how long one escaped character of a secret is at most, in bytes.
const maxEscape = maxBackslashes + len("u0000")

// maxBackslashes is how many backslashes escape a character at most: JSON in JSON in JSON has four.
const maxBackslashes = 4

// maskSecret puts asterisks in the place of each secret in a text, also where the secret is escaped as in
// JSON, in JSON within JSON, or in an URL. It returns how many bytes at the end of the text may be the
// beginning of a secret.
func maskSecret(text, secret []byte) (begun int) {
	if !mayEscape(text, secret) {
		return maskPlain(text, secret)
	}
	for i := 0; i < len(text); i++ {
		n, complete := match(text[i:], secret)
		if complete {
			fill(text[i : i+n])
			i += n - 1
		} else if i+n == len(text) {
			return n
		}
	}
	return 0
}

// mayEscape reports whether a text has characters that are escaped and may be the secret's, or an escape
// whose end is missing.
func mayEscape(text, secret []byte) bool {
	return bytes.Contains(text, []byte(`\u00`)) || bytes.IndexByte(text, '%') >= 0 ||
		bytes.IndexByte(secret, '/') >= 0 && bytes.Contains(text, []byte(`\/`)) ||
		bytes.HasSuffix(text, []byte(`\`)) || bytes.HasSuffix(text, []byte(`\u`)) || bytes.HasSuffix(text, []byte(`\u0`))
}

// maskPlain is maskSecret for a text without escapes.
func maskPlain(text, secret []byte) (begun int) {
	for i := bytes.Index(text, secret); i >= 0; i = bytes.Index(text, secret) {
		fill(text[i : i+len(secret)])
		text = text[i+len(secret):]
	}
	text = text[max(0, len(text)-len(secret)+1):]
	for {
		i := bytes.IndexByte(text, secret[0])
		if i < 0 {
			return 0
		}
		if text = text[i:]; bytes.HasPrefix(secret, text) {
			return len(text)
		}
		text = text[1:]
	}
}

func fill(text []byte) {
	for i := range text {
		text[i] = '*'
	}
}

// match returns how many bytes a text begins with that are the secret, or its beginning.
func match(text, secret []byte) (n int, complete bool) {
	for _, c := range secret {
		if n == len(text) {
			return n, false
		}
		size, known := 1, text[n] == c
		if !known {
			size, known = matchEscape(text[n:], c)
		}
		if n += size; !known {
			return n, false
		}
	}
	return n, true
}

// matchEscape returns how many bytes a text begins with that escape a character. complete is false if they do
// not, or if the text ends before it is known: then they are the whole text.
func matchEscape(text []byte, c byte) (n int, complete bool) {
	var escaped []byte
	switch text[0] {
	case '%':
		escaped = fmt.Appendf(nil, "%%%02x", c)
	case '\\':
		for n < len(text) && n < maxBackslashes && text[n] == '\\' {
			n++
		}
		if c == '/' && n < len(text) && text[n] == c {
			return n + 1, true
		}
		escaped = fmt.Appendf(nil, "u%04x", c)
	default:
		return 0, false
	}
	known := min(len(text)-n, len(escaped))
	if !bytes.EqualFold(text[n:n+known], escaped[:known]) {
		return 0, false
	}
	return n + known, known == len(escaped)
}
