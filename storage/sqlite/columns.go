package sqlite

import (
	"bytes"
	"database/sql/driver"
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// row is a record with what only the database knows of it.
type row struct {
	storage.Record
	// n is the key of requests; 0 before the record has one.
	n int64
	// late are the properties that were set after the request, which also stand
	// in Properties, and lateAt is when the newest late fact arrived.
	late   map[string]string
	lateAt storage.Timestamp
}

// column is one column of requests or details. Zero values are encoded as nil.
// What they become is NULL where they mean none.
type column struct {
	name   string
	encode func(*row) driver.Value
	decode func(*row, driver.Value)
	// kind is the kind of names that the column refers to, and text the one of a
	// row. Such a column decodes a text and encodes nothing.
	kind string
	text func(*row) *string
	// required columns have 0 in place of NULL.
	required bool
}

// requestColumns are the columns of the table requests but n.
var requestColumns = []column{
	named("org", "org", func(r *row) *string { return &r.Org }),
	named("provider", "provider", func(r *row) *string { return &r.Provider }),
	named("model", "model", func(r *row) *string { return &r.Model }),
	quantity("status", func(r *row) *plugins.Count { return &r.Status }),
	quantity("latency", func(r *row) *plugins.Duration { return &r.Latency }),
	quantity("ttft", func(r *row) *plugins.Duration { return &r.TimeToFirstToken }),
	quantity("cost", func(r *row) *plugins.Cost { return &r.Cost }),
	quantity("input", func(r *row) *plugins.Count { return &r.Usage.Input }),
	quantity("output", func(r *row) *plugins.Count { return &r.Usage.Output }),
	quantity("cache_read", func(r *row) *plugins.Count { return &r.Usage.CacheRead }),
	quantity("cache_write", func(r *row) *plugins.Count { return &r.Usage.CacheWrite }),
	named("user", "user", func(r *row) *string { return &r.UserID }),
	named("session", "session", func(r *row) *string { return &r.SessionID }),
	named("session_name", "session_name", func(r *row) *string { return &r.SessionName }),
	optional("responded_at", func(r *row) *storage.Timestamp { return &r.RespondedAt }),
	named("request_model", "model", func(r *row) *string { return &r.RequestModel }),
	named("response_model", "model", func(r *row) *string { return &r.ResponseModel }),
	named("model_override", "model", func(r *row) *string { return &r.ModelOverride }),
	named("country", "country", func(r *row) *string { return &r.CountryCode }),
	named("path", "path", func(r *row) *string { return &r.Path }),
	named("target_url", "target_url", func(r *row) *string { return &r.TargetURL }),
	named("auth_hash", "auth_hash", func(r *row) *string { return &r.AuthHash }),
	named("prompt", "prompt", func(r *row) *string { return &r.PromptID }),
	named("prompt_version", "prompt_version", func(r *row) *string { return &r.PromptVersion }),
	named("node", "node", func(r *row) *string { return &r.NodeID }),
	named("job", "job", func(r *row) *string { return &r.JobID }),
	named("experiment", "experiment", func(r *row) *string { return &r.ExperimentID }),
	named("referrer", "referrer", func(r *row) *string { return &r.Referrer }),
	named("finish", "finish", func(r *row) *string { return &r.Finish }),
	named("error_type", "error_type", func(r *row) *string { return &r.ErrorType }),
	integer("end_state", func(r *row) *storage.EndState { return &r.EndState }),
	boolean("stream", func(r *row) *bool { return &r.Stream }),
	boolean("threat", func(r *row) *bool { return &r.Threat }),
	boolean("passthrough", func(r *row) *bool { return &r.PassthroughBilling }),
	boolean("cache_enabled", func(r *row) *bool { return &r.CacheEnabled }),
	id("cache_reference", func(r *row) *uuid.UUID { return &r.CacheReferenceID }),
	id("attempt_of", func(r *row) *uuid.UUID { return &r.AttemptOf }),
	{
		name:   "request_id",
		encode: func(r *row) driver.Value { return r.ID[:] },
		decode: func(r *row, v driver.Value) { copy(r.ID[:], v.([]byte)) },
	},
}

// detailColumns are the columns of the table details but n.
var detailColumns = []column{
	optional("content_segment", func(r *row) *uint64 { return &r.Content.Segment }),
	optional("content_ordinal", func(r *row) *uint32 { return &r.Content.Ordinal }),
	text("dialect", func(r *row) *plugins.Dialect { return &r.Dialect }),
	integer("attempt", func(r *row) *int { return &r.Attempt }),
	text("response_id", func(r *row) *string { return &r.ResponseID }),
	text("service_tier", func(r *row) *string { return &r.ServiceTier }),
	text("price_version", func(r *row) *string { return &r.PriceVersion }),
	text("session_path", func(r *row) *string { return &r.SessionPath }),
	text("trace_id", func(r *row) *string { return &r.TraceID }),
	text("span_id", func(r *row) *string { return &r.SpanID }),
	integer("request_bytes", func(r *row) *int64 { return &r.RequestBytes }),
	integer("response_bytes", func(r *row) *int64 { return &r.ResponseBytes }),
	boolean("request_omitted", func(r *row) *bool { return &r.RequestOmitted }),
	boolean("response_omitted", func(r *row) *bool { return &r.ResponseOmitted }),
	boolean("request_truncated", func(r *row) *bool { return &r.RequestTruncated }),
	boolean("response_truncated", func(r *row) *bool { return &r.ResponseTruncated }),
	quantity("reasoning", func(r *row) *plugins.Count { return &r.Usage.Reasoning }),
	quantity("cache_write_1h", func(r *row) *plugins.Count { return &r.Usage.CacheWrite1h }),
	quantity("input_audio", func(r *row) *plugins.Count { return &r.Usage.InputAudio }),
	quantity("cache_read_audio", func(r *row) *plugins.Count { return &r.Usage.CacheReadAudio }),
	quantity("input_image", func(r *row) *plugins.Count { return &r.Usage.InputImage }),
	quantity("output_audio", func(r *row) *plugins.Count { return &r.Usage.OutputAudio }),
	quantity("output_image", func(r *row) *plugins.Count { return &r.Usage.OutputImage }),
	quantity("billed_input", func(r *row) *plugins.Count { return &r.Usage.BilledInput }),
	quantity("billed_output", func(r *row) *plugins.Count { return &r.Usage.BilledOutput }),
	quantity("web_searches", func(r *row) *plugins.Count { return &r.Usage.WebSearches }),
	quantity("search_units", func(r *row) *plugins.Count { return &r.Usage.SearchUnits }),
	quantity("images", func(r *row) *plugins.Count { return &r.Usage.Images }),
	quantity("pages", func(r *row) *plugins.Count { return &r.Usage.Pages }),
	quantity("audio_duration", func(r *row) *plugins.Duration { return &r.Usage.AudioDuration }),
	quantity("reported_cost", func(r *row) *plugins.Cost { return &r.Usage.ReportedCost }),
	integer("updated_at", func(r *row) *storage.Timestamp { return &r.UpdatedAt }),
	feedback("feedback_id", func(f *storage.Feedback) driver.Value { return f.ID },
		func(f *storage.Feedback, v int64) { f.ID = v }),
	feedback("feedback_rating", func(f *storage.Feedback) driver.Value { return f.Rating },
		func(f *storage.Feedback, v int64) { f.Rating = v != 0 }),
	feedback("feedback_created_at", func(f *storage.Feedback) driver.Value { return int64(f.CreatedAt) },
		func(f *storage.Feedback, v int64) { f.CreatedAt = storage.Timestamp(v) }),
	object("properties", func(r *row) *map[string]string { return &r.Properties }, gjson.Result.String),
	object("late_properties", func(r *row) *map[string]string { return &r.late }, gjson.Result.String),
	optional("late_at", func(r *row) *storage.Timestamp { return &r.lateAt }),
	object("scores", func(r *row) *map[string]float64 { return &r.Scores }, gjson.Result.Float),
	{
		name: "assets",
		encode: func(r *row) driver.Value {
			if len(r.Assets) == 0 {
				return nil
			}
			return compactJSON(r.Assets)
		},
		decode: func(r *row, v driver.Value) { _ = json.Unmarshal([]byte(v.(string)), &r.Assets) },
	},
}

func named(name, kind string, at func(*row) *string) column {
	c := text(name, at)
	c.encode, c.kind, c.text = nil, kind, at
	return c
}

func text[T ~string](name string, at func(*row) *T) column {
	return column{
		name: name,
		encode: func(r *row) driver.Value {
			if s := *at(r); s != "" {
				return string(s)
			}
			return nil
		},
		decode: func(r *row, v driver.Value) { *at(r) = T(v.(string)) },
	}
}

type anyInteger interface {
	~int | ~int64 | ~uint8 | ~uint32 | ~uint64
}

func integer[T anyInteger](name string, at func(*row) *T) column {
	c := optional(name, at)
	c.required = true
	return c
}

// optional is an integer whose zero means none.
func optional[T anyInteger](name string, at func(*row) *T) column {
	return column{
		name: name,
		encode: func(r *row) driver.Value {
			if i := *at(r); i != 0 {
				return int64(i)
			}
			return nil
		},
		decode: func(r *row, v driver.Value) { *at(r) = T(v.(int64)) },
	}
}

func quantity[T plugins.Unit](name string, at func(*row) *plugins.Quantity[T]) column {
	return column{
		name: name,
		encode: func(r *row) driver.Value {
			if q := *at(r); q.Valid {
				return int64(q.N)
			}
			return nil
		},
		decode: func(r *row, v driver.Value) { *at(r) = plugins.Quantity[T]{N: T(v.(int64)), Valid: true} },
	}
}

func boolean(name string, at func(*row) *bool) column {
	return column{
		name: name,
		encode: func(r *row) driver.Value {
			if *at(r) {
				return true
			}
			return nil
		},
		decode:   func(r *row, v driver.Value) { *at(r) = v.(int64) != 0 },
		required: true,
	}
}

func id(name string, at func(*row) *uuid.UUID) column {
	return column{
		name: name,
		encode: func(r *row) driver.Value {
			if id := at(r); *id != uuid.Nil {
				return id[:]
			}
			return nil
		},
		decode: func(r *row, v driver.Value) { copy(at(r)[:], v.([]byte)) },
	}
}

func feedback(name string, get func(*storage.Feedback) driver.Value, set func(*storage.Feedback, int64)) column {
	return column{
		name: name,
		encode: func(r *row) driver.Value {
			if r.Feedback == nil {
				return nil
			}
			return get(r.Feedback)
		},
		decode: func(r *row, v driver.Value) {
			if r.Feedback == nil {
				r.Feedback = new(storage.Feedback)
			}
			set(r.Feedback, v.(int64))
		},
	}
}

func object[V any](name string, at func(*row) *map[string]V, value func(gjson.Result) V) column {
	return column{
		name: name,
		encode: func(r *row) driver.Value {
			if m := *at(r); len(m) > 0 {
				return compactJSON(m)
			}
			return nil
		},
		decode: func(r *row, v driver.Value) {
			m := make(map[string]V)
			gjson.Parse(v.(string)).ForEach(func(k, v gjson.Result) bool {
				m[k.String()] = value(v)
				return true
			})
			*at(r) = m
		},
	}
}

// compactJSON writes texts and finite numbers, which never fails.
func compactJSON(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // for whoever reads the database
	_ = e.Encode(v)
	return strings.TrimSuffix(b.String(), "\n")
}

// only are the columns of those names.
func only(columns []column, names ...string) []column {
	return slices.DeleteFunc(slices.Clone(columns), func(c column) bool { return !slices.Contains(names, c.name) })
}

// columnList is the columns' names, each after the prefix.
func columnList(columns []column, prefix string) string {
	var b strings.Builder
	for i, c := range columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(prefix + c.name)
	}
	return b.String()
}

// parameterList is a parameter for each column. What nothing is bound to is NULL.
func parameterList(columns []column) string {
	list := make([]string, len(columns))
	for i, c := range columns {
		if list[i] = "?"; c.required {
			list[i] = "coalesce(?, 0)"
		}
	}
	return strings.Join(list, ", ")
}
