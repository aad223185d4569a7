// Package mask replaces personal data and secrets in what is stored by a label that names the
// kind, such as [EMAIL]. It finds what can be told by form and check digits alone, so that the
// same text always has the same result.
package mask

import (
	"bytes"
	"cmp"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/weirhq/weir/internal/redact"
)

// Masker masks the kinds of data that its rules name. A nil Masker masks nothing.
type Masker struct {
	kinds []kind      // those of Kinds first
	key   []byte      // of pseudonyms; without one, all labels are plain
	mac   cipher.AEAD // identifies texts whose matches are remembered; nil reads each text
}

// Logs masks the lines of the log format `llm`, which names no organisation: it has the rules of
// all of them. The app of the newest configuration sets it.
var Logs atomic.Pointer[Masker]

// OfContent returns what masks as m does, but leaves names as they are: budgets, and what people
// own, go by names, which must be the same whatever a call came through.
func (m *Masker) OfContent() *Masker {
	if m == nil {
		return nil
	}
	content := &Masker{kinds: slices.Clone(m.kinds)}
	for i := range content.kinds {
		content.kinds[i].names = false
	}
	return content
}

// Content is what masks the content of an entry, besides what is masked of its organisation: what
// came through a site, and with a key. nil is nothing.
type Content struct{ Site, Key *Masker }

// Join returns what masks all that any of the Maskers masks, nil if all are nil. It has no key.
func Join(maskers ...*Masker) *Masker {
	maskers = slices.DeleteFunc(maskers, func(m *Masker) bool { return m == nil })
	switch len(maskers) {
	case 0:
		return nil
	case 1:
		return maskers[0]
	}
	joined := empty()
	for _, m := range maskers {
		for i := range m.kinds {
			if m.kinds[i].on {
				joined.merge(&m.kinds[i])
			}
		}
	}
	return joined
}

// WithKey returns m with pseudonyms that are an organisation's own.
func (m *Masker) WithKey(secret []byte, org string) (*Masker, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, "weir pseudonyms "+org, sha256.Size)
	if err != nil {
		return nil, err
	}
	return &Masker{kinds: m.kinds, key: key, mac: newMAC()}, nil
}

// Counts are how many of each kind were masked.
type Counts map[string]int64

// Text is the counts as JSON with sorted names, "" for none.
func (c Counts) Text() string {
	if len(c) == 0 {
		return ""
	}
	text, err := json.Marshal(map[string]int64(c))
	if err != nil { // no such map does that
		return ""
	}
	return string(text)
}

// Add adds other counts.
func (c Counts) Add(other Counts) {
	for name, n := range maps.All(other) {
		c[name] += n
	}
}

// Text masks a plain text.
func (m *Masker) Text(text string, counts Counts) string { return m.text(text, false, counts) }

// Name masks a text that tells callers apart, such as the name of a user. Its labels are
// pseudonyms whatever the rules say: with plain ones, two users would share their budgets, their
// rows in reports and their stored responses.
func (m *Masker) Name(text string, counts Counts) string { return m.text(text, true, counts) }

func (m *Masker) text(text string, name bool, counts Counts) string {
	if m == nil || text == "" {
		return text
	}
	masked := m.mask([]byte(text), false, name, counts)
	if masked == nil {
		return text
	}
	return string(masked)
}

// Body masks the texts and numbers of a body in JSON, and any other body as one text. A body
// without a match is returned as it is.
func (m *Masker) Body(body []byte, counts Counts) []byte {
	if m == nil || len(body) == 0 {
		return body
	}
	text := redact.UTF8(body)
	if masked := m.mask(text, isJSON(text), false, counts); masked != nil {
		return masked
	}
	return body
}

// Refuses reports whether requests are refused for what they have.
func (m *Masker) Refuses() bool {
	return m != nil && slices.ContainsFunc(m.kinds, func(k kind) bool { return k.on && k.refuse })
}

// Refused returns the kind of the first match for which a request is refused, "" for none.
func (m *Masker) Refused(body []byte) string {
	if !m.Refuses() {
		return ""
	}
	body = redact.UTF8(body)
	f := m.find(body, isJSON(body), false)
	defer f.free()
	for _, s := range f.spans {
		if k := &m.kinds[s.kind]; k.refuse {
			return k.name
		}
	}
	return ""
}

func isJSON(body []byte) bool {
	body = bytes.TrimLeft(body, " \t\r\n\ufeff")
	return len(body) > 0 && (body[0] == '{' || body[0] == '[' || body[0] == '"')
}

// mask returns nil if nothing matches.
func (m *Masker) mask(body []byte, inJSON, name bool, counts Counts) []byte {
	f := m.find(body, inJSON, name)
	defer f.free()
	if len(f.spans) == 0 {
		return nil
	}
	f.spans = append(f.spans, f.dropped...)
	slices.Reverse(f.spans) // of readings of one value, the plainest comes first: its pseudonym is the same wherever it is
	slices.SortStableFunc(f.spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to), cmp.Compare(a.kind, b.kind))
	})
	masked := make([]byte, 0, len(body)+16)
	done := 0
	for _, s := range f.spans {
		if s.to <= done {
			continue
		}
		if s.from < done { // the label of the match that it overlaps stands for both
			done = s.to
			continue
		}
		masked = append(masked, body[done:s.from]...)
		if done = s.to; s.kind == tokens {
			masked = append(masked, "null"...)
			continue
		}
		k := &m.kinds[s.kind]
		masked = s.appendLabel(masked, k.label)
		if counts != nil {
			counts[k.name]++
		}
	}
	return append(masked, body[done:]...)
}
