package plugins

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// Text returns the text of a JSON string. A stream may split a character such as an emoji: one delta ends
// with the high surrogate, and the next one begins with the low surrogate. gjson makes U+FFFD of
// each. Text keeps a lone surrogate in three bytes (WTF-8, https://simonsapin.github.io/wtf-8/), and
// [JoinSurrogates] makes the character of the two.
func Text(v gjson.Result) string {
	if !strings.ContainsRune(v.Str, utf8.RuneError) {
		return v.Str
	}
	var b []byte
	for raw := v.Raw[1 : len(v.Raw)-1]; raw != ""; {
		if raw[0] != '\\' {
			b, raw = append(b, raw[0]), raw[1:]
			continue
		}
		r, n, valid := Unescape(raw)
		if valid {
			b = utf8.AppendRune(b, r)
		} else if r, n = codeUnit(raw); utf16.IsSurrogate(r) {
			b = append(b, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0xBF, 0x80|byte(r)&0xBF)
		}
		raw = raw[max(n, 1):]
	}
	return string(b)
}

// surrogateLength is the length of a surrogate in WTF-8, in bytes.
const surrogateLength = 3

// leadingSurrogate returns the surrogate in WTF-8 that s begins with, or 0 if there is none.
func leadingSurrogate(s string) rune {
	if len(s) < surrogateLength || s[0] != 0xED || s[1] < 0xA0 {
		return 0
	}
	return 0xD000 | rune(s[1]&0x3F)<<6 | rune(s[2]&0x3F)
}

// JoinSurrogates replaces each pair of surrogates in s by its character, and a lone one by U+FFFD. A high
// surrogate at the end of s is returned as waiting: put it before the next text.
func JoinSurrogates(s string) (text, waiting string) {
	var b []byte // nil as long as there is no surrogate
	from := 0
	for i := 0; ; {
		next := strings.IndexByte(s[i:], 0xED)
		if next < 0 {
			break
		}
		i += next
		high := leadingSurrogate(s[i:])
		if high == 0 {
			i++
			continue
		}
		b = append(b, s[from:i]...)
		i += surrogateLength
		r := utf16.DecodeRune(high, leadingSurrogate(s[i:]))
		switch {
		case r != utf8.RuneError:
			i += surrogateLength
		case i == len(s) && high < 0xDC00:
			return string(b), s[i-surrogateLength:]
		}
		b, from = utf8.AppendRune(b, r), i
	}
	if b == nil {
		return s, ""
	}
	return string(append(b, s[from:]...)), ""
}

// JoinLastSurrogates is JoinSurrogates for the last text of a stream: no low surrogate follows.
func JoinLastSurrogates(s string) string {
	text, waiting := JoinSurrogates(s)
	if waiting != "" {
		text += string(utf8.RuneError)
	}
	return text
}
