package mask

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
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

// Kinds are the kinds that Weir knows, in the order of their detectors.
var Kinds = []string{"key", "card", "iban", "email", "phone", "national_id"}

// detector is an index of Kinds, or the length of Kinds plus that of an own kind.
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

// kind is a kind of data.
type kind struct {
	name, label       string
	on                bool
	names             bool // it is masked in names, too
	pseudonym, refuse bool
	patterns          []*regexp.Regexp
	words             phrases
	numeric           bool // patterns or words may find something in a number of JSON
}

// numerals are the characters of a number of JSON.
const numerals = "+-.0123456789Ee"

// numeric reports whether an expression may match something that has numerals alone.
func numeric(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpNoMatch:
		return false
	case syntax.OpLiteral:
		return !slices.ContainsFunc(re.Rune, func(r rune) bool {
			return !strings.ContainsRune(numerals, r) && (re.Flags&syntax.FoldCase == 0 || unicode.ToLower(r) != 'e')
		})
	case syntax.OpCharClass:
		return strings.ContainsFunc(numerals, func(r rune) bool {
			for i := 0; i < len(re.Rune); i += 2 {
				if re.Rune[i] <= r && r <= re.Rune[i+1] {
					return true
				}
			}
			return false
		})
	case syntax.OpStar, syntax.OpQuest:
		return true
	case syntax.OpRepeat:
		return re.Min == 0 || numeric(re.Sub[0])
	case syntax.OpAlternate:
		return slices.ContainsFunc(re.Sub, numeric)
	}
	return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !numeric(sub) })
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
	for _, name := range Kinds {
		m.kinds = append(m.kinds, kind{name: name, label: strings.ToUpper(name)})
	}
	return m
}

func (m *Masker) add(r *Rule) error {
	if r == nil || len(r.Kinds) == 0 {
		return fmt.Errorf("mask: name what to mask: %s, or a name of your own with `pattern` or `words`", strings.Join(Kinds, ", "))
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
		switch known := slices.Contains(Kinds, name); {
		case own && (known || len(r.Kinds) > 1):
			return fmt.Errorf("mask %s: patterns and words need one name of their own, as in `mask patient { pattern … }`; %s are built in", name, strings.Join(Kinds, ", "))
		case !own && !known:
			return fmt.Errorf("mask %s: the kinds are %s; a kind of your own needs `pattern` or `words`", name, strings.Join(Kinds, ", "))
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
			tree, err := syntax.Parse(pattern, syntax.Perl)
			if err != nil {
				return fmt.Errorf("mask %s: pattern %s: %w", name, pattern, err)
			}
			k.patterns, k.numeric = append(k.patterns, re), k.numeric || numeric(tree)
		}
		for _, words := range r.Words {
			if err := k.words.add(words); err != nil {
				return fmt.Errorf("mask %s: %w", name, err)
			}
			k.numeric = k.numeric || strings.Trim(words, numerals+" ") == ""
		}
		m.merge(&k)
	}
	return nil
}

// merge adds a kind. If rules differ, the one that tells less wins; but what one finds in names
// the other does not make find more.
func (m *Masker) merge(k *kind) {
	i := slices.IndexFunc(m.kinds, func(other kind) bool {
		return other.name == k.name && (other.names == k.names || slices.Contains(Kinds, k.name))
	})
	if i < 0 {
		m.kinds = append(m.kinds, *k)
		return
	}
	to := &m.kinds[i]
	to.pseudonym = k.pseudonym && (to.pseudonym || !to.on)
	to.on, to.refuse, to.names = true, to.refuse || k.refuse, to.names || k.names
	to.patterns = slices.Concat(to.patterns, k.patterns)
	to.words = to.words.merge(k.words)
	to.numeric = to.numeric || k.numeric
}
