package storage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weirhq/weir/internal/nearest"
)

// FilterError says what is wrong with a filter or a sort, and where.
type FilterError struct {
	// Path leads to the place: filter.left.request_response_rmt.cost.
	Path string
	// Problem is what was found there and what was expected.
	Problem string
}

// Error is the path and the problem.
func (e *FilterError) Error() string { return e.Path + ": " + e.Problem }

// parser reads JSON token by token, so that keys keep their order, a repeated
// key is seen and an error knows its path.
type parser struct {
	raw    []byte
	tokens *json.Decoder
	path   []string
	groups []Group
	// explicit refuses an empty object as a filter.
	explicit bool
}

func newParser(root string, raw []byte) *parser {
	tokens := json.NewDecoder(bytes.NewReader(raw))
	tokens.UseNumber()
	return &parser{raw: raw, tokens: tokens, path: []string{root}}
}

// absent is true when there is nothing to read.
func (p *parser) absent() bool { return len(bytes.TrimSpace(p.raw)) == 0 }

// member reads what stands under a key.
func (p *parser) member(key string, read func() error) error {
	p.path = append(p.path, key)
	if err := read(); err != nil {
		return err
	}
	p.path = p.path[:len(p.path)-1]
	return nil
}

// object reads an object, calling member for each of its keys in order.
func (p *parser) object(member func(key string) error) error {
	t, err := p.token()
	if err != nil {
		return err
	}
	if t != json.Delim('{') {
		return p.fail("expected an object, got %s", describe(t))
	}
	key, more, err := p.key()
	if err != nil {
		return err
	}
	return p.members(key, more, member)
}

// members reads the rest of an object from a key on, or nothing if more is false. The
// callers bound the number of keys.
func (p *parser) members(key string, more bool, member func(key string) error) (err error) {
	var seen []string
	for more && err == nil {
		if slices.Contains(seen, key) {
			return p.fail("duplicate key %s", quote(key))
		}
		seen = append(seen, key)
		if err = member(key); err == nil {
			key, more, err = p.key()
		}
	}
	return err
}

// key reads the next key of an object, or its closing brace.
func (p *parser) key() (key string, more bool, err error) {
	t, err := p.token()
	if err != nil {
		return "", false, err
	}
	key, more = t.(string) // else it is the brace: the decoder lets nothing else pass
	return key, more, nil
}

func (p *parser) token() (json.Token, error) {
	t, err := p.tokens.Token()
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, p.fail("malformed JSON: unexpected end")
	case err != nil:
		return nil, p.fail("malformed JSON: %v", err)
	}
	return t, nil
}

// end checks that nothing follows, and that all was UTF-8: the decoder mends invalid
// UTF-8 in silence.
func (p *parser) end() error {
	if _, err := p.tokens.Token(); !errors.Is(err, io.EOF) {
		return p.fail("malformed JSON: something follows the value")
	}
	if !utf8.Valid(p.raw) {
		return p.fail("the text is not valid UTF-8")
	}
	return nil
}

func (p *parser) text() (string, error) {
	t, err := p.token()
	if err != nil {
		return "", err
	}
	s, ok := t.(string)
	if !ok {
		return "", p.fail("expected a string, got %s", describe(t))
	}
	return s, nil
}

func (p *parser) number() (d Decimal, err error) {
	t, err := p.token()
	if err != nil {
		return d, err
	}
	n, ok := t.(json.Number)
	if !ok {
		return d, p.fail("expected a number, got %s", describe(t))
	}
	if d, err = ParseDecimal(n.String()); err != nil {
		return d, p.fail("%v", err)
	}
	return d, nil
}

func (p *parser) boolean() (bool, error) {
	t, err := p.token()
	if err != nil {
		return false, err
	}
	b, ok := t.(bool)
	if !ok {
		return false, p.fail("expected true or false, got %s", describe(t))
	}
	return b, nil
}

func (p *parser) time() (Timestamp, error) {
	s, err := p.text()
	if err != nil {
		return 0, err
	}
	t, err := ParseTimestamp(s)
	if err != nil {
		return 0, p.fail("%v", err)
	}
	return t, nil
}

// fail is an error at the present path.
func (p *parser) fail(format string, args ...any) error {
	const maxKeys = 16 // keys from either end of the path
	var path strings.Builder
	path.WriteString(p.path[0])
	for i, key := range p.path[1:] {
		if remaining := len(p.path) - 1 - i; i >= maxKeys && remaining > maxKeys {
			if i == maxKeys {
				path.WriteString("...")
			}
			continue
		}
		path.WriteByte('.')
		if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r == '.' || r == '"' || r > '~' }) || key == "" {
			path.WriteString(quote(key))
			continue
		}
		path.WriteString(cut(key))
	}
	return &FilterError{Path: path.String(), Problem: fmt.Sprintf(format, args...)}
}

func join[T any](names []T) string {
	var b strings.Builder
	for i, n := range names {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, n)
	}
	return b.String()
}

// describe names a token that was not expected.
func describe(t json.Token) string {
	switch t := t.(type) {
	case string:
		return "the string " + quote(t)
	case json.Number:
		return "the number " + cut(t.String())
	case bool:
		return strconv.FormatBool(t)
	case json.Delim:
		if t == '{' {
			return "an object"
		}
		return "an array"
	}
	return "null"
}

func quote(s string) string { return strconv.Quote(cut(s)) }

// cut keeps errors short, whatever the caller sent.
func cut(s string) string {
	const maxLength = 80
	if len(s) <= maxLength {
		return s
	}
	return strings.ToValidUTF8(s[:maxLength], "") + "..."
}

// Unknown says that a name is not among the known names. It proposes the nearest known
// name, or lists all known names when none is near.
func Unknown[T ~string](what, name string, known []T) string {
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = string(k)
	}
	if near := nearest.Name(name, names); near != "" {
		return fmt.Sprintf("unknown %s %s (did you mean %q?)", what, quote(name), near)
	}
	return fmt.Sprintf("unknown %s %s (known are %s)", what, quote(name), strings.Join(names, ", "))
}
