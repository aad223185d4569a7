package storage

import (
	"iter"
	"slices"

	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/transcript"
)

// Field is one field of one group. Fields are compared by pointer: there is one
// *Field for each field of a group.
type Field struct {
	Group Group
	// Name is empty where the group itself is a map (properties, values).
	Name string
	Kind Kind
	// Map is true when leaves name a key within the field (properties, scores).
	Map bool
	// Content is the part of the content that has the value, and that must be read for it;
	// 0 when the value comes from the record.
	Content ContentPart
	// Money is true for a number in dollars, which records have in billionths.
	Money bool
	// Column is the column that the field compares, nil if the field compares no column.
	Column *Column
	// About is a sentence for users, "" where the name says all.
	About string

	// At most one of these is set; for the groups of aggregates, none is set.
	text    func(*Record, *Content) string
	body    func(*Content) *Body
	list    func(*Record) []string
	entries func(*Record, *Content) map[string]string
	number  func(r *Record, key string) Value
	time    func(*Record) Timestamp
	boolean func(*Record) (value, known bool)
}

// Fields are the fields of all groups, group by group. The slice
// is the package's own; do not change it.
func Fields() []*Field { return fields }

// LookupField finds a field by its group and name, nil if there is none.
func LookupField(g Group, name string) *Field {
	return fieldsByName[fieldName{g, name}]
}

// Applies is false for the fields of users and sessions, which no single record
// has.
func (f *Field) Applies() bool {
	return f.Group != UsersView && f.Group != SessionsView
}

// Texts yields the texts which a leaf with this field and key compares; the leaf is true
// if any text matches. A plain field has one text, "" when the record lacks the field. A
// map has the value under key, and no text without the key. A list has all its texts. c
// is needed for content fields alone, and is nil when nothing was kept.
func (f *Field) Texts(r *Record, c *Content, key string) iter.Seq[string] {
	return func(yield func(string) bool) {
		switch {
		case f.text != nil:
			yield(f.text(r, orNone(c)))
		case f.body != nil:
			yield(string(new(transcript.Unescaper).SearchText(f.body(orNone(c)).Data)))
		case f.list != nil:
			slices.Values(f.list(r))(yield)
		case f.entries != nil:
			if s, ok := f.entries(r, orNone(c))[key]; ok {
				yield(s)
			}
		}
	}
}

// none is the content of records without any.
var none Content

func orNone(c *Content) *Content {
	if c == nil {
		return &none
	}
	return c
}

// Number is the value of a number field, missing if the record lacks it. key names the
// score for the field scores.
func (f *Field) Number(r *Record, key string) Value {
	if f.number == nil {
		return Value{}
	}
	return f.number(r, key)
}

// Time is the value of a timestamp field, 0 when the record lacks it.
func (f *Field) Time(r *Record) Timestamp {
	if f.time == nil {
		return 0
	}
	return f.time(r)
}

// Bool is the value of a boolean field; known is false when the record lacks it.
func (f *Field) Bool(r *Record) (value, known bool) {
	if f.boolean == nil {
		return false, false
	}
	return f.boolean(r)
}

// The fields of each group. Schema has the fields that compare a column.
var (
	fields = slices.Concat(
		in(RequestResponse,
			&Field{Name: "scores_column", About: "The compact JSON text of all scores with sorted keys, `{}` when there are none.", text: func(r *Record, _ *Content) string { return r.ScoresColumn() }},
			&Field{Name: "assets", About: "The ids of images, audio and files: any of them must match, for the negative operators all.", list: func(r *Record) []string { return r.Assets }},
			&Field{Name: "cached", About: "The answer came from the cache.", Kind: Boolean, boolean: func(r *Record) (value, known bool) { return r.Cached(), true }},
			&Field{Name: FeedbackScore, About: "The feedback that was given; a request without any matches neither.", Kind: Boolean, boolean: rating},
			&Field{Name: "request_body", Kind: ContainsText, Content: RequestPart, body: func(c *Content) *Body { return &c.Request }},
			&Field{Name: "response_body", Kind: ContainsText, Content: ResponsePart, body: func(c *Content) *Body { return &c.Response }},
			&Field{Name: "property_key", Kind: PropertyKey},
			&Field{Name: "properties", Map: true, entries: properties},
			&Field{Name: "search_properties", Map: true, entries: properties},
			&Field{Name: "scores", Kind: Number, Map: true, number: score},
		),
		in(UsersView,
			&Field{Name: "user_user_id"},
			&Field{Name: "user_active_for", Kind: Number},
			&Field{Name: "user_total_requests", Kind: Number},
			&Field{Name: "user_average_requests_per_day_active", Kind: Number},
			&Field{Name: "user_average_tokens_per_request", Kind: Number},
			&Field{Name: "user_total_completion_tokens", Kind: Number},
			&Field{Name: "user_total_prompt_tokens", Kind: Number},
			&Field{Name: "user_cost", Kind: Number, Money: true},
			&Field{Name: "user_first_active", Kind: Time},
			&Field{Name: "user_last_active", Kind: Time},
		),
		in(SessionsView,
			&Field{Name: "session_session_id"},
			&Field{Name: "session_session_name"},
			&Field{Name: "session_tag"},
			&Field{Name: "session_total_cost", Kind: Number, Money: true},
			&Field{Name: "session_total_tokens", Kind: Number},
			&Field{Name: "session_prompt_tokens", Kind: Number},
			&Field{Name: "session_completion_tokens", Kind: Number},
			&Field{Name: "session_total_requests", Kind: Number},
			&Field{Name: "session_created_at", Kind: Time},
			&Field{Name: "session_latest_request_created_at", Kind: Time},
		),
		in(ResponseGroup,
			&Field{Name: "body_completion", About: "The text of the answer.", Content: ResponsePart, text: outputText},
		),
		in(RequestGroup,
			&Field{Name: "prompt", About: "The text of the input.", Content: RequestPart, text: inputText},
		),
		in(FeedbackGroup,
			&Field{Name: "id", Kind: Number, number: feedbackID},
			&Field{Name: "created_at", Kind: Time, time: feedbackCreatedAt},
			&Field{Name: "rating", Kind: Boolean, boolean: rating},
			&Field{Name: "response_id", About: "The id of the request.", text: feedbackResponseID},
		),
		in(PropertiesGroup, &Field{Map: true, entries: properties}),
		in(ValuesGroup, &Field{Map: true, About: "The inputs of prompt templates.", Content: RequestPart, entries: func(_ *Record, c *Content) map[string]string { return c.Inputs }}),
	)

	fieldsByName = func() map[fieldName]*Field {
		m := make(map[fieldName]*Field, len(fields))
		for _, f := range fields {
			m[fieldName{f.Group, f.Name}] = f
		}
		return m
	}()
)

type fieldName struct {
	group Group
	name  string
}

// in returns the fields of a group: the fields that compare columns, and others.
func in(g Group, others ...*Field) []*Field {
	fields := slices.Concat(columnFields(g), others)
	for _, f := range fields {
		f.Group = g
	}
	return fields
}

func properties(r *Record, _ *Content) map[string]string { return r.Properties }

func rating(r *Record) (value, known bool) {
	if r.Feedback == nil {
		return false, false
	}
	return r.Feedback.Rating, true
}

func feedbackID(r *Record, _ string) Value {
	if r.Feedback == nil {
		return Value{}
	}
	return integer(r.Feedback.ID)
}

func score(r *Record, name string) Value {
	n, known := r.Score(name)
	return numeric(Amount{n, known})
}

func feedbackCreatedAt(r *Record) Timestamp {
	if r.Feedback == nil {
		return 0
	}
	return r.Feedback.CreatedAt
}

func feedbackResponseID(r *Record, _ *Content) string {
	if r.Feedback == nil {
		return ""
	}
	return r.ID.String()
}

func inputText(r *Record, c *Content) string {
	return observe.Transcript(r.Dialect).InputText(c.Request.Data)
}
func outputText(r *Record, c *Content) string {
	return observe.Transcript(r.Dialect).OutputText(c.Response.Data)
}
