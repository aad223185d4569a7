package translate

import (
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// unwrapper takes the free-form input of a custom tool out of the JSON object
// {"input": "..."} that a provider without custom tools makes of it, while the
// object is still coming.
type unwrapper struct {
	state unwrapState
	raw   string // not yet understood: the head, an unfinished escape, or all of it
}

type unwrapState uint8

const (
	unwrapHead  unwrapState = iota // before the input's first character
	unwrapInput                    // in the input
	unwrapRest                     // after it
	unwrapWhole                    // of another shape: it is understood at its end
)

// inputHead are the tokens before the input's first character.
var inputHead = [...]string{"{", `"input"`, ":", `"`}

// push returns the input that the next piece of the object completes.
func (u *unwrapper) push(s string) string {
	s = u.raw + s
	u.raw = ""
	if u.state == unwrapHead {
		s = u.skipHead(s)
	}
	switch u.state {
	case unwrapInput:
		return u.decode(s)
	case unwrapRest:
		return ""
	}
	u.raw = s
	return ""
}

// rest returns the input that is left.
func (u *unwrapper) rest() string {
	if u.state == unwrapInput || u.state == unwrapRest {
		return ""
	}
	s := u.raw
	u.state, u.raw = unwrapRest, ""
	if !plugins.ValidJSON([]byte(s)) {
		return s
	}
	switch v := gjson.Get(s, "input"); {
	case v.Exists():
		return v.String()
	case gjson.Parse(s).Type == gjson.String:
		return gjson.Parse(s).Str
	}
	return s
}

// skipHead is what follows the head, or s as long as the head is not whole.
func (u *unwrapper) skipHead(s string) string {
	rest := s
	for _, token := range inputHead {
		rest = strings.TrimLeft(rest, " \t\r\n")
		if len(rest) < len(token) && strings.HasPrefix(token, rest) {
			return s
		}
		if !strings.HasPrefix(rest, token) {
			u.state = unwrapWhole
			return s
		}
		rest = rest[len(token):]
	}
	u.state = unwrapInput
	return rest
}

func (u *unwrapper) decode(s string) string {
	var out []byte
	for i := 0; i < len(s); {
		switch s[i] {
		case '"':
			u.state = unwrapRest
			return string(out)
		case '\\':
			r, n, _ := plugins.Unescape(s[i:])
			if n == 0 {
				u.raw = s[i:]
				return string(out)
			}
			out = utf8.AppendRune(out, r)
			i += n
		default:
			from := i
			for i < len(s) && s[i] != '"' && s[i] != '\\' {
				i++
			}
			out = append(out, s[from:i]...)
		}
	}
	return string(out)
}
