package question

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// ParseFilter reads the arguments of a command: each is a filter of the API as
// JSON, "all", or terms with blanks between them. All filters must hold, or all
// filters on one side of an "or"; parentheses join. Without arguments, everything
// matches. now is what ages are counted from.
func ParseFilter(args []string, now time.Time) (storage.Filter, error) {
	return parseFilter(storage.ParseFilter, nil, args, now)
}

// ParseExplicitFilter is ParseFilter for what chooses records to change or to erase: of arguments,
// only "all" matches everything, not {}.
func ParseExplicitFilter(args []string, now time.Time) (storage.Filter, error) {
	return parseFilter(storage.ParseExplicitFilter, nil, args, now)
}

// ParseFilterOf is ParseFilter for terms that may also name fields by these names.
func ParseFilterOf(names map[string]string, args []string, now time.Time) (storage.Filter, error) {
	return parseFilter(storage.ParseFilter, names, args, now)
}

// parseFilter reads arguments, and those in JSON by parseJSON.
func parseFilter(parseJSON func(raw []byte, groups ...storage.Group) (storage.Filter, error), names map[string]string, args []string, now time.Time) (storage.Filter, error) {
	var outer []sides // around each open parenthesis
	var s sides
	for _, arg := range args {
		if !utf8.ValidString(arg) {
			return nil, fmt.Errorf("the filter %q is not valid UTF-8", arg)
		}
		rest := strings.TrimLeft(arg, blanks)
		if rest == "" {
			return nil, errors.New("filter: an argument is blank; all matches everything")
		}
		if strings.HasPrefix(rest, "{") || strings.HasPrefix(rest, "[") {
			f, err := parseJSON([]byte(rest), storage.RequestResponse)
			if err != nil {
				return nil, err
			}
			s.all = And(s.all, f)
			continue
		}
		for ; rest != ""; rest = strings.TrimLeft(rest, blanks) {
			word, after := cutWord(rest)
			switch {
			case rest[0] == '(':
				outer, s, rest = append(outer, s), sides{}, rest[1:]
			case rest[0] == ')':
				f, err := s.filter()
				if err != nil {
					return nil, err
				}
				if len(outer) == 0 {
					return nil, errors.New("filter: a ) has no ( before it; quote values that have one")
				}
				s, outer, rest = outer[len(outer)-1], outer[:len(outer)-1], rest[1:]
				s.all = And(s.all, f)
			case strings.EqualFold(word, "or"):
				if s.all == nil {
					return nil, errLonelyOr
				}
				s, rest = sides{either: storage.Or(s.either, s.all)}, after
			default:
				t, after, err := cutTerm(rest)
				if err != nil {
					return nil, err
				}
				f, err := t.filter(names, now)
				if err != nil {
					return nil, fmt.Errorf("filter term %q: %w", t.text, err)
				}
				s.all, rest = And(s.all, f), after
			}
		}
	}
	switch {
	case len(outer) > 0:
		return nil, errors.New("filter: a ( has no ) behind it")
	case s == sides{}:
		return storage.All{}, nil
	}
	return s.filter()
}

// sides are what an "or" joins: either has the complete sides, all the present side so far.
type sides struct{ either, all storage.Filter }

func (s sides) filter() (storage.Filter, error) {
	if s.all == nil {
		return nil, errLonelyOr
	}
	return storage.Or(s.either, s.all), nil
}

var errLonelyOr = errors.New("filter: or stands between two terms, and parentheses around some, as in user=ada or (user=bob cost>1)")

const blanks = " \t\r\n"

// cutWord cuts s at its first blank or closing parenthesis.
func cutWord(s string) (word, after string) {
	if i := strings.IndexAny(s, blanks+")"); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

// And joins two filters. A nil filter is left out.
func And(a, b storage.Filter) storage.Filter {
	if a == nil {
		return b
	}
	return storage.And(a, b)
}

// operators are the operators of terms. An operator comes after the operators that begin
// with its token.
var operators = []struct {
	token string
	op    storage.Operator
}{
	{"=", storage.Equals},
	{"!=", storage.NotEquals},
	{"~", storage.Contains},
	{"!~", storage.NotContains},
	{">=", storage.GTE},
	{">", storage.GT},
	{"<=", storage.LTE},
	{"<", storage.LT},
}

// filterTerm is a field, an operator and a value. Without an operator, it is "all".
type filterTerm struct {
	text, name, operator, value string
	op                          storage.Operator
}

// cutTerm reads the first term of s, which begins with no blank. Names and
// values may be quoted, as Go's strings are. A value without quotes ends at a parenthesis.
func cutTerm(s string) (t filterTerm, after string, err error) {
	const ends = blanks + ")"
	rest := s
	for t.operator == "" {
		for _, o := range operators {
			if strings.HasPrefix(rest, o.token) {
				t.operator, t.op = o.token, o.op
				break
			}
		}
		switch {
		case t.operator != "":
			rest = rest[len(t.operator):]
		case rest == "" || strings.ContainsRune(ends, rune(rest[0])):
			if t.name == "all" {
				return t, rest, nil
			}
			return t, "", fmt.Errorf(`filter term %q: expected <field><operator><value>, as in model=gpt-4o; a value with blanks is quoted, as in 'user="Ada Lovelace"'`, s[:len(s)-len(rest)])
		case rest[0] == '"':
			name, after, err := cutQuoted(rest)
			if err != nil {
				return t, "", err
			}
			t.name, rest = t.name+name, after
		default:
			t.name, rest = t.name+rest[:1], rest[1:]
		}
	}
	if strings.HasPrefix(rest, `"`) {
		if t.value, rest, err = cutQuoted(rest); err != nil {
			return t, "", err
		}
		if rest != "" && !strings.ContainsRune(ends, rune(rest[0])) {
			return t, "", fmt.Errorf("filter term %q: a blank must follow the quoted value", s)
		}
	} else {
		end := strings.IndexAny(rest, ends)
		if end < 0 {
			end = len(rest)
		}
		t.value, rest = rest[:end], rest[end:]
	}
	t.text = s[:len(s)-len(rest)]
	return t, rest, nil
}

func cutQuoted(s string) (text, after string, err error) {
	quoted, err := strconv.QuotedPrefix(s)
	if err == nil {
		text, err = strconv.Unquote(quoted)
	}
	if err != nil || !utf8.ValidString(text) {
		return "", "", fmt.Errorf(`filter: no quoted text begins at %s; it ends with ", and \" and \\ stand for " and \`, s)
	}
	return text, s[len(quoted):], nil
}

func (t *filterTerm) filter(names map[string]string, now time.Time) (storage.Filter, error) {
	switch {
	case t.operator == "":
		return storage.All{}, nil
	case t.name == "since" || t.name == "until":
		return t.bound(now)
	}
	l := &storage.Leaf{Op: t.op}
	if l.Field, l.Key = FilterField(cmp.Or(names[t.name], t.name)); l.Field == nil {
		return nil, errors.New(storage.Unknown("field", t.name, knownFields()))
	}
	if t.value == "null" && (t.op == storage.Equals || t.op == storage.NotEquals) {
		switch {
		case takes(l.Field.Kind, storage.IsNull):
			l.Op, l.Bool = storage.IsNull, t.op == storage.Equals
			return l, nil
		case l.Field.Kind == storage.Text && !strings.HasSuffix(t.text, `"`):
			return nil, fmt.Errorf(`%s is a text, and null is for numbers; write %s%s"" for an empty text, or %[2]s%[3]s"null" for the word`, t.name, t.name, t.operator)
		}
	}
	if !takes(l.Field.Kind, t.op) {
		return nil, fmt.Errorf("%s fields take %s, not %s", l.Field.Kind, tokens(l.Field.Kind), t.operator)
	}
	var err error
	switch l.Field.Kind {
	case storage.Number:
		if l.Number, err = storage.ParseDecimal(t.value); err != nil {
			return nil, fmt.Errorf("%q is no number", t.value)
		}
	case storage.Time:
		if l.Time, err = storage.ParseTimestamp(t.value); err != nil {
			return nil, err
		}
	case storage.Boolean:
		if t.value != "true" && t.value != "false" {
			return nil, fmt.Errorf("expected true or false, not %q", t.value)
		}
		l.Bool = t.value == "true"
	default:
		l.Text = t.value
		if equality := t.op == storage.Equals || t.op == storage.NotEquals; equality && l.Field.Name == "request_id" && uuid.Validate(t.value) != nil {
			return nil, fmt.Errorf("%q is no id of a request, which is a UUID", t.value)
		}
	}
	return l, nil
}

// bound reads since and until. since includes its time and until does not, so
// that windows can follow each other.
func (t *filterTerm) bound(now time.Time) (storage.Filter, error) {
	if t.op != storage.Equals {
		return nil, fmt.Errorf("%s takes =, not %s", t.name, t.operator)
	}
	l := &storage.Leaf{Field: Field("request_created_at"), Op: storage.GTE}
	if t.name == "until" {
		l.Op = storage.LT
	}
	var err error
	l.Time, err = ParseMoment(t.value, now)
	return l, err
}

// ParseMoment reads a time, or an age.
func ParseMoment(text string, now time.Time) (storage.Timestamp, error) {
	if age, err := caddy.ParseDuration(text); err == nil && age >= 0 {
		return storage.Millis(now.Add(-age)), nil
	}
	at, err := storage.ParseTimestamp(text)
	if err != nil {
		return 0, fmt.Errorf("%w, and no age such as 90m or 7d", err)
	}
	return at, nil
}

func takes(k storage.Kind, op storage.Operator) bool {
	return slices.Contains(k.Operators(), op)
}

// tokens lists the operators of a kind of fields.
func tokens(k storage.Kind) string {
	var list []string
	for _, o := range operators {
		if takes(k, o.op) {
			list = append(list, o.token)
		}
	}
	return strings.Join(list, " ")
}

// knownFields are the fields that a term may name.
func knownFields() []string {
	names := slices.AppendSeq([]string{"property.<name>", "score.<name>", "since", "until"}, maps.Keys(Aliases))
	for _, f := range storage.Fields() {
		if f.Group == storage.RequestResponse && !f.Map {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return names
}
