package clickhouse

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/weirhq/weir/storage"
)

// maxPattern bounds the letters of a text that becomes a regular expression.
const maxPattern = 500

// patternOf is the regular expression (RE2) that matches the same texts as an operator:
// like, ilike or contains. For not-contains it is the expression of contains. Other operators
// have no expression.
func patternOf(op storage.Operator, text string) (pattern string, support storage.Support) {
	operators := []storage.Operator{storage.Like, storage.ILike, storage.Contains, storage.NotContains}
	if !slices.Contains(operators, op) || utf8.RuneCountInString(text) > maxPattern || !utf8.ValidString(text) {
		return "", storage.Unsupported
	}
	var b strings.Builder
	letter := literal
	if op != storage.Like {
		letter = anyCase
	}
	if op == storage.Contains || op == storage.NotContains {
		for _, r := range text {
			b.WriteString(letter(r))
		}
		return b.String(), storage.Exact
	}
	support = storage.Exact
	b.WriteString(`\A`)
	escaped := false
	for i, r := range text {
		switch {
		case !escaped && r == '\\' && i+1 < len(text):
			escaped = true
			continue
		case !escaped && r == '%':
			b.WriteString(`\C*`)
		case !escaped && r == '_':
			// A byte that is no letter matches one _. RE2 cannot say so: it would also take
			// the bytes of a letter one by one.
			b.WriteString(`\C{1,4}`)
			support = storage.Superset
		default:
			b.WriteString(letter(r))
		}
		escaped = false
	}
	b.WriteString(`\z`)
	return b.String(), support
}

func literal(r rune) string { return fmt.Sprintf(`\x{%X}`, r) }

// anyCase is the class of the letters that are r but for their case, by Unicode's
// simple folding.
func anyCase(r rune) string {
	class := literal(r)
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		class += literal(next)
	}
	if len(class) == len(literal(r)) {
		return class
	}
	return "[" + class + "]"
}
