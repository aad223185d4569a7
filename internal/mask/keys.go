package mask

import (
	"bytes"
	"strings"
)

// keys are what the keys of providers and services begin with, and how many letters follow at
// least. https://docs.github.com/code-security/secret-scanning/introduction/supported-secret-scanning-patterns
// lists who gives them.
var keys = []struct {
	prefix string
	least  int
}{
	{"sk-", 20}, {"gsk_", 20}, {"xai-", 20}, {"pplx-", 20}, {"nvapi-", 20}, {"hf_", 20}, {"r8_", 20}, {"fw_", 20},
	{"csk-", 20}, {"tgp_", 20}, {"ek_", 20}, {"AIza", 30}, {"ya29.", 20}, {"GOCSPX-", 20},
	{"AKIA", 16}, {"ASIA", 16}, {"ghp_", 30}, {"gho_", 30}, {"ghu_", 30}, {"ghs_", 30}, {"ghr_", 30}, {"github_pat_", 30},
	{"glpat-", 20}, {"xoxb-", 20}, {"xoxp-", 20}, {"xoxa-", 20}, {"xoxs-", 20}, {"xoxr-", 20}, {"xapp-", 20},
	{"sk_live_", 16}, {"sk_test_", 16}, {"rk_live_", 16}, {"rk_test_", 16}, {"whsec_", 20},
	{"npm_", 30}, {"pypi-", 40}, {"dop_v1_", 40}, {"SG.", 40}, {"dapi", 32}, {"shpat_", 30}, {"lin_api_", 30},
	{"eyJ", 40}, {"weir_", 20}, {pemBegin, 0},
}

// maxWithoutDigit is how far from its beginning a key has its first digit, and maxTokenHead how far
// a JSON Web Token has its first dot, in bytes. No text is read many times for keys that it lacks.
const maxWithoutDigit, maxTokenHead = 256, 2048

const pemBegin = "-----BEGIN "

// keysByLetter are the indexes of keys by their first letters.
var keysByLetter = func() (table [256][]int) {
	for i := range keys {
		first := keys[i].prefix[0]
		table[first] = append(table[first], i)
	}
	return table
}()

// key returns where the key ends that begins at an offset, 0 if none does.
func key(text []byte, at int) int {
	for _, i := range keysByLetter[text[at]] {
		k := &keys[i]
		if len(text)-at < len(k.prefix) || text[at+1] != k.prefix[1] || !bytes.HasPrefix(text[at:], []byte(k.prefix)) {
			continue
		}
		if k.prefix == pemBegin {
			return privateKey(text, at)
		}
		end, digits, dots := at+len(k.prefix), 0, 0
		for ; end < len(text); end++ {
			c := text[end]
			switch {
			case isDigit(c):
				digits++
			case c == '.' && (k.prefix == "eyJ" || k.prefix == "SG." || k.prefix == "ya29."):
				dots++
			case !isAlnum(c) && c != '-' && c != '_':
				goto read
			}
			if read := end - at; read > maxWithoutDigit && digits == 0 || read > maxTokenHead && k.prefix == "eyJ" && dots == 0 {
				goto read
			}
		}
	read:
		if k.prefix == "eyJ" && dots < 2 { // a JSON Web Token has three parts
			return 0
		}
		if end-at-len(k.prefix) >= k.least && digits > 0 {
			return end
		}
	}
	return 0
}

// privateKey returns where a private key in PEM ends.
func privateKey(text []byte, at int) int {
	line := text[at:]
	if i := bytes.IndexByte(line[len(pemBegin):], '-'); i < 0 || !strings.HasSuffix(string(line[len(pemBegin):][:i]), "PRIVATE KEY") {
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
