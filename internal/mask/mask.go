// Package mask replaces personal data and secrets in what is stored by a label that names the
// kind, such as [EMAIL]. It finds what can be told by form and check digits alone, so that the
// same text always has the same result.
package mask

import (
	"bytes"
	"cmp"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/redact"
)

// Rule says which kinds of data are masked, and how.
type Rule struct {
	// Kinds are what is masked: `key`, `card`, `iban`, `email`, `phone` and `national_id`, or one name of your
	// own for what `patterns` and `words` find.
	Kinds []string `json:"kinds"`

	// As is `mask` for a label such as `[EMAIL]`, or `pseudonym` for one that is the same for
	// the same value within an organisation, such as `[EMAIL:q7w2mzkd4xa5]`. Default: `mask`.
	As string `json:"as,omitempty"`

	// OnMatch is `store` to store requests masked, or `refuse` to refuse requests that have
	// such data, before a provider gets them. Default: `store`.
	OnMatch string `json:"on_match,omitempty"`

	// Patterns are regular expressions in Go's syntax (RE2).
	Patterns []string `json:"patterns,omitempty"`

	// Words are words and phrases, in any letter case.
	Words []string `json:"words,omitempty"`
}

// The values of Rule.
const (
	AsMask    = "mask"
	Pseudonym = "pseudonym"
	Store     = "store"
	Refuse    = "refuse"
)

// builtin are the kinds that Weir knows, in the order of their detectors.
var builtin = []string{"key", "card", "iban", "email", "phone", "national_id"}

// detector is an index of builtin, or the length of builtin plus that of an own kind.
type detector int

const (
	keyKind detector = iota
	cardKind
	ibanKind
	emailKind
	phoneKind
	nationalKind

	tokens detector = -1 // no kind, but lists that repeat what has one
)

// Masker masks the kinds of data that its rules name. A nil Masker masks nothing.
type Masker struct {
	kinds []kind // those of builtin first
	key   []byte // of pseudonyms; without one, all labels are plain
}

// Logs masks the lines of the log format `llm`, which names no organisation: it has the rules of
// all of them. The app of the newest configuration sets it.
var Logs atomic.Pointer[Masker]

// kind is a kind of data.
type kind struct {
	name, label       string
	on                bool
	names             bool // it is masked in names, too
	pseudonym, refuse bool
	patterns          []*regexp.Regexp
	words             phrases
}

var ownName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)

// New returns what masks by all the rules, nil if there are none.
func New(rules []*Rule) (*Masker, error) {
	if len(rules) == 0 {
		return nil, nil
	}
	m := empty()
	for _, r := range rules {
		if err := m.add(r); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func empty() *Masker {
	m := new(Masker)
	for _, name := range builtin {
		m.kinds = append(m.kinds, kind{name: name, label: strings.ToUpper(name)})
	}
	return m
}

func (m *Masker) add(r *Rule) error {
	if len(r.Kinds) == 0 {
		return fmt.Errorf("mask: name what to mask: %s, or a name of your own with `pattern` or `words`", strings.Join(builtin, ", "))
	}
	if !slices.Contains([]string{"", AsMask, Pseudonym}, r.As) {
		return fmt.Errorf("mask %s: as %q: want %s or %s", r.Kinds[0], r.As, AsMask, Pseudonym)
	}
	if !slices.Contains([]string{"", Store, Refuse}, r.OnMatch) {
		return fmt.Errorf("mask %s: on_match %q: want %s or %s", r.Kinds[0], r.OnMatch, Store, Refuse)
	}
	own := len(r.Patterns)+len(r.Words) > 0
	for _, name := range r.Kinds {
		k := kind{name: name, label: strings.ToUpper(name), on: true, names: true, pseudonym: r.As == Pseudonym, refuse: r.OnMatch == Refuse}
		switch known := slices.Contains(builtin, name); {
		case own && (known || len(r.Kinds) > 1):
			return fmt.Errorf("mask %s: patterns and words need one name of their own, as in `mask patient { pattern … }`; %s are built in", name, strings.Join(builtin, ", "))
		case !own && !known:
			return fmt.Errorf("mask %s: the kinds are %s; a kind of your own needs `pattern` or `words`", name, strings.Join(builtin, ", "))
		case !ownName.MatchString(name):
			return fmt.Errorf("mask %q: want a name of lower-case letters, digits and _, at most 32", name)
		}
		for _, pattern := range r.Patterns {
			re, err := regexp.Compile(pattern)
			if err == nil && re.MatchString("") {
				err = fmt.Errorf("it matches the empty text")
			}
			if err != nil {
				return fmt.Errorf("mask %s: pattern %s: %w", name, pattern, err)
			}
			k.patterns = append(k.patterns, re)
		}
		for _, words := range r.Words {
			if err := k.words.add(words); err != nil {
				return fmt.Errorf("mask %s: %w", name, err)
			}
		}
		m.merge(&k)
	}
	return nil
}

// merge adds a kind. If rules differ, the one that tells less wins; but what one finds in names
// the other does not make find more.
func (m *Masker) merge(k *kind) {
	i := slices.IndexFunc(m.kinds, func(other kind) bool {
		return other.name == k.name && (other.names == k.names || slices.Contains(builtin, k.name))
	})
	if i < 0 {
		m.kinds = append(m.kinds, *k)
		return
	}
	to := &m.kinds[i]
	to.pseudonym = k.pseudonym && (to.pseudonym || !to.on)
	to.on, to.refuse, to.names = true, to.refuse || k.refuse, to.names || k.names
	to.patterns = slices.Concat(to.patterns, k.patterns)
	to.words = to.words.with(k.words)
}

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
	return &Masker{kinds: m.kinds, key: key}, nil
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

// span is a match. value is what it reads as, for a pseudonym.
type span struct {
	from, to int
	kind     detector
	number   bool // a number of JSON, whose label needs quotes
	value    string
}

// mask returns nil if nothing matches.
func (m *Masker) mask(body []byte, inJSON, name bool, counts Counts) []byte {
	f := m.find(body, inJSON, name)
	defer f.free()
	if len(f.spans) == 0 {
		return nil
	}
	f.spans = append(f.spans, f.dropped...)
	slices.SortFunc(f.spans, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
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
		masked = f.appendLabel(masked, k, &s)
		if counts != nil {
			counts[k.name]++
		}
	}
	return append(masked, body[done:]...)
}

var pseudonymText = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

func (f *finder) appendLabel(b []byte, k *kind, s *span) []byte {
	if s.number {
		b = append(b, '"')
	}
	b = append(append(b, '['), k.label...)
	if f.pseudonym(k) && f.m.key != nil {
		mac := hmac.New(sha256.New, f.m.key)
		mac.Write([]byte(k.name + "\x00" + canonical(s.kind, s.value)))
		var sum [sha256.Size]byte
		text := pseudonymText.EncodeToString(mac.Sum(sum[:0]))
		b = append(append(b, ':'), text[:12]...) // 60 bits
	}
	b = append(b, ']')
	if s.number {
		b = append(b, '"')
	}
	return b
}

// canonical is a value without the ways to write it.
func canonical(kind detector, value string) string {
	switch kind {
	case cardKind, ibanKind, phoneKind, nationalKind:
		return strings.Map(func(r rune) rune {
			switch {
			case '0' <= r && r <= '9', 'A' <= r && r <= 'Z', r == '+':
				return r
			case 'a' <= r && r <= 'z':
				return r - 'a' + 'A'
			}
			return -1
		}, value)
	case keyKind:
		return value
	}
	return strings.ToLower(value)
}

// finder finds matches, and keeps its memory between bodies.
type finder struct {
	m       *Masker
	body    []byte
	spans   []span
	dropped []span // what goes if anything matches
	base    int    // where the text that is read stands in the body
	bare    bool   // it is no text of JSON
	name    bool   // all labels are pseudonyms
	tokens  int    // up to where the text that is read is known to begin no JSON Web Token

	read, again reading
	groups      []group
	number      number
}

// reading is a text as it reads, and where each of its bytes stands.
type reading struct {
	text []byte
	at   []int // one more than text; nil if nothing was escaped
}

func (r *reading) source(i int) int {
	if r == nil || r.at == nil {
		return i
	}
	return r.at[i]
}

var finders = sync.Pool{New: func() any { return new(finder) }}

// maxKept bounds the memory that a finder keeps.
const maxKept = 1 << 20

func (f *finder) free() {
	clear(f.spans)
	f.m, f.body, f.number, f.spans, f.dropped = nil, nil, number{digits: f.number.digits[:0]}, f.spans[:0], f.dropped[:0]
	for _, r := range []*reading{&f.read, &f.again} {
		if cap(r.text) > maxKept {
			*r = reading{}
		}
	}
	finders.Put(f)
}

// masks reports whether a kind is masked in what is read.
func (f *finder) masks(kind detector) bool {
	k := &f.m.kinds[kind]
	return k.on && (k.names || !f.name)
}

func (f *finder) pseudonym(k *kind) bool { return f.name || k.pseudonym }

func (m *Masker) find(body []byte, inJSON, name bool) *finder {
	f := finders.Get().(*finder)
	f.m, f.body, f.name = m, body, name
	if !inJSON {
		f.text(body, 0, false)
		return f
	}
	for at := 0; at < len(body); {
		quote := bytes.IndexByte(body[at:], '"')
		if quote < 0 {
			quote = len(body) - at
		}
		f.numbers(body[at:at+quote], at)
		if at += quote + 1; at >= len(body) {
			break
		}
		end := redact.TextEnd(body, at)
		f.text(body[at:end], at, true)
		at = f.dropTokens(body[at:end], end+1)
	}
	return f
}

// dropTokens leaves out what has an answer's text again token by token or word by word, where no
// detector finds a value that is in several of them. at is where the member's name ends; it
// returns where to read on.
func (f *finder) dropTokens(name []byte, at int) int {
	list, ok := tokenLists[string(name)]
	if !ok {
		return at
	}
	from := at
	for from < len(f.body) && bytes.IndexByte([]byte(" \t\r\n:"), f.body[from]) >= 0 {
		from++
	}
	if from == at || from >= len(f.body) || f.body[from] != '{' && f.body[from] != '[' {
		return at
	}
	var value json.RawMessage
	if json.NewDecoder(bytes.NewReader(f.body[from:])).Decode(&value) != nil ||
		list != "" && !gjson.GetBytes(value, "0."+list).Exists() { // somebody's own list
		return at
	}
	to := from + len(value)
	f.dropped = append(f.dropped, span{from: from, to: to, kind: tokens})
	return to
}

// tokenLists are members that have lists of tokens or words, and a member of those whose name
// tells nothing.
// https://platform.openai.com/docs/api-reference/chat/object
// https://platform.openai.com/docs/api-reference/audio/verbose-json-object
// https://ai.google.dev/api/generate-content#LogprobsResult
var tokenLists = map[string]string{"logprobs": "", "logprobsResult": "", "words": "word"}

// numbers finds numbers between texts of JSON.
func (f *finder) numbers(raw []byte, base int) {
	if len(raw) < minNumber {
		return
	}
	f.bare, f.base = true, base
	f.detect(raw, nil, nil)
	f.bare = false
}

// text finds matches in a text. Texts may have texts in JSON within, such as the arguments of
// tools: what is escaped there is read, too.
func (f *finder) text(raw []byte, base int, escaped bool) {
	f.base = base
	if bytes.IndexByte(raw, '\\') < 0 {
		f.detect(raw, nil, nil)
		return
	}
	text, outer := raw, (*reading)(nil)
	if escaped {
		f.read.unescape(raw, false)
		text, outer = f.read.text, &f.read
	}
	f.detect(text, outer, nil)
	if bytes.IndexByte(text, '\\') >= 0 {
		f.again.unescape(text, true)
		f.detect(f.again.text, outer, &f.again)
	}
}

// unescape reads escapes of JSON. If nested, a run of backslashes is one, as texts within
// texts have them.
func (r *reading) unescape(raw []byte, nested bool) {
	r.text, r.at = r.text[:0], r.at[:0]
	add := func(from int, text ...byte) {
		for _, c := range text {
			r.text, r.at = append(r.text, c), append(r.at, from)
		}
	}
	for i := 0; i < len(raw); {
		plain := bytes.IndexByte(raw[i:], '\\')
		if plain < 0 {
			plain = len(raw) - i
		}
		r.text = append(r.text, raw[i:i+plain]...)
		for range plain {
			r.at = append(r.at, i)
			i++
		}
		if i == len(raw) {
			break
		}
		from := i
		for i++; nested && i < len(raw) && raw[i] == '\\'; {
			i++
		}
		if i == len(raw) {
			add(from, '\\')
			break
		}
		c := raw[i]
		i++
		switch c {
		case 'n', 'r', 'f', 'b', 't':
			add(from, '\n')
		case 'u':
			unit, ok := hexUnit(raw[i:])
			if !ok {
				add(from, '\\', 'u')
				continue
			}
			i += 4
			if 0xd800 <= unit && unit < 0xdc00 { // the other half follows
				next := i
				for next < len(raw) && raw[next] == '\\' {
					next++
				}
				if next > i && next < len(raw) && raw[next] == 'u' {
					if low, ok := hexUnit(raw[next+1:]); ok && 0xdc00 <= low && low < 0xe000 {
						unit, i = 0x10000+(unit-0xd800)<<10+(low-0xdc00), next+5
					}
				}
			}
			var b [utf8.UTFMax]byte
			add(from, b[:utf8.EncodeRune(b[:], unit)]...)
		case '"', '/', '\\':
			add(from, c)
		default: // no escape of JSON
			add(from, '\\')
			i--
		}
	}
	r.at = append(r.at, len(raw))
}

func hexUnit(raw []byte) (unit rune, ok bool) {
	if len(raw) < 4 {
		return 0, false
	}
	for _, c := range raw[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		unit = unit<<4 | rune(c)
	}
	return unit, true
}
