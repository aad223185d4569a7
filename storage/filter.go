package storage

import (
	"encoding/json"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// Filter is a node of the filter language (docs/llm_query.md, "Filters"):
// an All, a *Branch or a *Leaf. ParseFilter makes only filters that
// type-check, so whoever reads a filter needs no errors.
type Filter interface{ filter() }

// All matches everything.
type All struct{}

// Branch joins two filters.
type Branch struct {
	// Or is true for "or", false for "and".
	Or          bool
	Left, Right Filter
}

// Leaf compares one field with one value.
type Leaf struct {
	Field *Field
	// Key is the name inside a map field: of a property, a prompt input or a
	// score.
	Key string
	Op  Operator
	// Exactly one of these holds the value, by Field.Kind; Bool for IsNull.
	Text   string
	Number Decimal
	Time   Timestamp
	Bool   bool
}

func (All) filter()     {}
func (*Branch) filter() {}
func (*Leaf) filter()   {}

// Groups yields the group of each leaf, so that a query can tell what it cannot
// apply.
func Groups(f Filter) iter.Seq[Group] {
	return func(yield func(Group) bool) {
		for l := range Leaves(f) {
			if !yield(l.Field.Group) {
				return
			}
		}
	}
}

// Conditions lists the fields and operators of a filter, each once, without the values.
func Conditions(f Filter) []string {
	names := []string{}
	for l := range Leaves(f) {
		name := l.Field.Name
		if l.Field.Map {
			name = strings.TrimPrefix(name+"."+l.Key, ".")
		}
		if name += " " + l.Op.String(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// ContentParts is what the leaves of a filter compare of content, 0 for nothing.
func ContentParts(f Filter) (parts ContentPart) {
	for l := range Leaves(f) {
		parts |= l.Field.Content
	}
	return parts
}

// Operator compares a field with a value.
type Operator uint8

// The operators, as the filter language spells them.
const (
	Equals      Operator = iota // equals
	NotEquals                   // not-equals
	Like                        // like
	ILike                       // ilike
	Contains                    // contains
	NotContains                 // not-contains
	GTE                         // gte
	LTE                         // lte
	LT                          // lt
	GT                          // gt
	IsNull                      // is-null: whether the number is unknown
)

var operatorNames = [...]string{"equals", "not-equals", "like", "ilike", "contains", "not-contains", "gte", "lte", "lt", "gt", "is-null"}

// String is the operator as the filter language spells it.
func (o Operator) String() string { return operatorNames[o] }

// Kind is the type of a field; it decides the operators and the value's type.
type Kind uint8

// The kinds of fields.
const (
	Text Kind = iota
	Number
	Time
	Boolean
	ContainsText // content: only contains
	PropertyKey  // only equals: the record has that property
)

// Operators are the operators that fields of the kind take.
func (k Kind) Operators() []Operator { return kinds[k].operators }

// String names the kind as in "text fields".
func (k Kind) String() string { return kinds[k].name }

var kinds = [...]struct {
	name      string
	operators []Operator
}{
	Text:         {"text", []Operator{Equals, NotEquals, Like, ILike, Contains, NotContains}},
	Number:       {"number", []Operator{Equals, NotEquals, GTE, LTE, LT, GT, IsNull}},
	Time:         {"timestamp", []Operator{Equals, GTE, LTE, LT, GT}},
	Boolean:      {"boolean", []Operator{Equals}},
	ContainsText: {"content", []Operator{Contains}},
	PropertyKey:  {"property key", []Operator{Equals}},
}

// Group is what the leaves of a filter group speak of.
type Group string

// The groups of the filter language.
const (
	RequestResponse Group = "request_response_rmt"
	UsersView       Group = "users_view"
	SessionsView    Group = "sessions_request_response_rmt"
	RequestGroup    Group = "request"
	ResponseGroup   Group = "response"
	FeedbackGroup   Group = "feedback"
	PropertiesGroup Group = "properties"
	ValuesGroup     Group = "values"
)

var allGroups = []Group{RequestResponse, UsersView, SessionsView, RequestGroup, ResponseGroup, FeedbackGroup, PropertiesGroup, ValuesGroup}

// AppendJSON appends a filter in the form that ParseFilter reads.
func AppendJSON(b []byte, f Filter) []byte {
	switch f := f.(type) {
	case *Branch:
		operator := "and"
		if f.Or {
			operator = "or"
		}
		b = AppendJSON(append(b, `{"left":`...), f.Left)
		b = append(b, `,"operator":"`+operator+`","right":`...)
		return append(AppendJSON(b, f.Right), '}')
	case *Leaf:
		return f.appendJSON(b)
	}
	return append(b, `"all"`...)
}

func (l *Leaf) appendJSON(b []byte) []byte {
	keys := []string{string(l.Field.Group)}
	if l.Field.Name != "" {
		keys = append(keys, l.Field.Name)
	}
	if l.Field.Map {
		keys = append(keys, l.Key)
	}
	keys = append(keys, l.Op.String())
	for _, k := range keys {
		b = append(appendString(append(b, '{'), k), ':')
	}
	switch kind := l.Field.Kind; {
	case kind == Boolean || l.Op == IsNull:
		b = strconv.AppendBool(b, l.Bool)
	case kind == Number:
		b = append(b, l.Number.String()...)
	case kind == Time:
		b = appendString(b, l.Time.String())
	default:
		b = appendString(b, l.Text)
	}
	for range keys {
		b = append(b, '}')
	}
	return b
}

func appendString(b []byte, s string) []byte {
	quoted, _ := json.Marshal(s) // no string fails
	return append(b, quoted...)
}
