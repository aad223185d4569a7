package mask

import "bytes"

// keyPrefix is what keys of a service begin with, and the least number of bytes that follow.
type keyPrefix struct {
	prefix string
	least  int
}

// tokenPrefix begins a JSON Web Token, which has three parts with dots between them.
const tokenPrefix = "eyJ"

// keys are what the keys of providers and services begin with, as
// https://docs.github.com/code-security/secret-scanning/introduction/supported-secret-scanning-patterns
// lists them.
var keys = []keyPrefix{
	{"sk-proj-", 20}, {"sk-svcacct-", 20}, {"sk-admin-", 20}, {"sk-", 20}, {"gsk_", 20}, {"xai-", 20}, {"pplx-", 20}, {"nvapi-", 20}, {"hf_", 20}, {"r8_", 20}, {"fw_", 20},
	{"csk-", 20}, {"tgp_", 20}, {"ek_", 20}, {"AIza", 30}, {"ya29.", 20}, {"GOCSPX-", 20},
	{"AKIA", 16}, {"ASIA", 16}, {"ghp_", 30}, {"gho_", 30}, {"ghu_", 30}, {"ghs_", 30}, {"ghr_", 30}, {"github_pat_", 30},
	{"glpat-", 20}, {"xoxb-", 20}, {"xoxp-", 20}, {"xoxa-", 20}, {"xoxs-", 20}, {"xoxr-", 20}, {"xapp-", 20},
	{"sk_live_", 16}, {"sk_test_", 16}, {"rk_live_", 16}, {"rk_test_", 16}, {"whsec_", 20},
	{"npm_", 30}, {"pypi-", 40}, {"dop_v1_", 40}, {"SG.", 40}, {"dapi", 32}, {"shpat_", 30}, {"lin_api_", 30},
	{tokenPrefix, 40}, {"weir_", 20}, {pemBegin, 0},
}

// maxWithoutDigit is how far from its beginning a key of several parts has its first digit, in
// bytes. No text is read many times for keys that it lacks.
const maxWithoutDigit = 256

const pemBegin = "-----BEGIN "

// keysByLetter are the indexes of keys by their first letters.
var keysByLetter = func() (table [256][]int) {
	for i := range keys {
		first := keys[i].prefix[0]
		table[first] = append(table[first], i)
	}
	return table
}()

// keyAt returns the end of the key that begins at an offset, 0 if none does.
func (f *finder) keyAt(text []byte, at int) int {
	for _, i := range keysByLetter[text[at]] {
		k := &keys[i]
		if len(text)-at < len(k.prefix) || text[at+1] != k.prefix[1] || !bytes.HasPrefix(text[at:], []byte(k.prefix)) {
			continue
		}
		if k.prefix == pemBegin {
			return privateKey(text, at)
		}
		token := k.prefix == tokenPrefix
		if token && at < f.tokens { // it was read up to there
			continue
		}
		body := k.scan(text, at)
		if token {
			f.tokens = body.end
		}
		if token && body.dots < 2 {
			continue
		}
		// One part of letters alone is random if some are capitals; words with dashes are a name.
		if body.end-at-len(k.prefix) >= k.least && (body.digits > 0 || body.parts == 1 && body.capitals > 0) {
			return body.end
		}
	}
	return 0
}

// keyBody is what follows a prefix: where it ends, and what it consists of.
type keyBody struct{ end, digits, capitals, parts, dots int }

// scan reads what follows the prefix at an offset, as far as keys of the service have such bytes.
func (k *keyPrefix) scan(text []byte, at int) keyBody {
	token := k.prefix == tokenPrefix
	dotted := token || k.prefix == "SG." || k.prefix == "ya29."
	b := keyBody{end: at + len(k.prefix), parts: 1}
	for ; b.end < len(text) && (b.digits > 0 || b.parts == 1 || token || b.end-at <= maxWithoutDigit); b.end++ {
		switch c := text[b.end]; {
		case isDigit(c):
			b.digits++
		case c == '-' || c == '_':
			b.parts++
		case c == '.' && dotted:
			b.parts, b.dots = b.parts+1, b.dots+1
		case 'A' <= c && c <= 'Z':
			b.capitals++
		case !isAlnum(c):
			return b
		}
	}
	return b
}

// privateKey returns where a private key in PEM ends.
func privateKey(text []byte, at int) int {
	line := text[at:]
	if i := bytes.IndexByte(line[len(pemBegin):], '-'); i < 0 || !bytes.Contains(line[len(pemBegin):][:i], []byte("PRIVATE KEY")) { // PGP says PRIVATE KEY BLOCK
		return 0
	}
	end := bytes.Index(line, []byte("-----END "))
	if end < 0 { // it was cut
		return len(text)
	}
	end += len("-----END ")
	if i := bytes.Index(line[end:], []byte("-----")); i >= 0 {
		return at + end + i + len("-----")
	}
	return len(text)
}
