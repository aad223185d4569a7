package storage

import (
	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
)

// Column is one value of a record as databases keep it. The fields of filters and
// the sort keys that stand for a column are made of it.
type Column struct {
	// Name is that of the column in a database.
	Name string
	Type ColumnType
	// Names is what the text of the column names, "" if its texts do not repeat.
	// Columns of the same kind of names, such as "model", share their texts.
	Names string
	// Required columns have their zero value in place of none.
	Required bool

	// get is the value as an int64, a string, true or bytes, nil for its zero value,
	// and set is the way back, in which a flag is an int64. What is not of the column's
	// type panics.
	get func(*Record) any
	set func(*Record, any)
	// At most one of these is set, and value where there is a sort key.
	text   func(*Record) string
	number func(*Record) (float64, bool)
	time   func(*Record) Timestamp
	flag   func(*Record) bool
	value  func(*Record) Value

	fields []fieldName
	sort   SortKey
}

// ColumnType is what a column holds.
type ColumnType uint8

const (
	// TextColumn is text, "" for none.
	TextColumn ColumnType = iota
	// IntegerColumn is a whole number, which may be unknown.
	IntegerColumn
	// TimeColumn is a Timestamp, 0 for none.
	TimeColumn
	// FlagColumn is true or false.
	FlagColumn
	// IDColumn is a UUID, the zero UUID for none.
	IDColumn
	// EndStateColumn is an EndState.
	EndStateColumn
)

// Get is the record's value as a database takes it: an int64, a string, true or
// bytes; nil where it is zero or unknown.
func (c *Column) Get(r *Record) any { return c.get(r) }

// Set sets the record's value to what a database answers: what Get answered, or 1 or
// 0 for a flag. It panics when v is of another type.
func (c *Column) Set(r *Record, v any) { c.set(r, v) }

// Text is the value of a column of names.
func (c *Column) Text(r *Record) string { return c.text(r) }

// Columns are what filters, sorts and groups compare of records, but for what is no
// single value: properties, scores, feedback, assets and content.
var Columns = []*Column{
	idColumn("request_id", func(r *Record) *uuid.UUID { return &r.ID }).required().field(RequestResponse, "request_id").field(RequestGroup, "id"),
	timeColumn("created_at", func(r *Record) *Timestamp { return &r.CreatedAt }).
		field(RequestResponse, "request_created_at").field(RequestGroup, "created_at").sortKey(SortCreatedAt),
	names("org", "org", func(r *Record) *string { return &r.Org }).field(RequestResponse, "organization_id").field(RequestGroup, "org_id"),
	names("provider", "provider", func(r *Record) *string { return &r.Provider }).field(RequestResponse, "provider"),
	names("model", "model", func(r *Record) *string { return &r.Model }).field(RequestResponse, "model"),
	quantityColumn("status", func(r *Record) *plugins.Count { return &r.Status }).field(RequestResponse, "status").field(ResponseGroup, "status"),
	quantityColumn("latency", func(r *Record) *plugins.Duration { return &r.Latency }).field(RequestResponse, "latency").sortKey(SortLatency),
	quantityColumn("ttft", func(r *Record) *plugins.Duration { return &r.TimeToFirstToken }).
		field(RequestResponse, "time_to_first_token").sortKey(SortTimeToFirstToken),
	quantityColumn("cost", func(r *Record) *plugins.Cost { return &r.Cost }).field(RequestResponse, "cost").sortKey(SortCost),
	quantityColumn("input", func(r *Record) *plugins.Count { return &r.Usage.Input }).field(RequestResponse, "prompt_tokens").sortKey(SortPromptTokens),
	quantityColumn("output", func(r *Record) *plugins.Count { return &r.Usage.Output }).
		field(RequestResponse, "completion_tokens").field(ResponseGroup, "body_tokens").sortKey(SortCompletionTokens),
	quantityColumn("cache_read", func(r *Record) *plugins.Count { return &r.Usage.CacheRead }).field(RequestResponse, "prompt_cache_read_tokens"),
	quantityColumn("cache_write", func(r *Record) *plugins.Count { return &r.Usage.CacheWrite }).field(RequestResponse, "prompt_cache_write_tokens"),
	quantityColumn("reasoning", func(r *Record) *plugins.Count { return &r.Usage.Reasoning }),
	quantityColumn("cache_savings", func(r *Record) *plugins.Cost { return &r.CacheSavings }).
		field(RequestResponse, "cache_savings"),
	names("cache_miss", "cache_miss", func(r *Record) *string { return &r.CacheMiss }).field(RequestResponse, "cache_miss_reason"),
	quantityColumn("cache_missed", func(r *Record) *plugins.Count { return &r.CacheMissed }).field(RequestResponse, "cache_missed_tokens"),
	quantityColumn("cache_loss", func(r *Record) *plugins.Cost { return &r.CacheLoss }).field(RequestResponse, "cache_loss").sortKey(SortCacheLoss),
	quantityColumn("turn", func(r *Record) *plugins.Count { return &r.Turn }).field(RequestResponse, "turn"),
	idColumn("parent", func(r *Record) *uuid.UUID { return &r.ParentID }).field(RequestResponse, "parent_request_id"),
	idColumn("root", func(r *Record) *uuid.UUID { return &r.RootID }).repeated("root").field(RequestResponse, "root_request_id"),
	names("user", "user", func(r *Record) *string { return &r.UserID }).
		field(RequestResponse, "user_id").field(RequestGroup, "user_id").sortKey(SortUserID),
	names("session", "session", func(r *Record) *string { return &r.SessionID }).field(RequestResponse, "session_id"),
	names("session_name", "session_name", func(r *Record) *string { return &r.SessionName }),
	timeColumn("responded_at", func(r *Record) *Timestamp { return &r.RespondedAt }).field(RequestResponse, "response_created_at"),
	names("request_model", "model", func(r *Record) *string { return &r.RequestModel }).field(RequestResponse, "request_model").field(RequestGroup, "model"),
	names("response_model", "model", func(r *Record) *string { return &r.ResponseModel }).
		field(ResponseGroup, "body_model").field(ResponseGroup, "model").sortKey(SortBodyModel),
	names("model_override", "model", func(r *Record) *string { return &r.ModelOverride }).field(RequestGroup, "modelOverride"),
	names("country", "country", func(r *Record) *string { return &r.CountryCode }).field(RequestResponse, "country_code").field(RequestGroup, "country_code"),
	names("path", "path", func(r *Record) *string { return &r.Path }).field(RequestResponse, "request_path").field(RequestGroup, "path"),
	names("target_url", "target_url", func(r *Record) *string { return &r.TargetURL }).field(RequestResponse, "target_url"),
	names("auth_hash", "auth_hash", func(r *Record) *string { return &r.AuthHash }).field(RequestGroup, "auth_hash"),
	names("prompt", "prompt", func(r *Record) *string { return &r.PromptID }).field(RequestResponse, "prompt_id").field(RequestGroup, "prompt_id"),
	names("prompt_version", "prompt_version", func(r *Record) *string { return &r.PromptVersion }).field(RequestResponse, "prompt_version"),
	names("node", "node", func(r *Record) *string { return &r.NodeID }).field(RequestResponse, "node_id").field(RequestGroup, "node_id"),
	names("job", "job", func(r *Record) *string { return &r.JobID }).field(RequestResponse, "job_id"),
	names("experiment", "experiment", func(r *Record) *string { return &r.ExperimentID }),
	names("referrer", "referrer", func(r *Record) *string { return &r.Referrer }).field(RequestResponse, "request_referrer"),
	names("finish", "finish", func(r *Record) *string { return &r.Finish }).field(RequestResponse, "finish_reason"),
	names("error_type", "error_type", func(r *Record) *string { return &r.ErrorType }).field(RequestResponse, "error_type"),
	endStateColumn().field(RequestResponse, "end_state"),
	flagColumn("stream", func(r *Record) *bool { return &r.Stream }).field(RequestResponse, "stream"),
	flagColumn("threat", func(r *Record) *bool { return &r.Threat }).field(RequestResponse, "threat"),
	flagColumn("passthrough", func(r *Record) *bool { return &r.PassthroughBilling }).field(RequestResponse, "is_passthrough_billing"),
	flagColumn("subscription", func(r *Record) *bool { return &r.Subscription }).field(RequestResponse, "is_subscription"),
	flagColumn("cache_enabled", func(r *Record) *bool { return &r.CacheEnabled }).field(RequestResponse, "cache_enabled"),
	idColumn("cache_reference", func(r *Record) *uuid.UUID { return &r.CacheReferenceID }).field(RequestResponse, "cache_reference_id"),
	idColumn("attempt_of", func(r *Record) *uuid.UUID { return &r.AttemptOf }).field(RequestResponse, "attempt_of"),
}

// DetailColumns are the columns that answers alone show.
var DetailColumns = []*Column{
	integerColumn("content_segment", func(r *Record) *uint64 { return &r.Content.Segment }),
	integerColumn("content_ordinal", func(r *Record) *uint32 { return &r.Content.Ordinal }),
	textColumn("dialect", func(r *Record) *plugins.Dialect { return &r.Dialect }),
	integerColumn("attempt", func(r *Record) *int { return &r.Attempt }).required(),
	textColumn("response_id", func(r *Record) *string { return &r.ResponseID }),
	textColumn("service_tier", func(r *Record) *string { return &r.ServiceTier }),
	textColumn("inference_geo", func(r *Record) *string { return &r.InferenceGeo }),
	textColumn("cache_miss_at", func(r *Record) *string { return &r.CacheMissAt }),
	textColumn("price_version", func(r *Record) *string { return &r.PriceVersion }),
	textColumn("session_path", func(r *Record) *string { return &r.SessionPath }),
	textColumn("trace_id", func(r *Record) *string { return &r.TraceID }),
	textColumn("span_id", func(r *Record) *string { return &r.SpanID }),
	integerColumn("request_bytes", func(r *Record) *int64 { return &r.RequestBytes }).required(),
	integerColumn("response_bytes", func(r *Record) *int64 { return &r.ResponseBytes }).required(),
	flagColumn("request_omitted", func(r *Record) *bool { return &r.RequestOmitted }),
	flagColumn("response_omitted", func(r *Record) *bool { return &r.ResponseOmitted }),
	flagColumn("request_truncated", func(r *Record) *bool { return &r.RequestTruncated }),
	flagColumn("response_truncated", func(r *Record) *bool { return &r.ResponseTruncated }),
	quantityColumn("cache_write_1h", func(r *Record) *plugins.Count { return &r.Usage.CacheWrite1h }),
	quantityColumn("input_audio", func(r *Record) *plugins.Count { return &r.Usage.InputAudio }),
	quantityColumn("cache_read_audio", func(r *Record) *plugins.Count { return &r.Usage.CacheReadAudio }),
	quantityColumn("input_image", func(r *Record) *plugins.Count { return &r.Usage.InputImage }),
	quantityColumn("output_audio", func(r *Record) *plugins.Count { return &r.Usage.OutputAudio }),
	quantityColumn("output_image", func(r *Record) *plugins.Count { return &r.Usage.OutputImage }),
	quantityColumn("billed_input", func(r *Record) *plugins.Count { return &r.Usage.BilledInput }),
	quantityColumn("billed_output", func(r *Record) *plugins.Count { return &r.Usage.BilledOutput }),
	quantityColumn("web_searches", func(r *Record) *plugins.Count { return &r.Usage.WebSearches }),
	quantityColumn("search_units", func(r *Record) *plugins.Count { return &r.Usage.SearchUnits }),
	quantityColumn("images", func(r *Record) *plugins.Count { return &r.Usage.Images }),
	quantityColumn("pages", func(r *Record) *plugins.Count { return &r.Usage.Pages }),
	quantityColumn("audio_duration", func(r *Record) *plugins.Duration { return &r.Usage.AudioDuration }),
	quantityColumn("reported_cost", func(r *Record) *plugins.Cost { return &r.Usage.ReportedCost }),
	quantityColumn("list_cost", func(r *Record) *plugins.Cost { return &r.ListCost }),
	textColumn("rate_limits", func(r *Record) *string { return &r.RateLimits }),
	timeColumn("updated_at", func(r *Record) *Timestamp { return &r.UpdatedAt }).required(),
}

// The columns of each type. at is the way from a record to the value.

func textColumn[T ~string](name string, at func(*Record) *T) *Column {
	return &Column{
		Name: name,
		Type: TextColumn,
		get: func(r *Record) any {
			if s := *at(r); s != "" {
				return string(s)
			}
			return nil
		},
		set:   func(r *Record, v any) { *at(r) = T(v.(string)) },
		text:  func(r *Record) string { return string(*at(r)) },
		value: func(r *Record) Value { return textual(string(*at(r))) },
	}
}

func names(name, kind string, at func(*Record) *string) *Column {
	c := textColumn(name, at)
	c.Names = kind
	return c
}

func integerColumn[T ~int | ~int64 | ~uint8 | ~uint32 | ~uint64](name string, at func(*Record) *T) *Column {
	return &Column{
		Name: name,
		Type: IntegerColumn,
		get: func(r *Record) any {
			if i := *at(r); i != 0 {
				return int64(i)
			}
			return nil
		},
		set: func(r *Record, v any) { *at(r) = T(v.(int64)) },
	}
}

func timeColumn(name string, at func(*Record) *Timestamp) *Column {
	c := integerColumn(name, at)
	c.Type = TimeColumn
	c.time = func(r *Record) Timestamp { return *at(r) }
	c.value = func(r *Record) Value { return whole(*at(r)) }
	return c
}

func endStateColumn() *Column {
	c := integerColumn("end_state", func(r *Record) *EndState { return &r.EndState }).required()
	c.Type = EndStateColumn
	c.text = func(r *Record) string { return r.EndState.String() }
	return c
}

func quantityColumn[T plugins.Unit](name string, at func(*Record) *plugins.Quantity[T]) *Column {
	return &Column{
		Name: name,
		Type: IntegerColumn,
		get: func(r *Record) any {
			if q := at(r); q.Valid {
				return int64(q.N)
			}
			return nil
		},
		set: func(r *Record, v any) { *at(r) = plugins.Quantity[T]{N: T(v.(int64)), Valid: true} },
		number: func(r *Record) (float64, bool) {
			q := at(r)
			return q.Float(), q.Valid
		},
		value: func(r *Record) Value { return exact(*at(r)) },
	}
}

func flagColumn(name string, at func(*Record) *bool) *Column {
	return &Column{
		Name:     name,
		Type:     FlagColumn,
		Required: true,
		get: func(r *Record) any {
			if *at(r) {
				return true
			}
			return nil
		},
		set:  func(r *Record, v any) { *at(r) = v.(int64) != 0 },
		flag: func(r *Record) bool { return *at(r) },
	}
}

func idColumn(name string, at func(*Record) *uuid.UUID) *Column {
	c := &Column{Name: name, Type: IDColumn, set: func(r *Record, v any) { copy(at(r)[:], v.([]byte)) }}
	c.get = func(r *Record) any {
		if id := at(r); c.Required || *id != uuid.Nil {
			return id[:]
		}
		return nil
	}
	c.text = func(r *Record) string {
		if id := at(r); c.Required || *id != uuid.Nil {
			return id.String()
		}
		return ""
	}
	return c
}

// repeated is a column whose values many records share.
func (c *Column) repeated(kind string) *Column {
	c.Names = kind
	return c
}

func (c *Column) required() *Column {
	c.Required = true
	return c
}

// field makes the column a field of a group of filters, in its order.
func (c *Column) field(g Group, name string) *Column {
	c.fields = append(c.fields, fieldName{g, name})
	return c
}

// sortKey makes the column what a key sorts by.
func (c *Column) sortKey(k SortKey) *Column {
	c.sort = k
	return c
}

// columnFields are the fields of a group that compare columns.
func columnFields(g Group) (fields []*Field) {
	for _, c := range Columns {
		for _, f := range c.fields {
			if f.group == g {
				fields = append(fields, c.asField(f.name))
			}
		}
	}
	return fields
}

func (c *Column) asField(name string) *Field {
	f := &Field{Name: name, Column: c, time: c.time}
	switch {
	case c.text != nil:
		f.text = func(r *Record, _ *Content) string { return c.text(r) }
	case c.number != nil:
		f.Kind = Number
		f.number = func(r *Record, _ string) (float64, bool) { return c.number(r) }
	case c.time != nil:
		f.Kind = Time
	case c.flag != nil:
		f.Kind = Boolean
		f.boolean = func(r *Record) (value, known bool) { return c.flag(r), true }
	}
	return f
}
