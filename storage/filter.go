package storage

// Filter is a node of the filter language (interface.md, "Filter language"):
// an All, a *Branch or a *Leaf. ParseFilter makes none that does not
// type-check, so whoever reads one needs no errors.
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
	// Exactly one of these holds the value, by Field.Kind.
	Text   string
	Number float64
	Time   Timestamp
	Bool   bool
}

func (All) filter()     {}
func (*Branch) filter() {}
func (*Leaf) filter()   {}

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
)

// Kind is the type of a field; it decides the operators and the value's type.
type Kind uint8

// The kinds of interface.md, "Operator sets by field type".
const (
	Text Kind = iota
	Number
	Time
	Boolean
	ContainsText // content: only contains
	PropertyKey  // only equals: the record has that property
)

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

// Field is one field of one group. Fields are compared by pointer: there is one
// *Field for each row of the tables in interface.md.
type Field struct {
	Group Group
	Name  string
	Kind  Kind
	// Map is true when leaves name a key within the field (properties, scores).
	Map bool
	// Content is true when the value comes from the bodies, which costs
	// reading them.
	Content bool
}
