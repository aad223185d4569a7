package llmcommand

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// column is a field of records as tables and CSV show it.
type column struct {
	heading string
	path    string // in the record
	format  format
}

// format is how a table shows a value.
type format uint8

const (
	plain  format = iota
	nested        // below another one by its depth
	moment
	millis
	dollars
	count
	code // a number that counts nothing
)

// allColumns have the metrics of a record, under the names that filters use.
var allColumns = []column{
	{"request_id", "request_id", plain},
	{"request_created_at", "request_created_at", moment},
	{"response_created_at", "response_created_at", moment},
	{"provider", "provider", plain},
	{"model", "model", plain},
	{"request_model", "request_model", plain},
	{"response_model", "response_model", plain},
	{"model_override", "model_override", plain},
	{"request_path", "request_path", plain},
	{"target_url", "target_url", plain},
	{"status", "response_status", code},
	{"end_state", "end_state", plain},
	{"finish_reason", "finish_reason", plain},
	{"error_type", "error_type", plain},
	{"stream", "stream", plain},
	{"latency", "delay_ms", millis},
	{"time_to_first_token", "time_to_first_token", millis},
	{"prompt_tokens", "prompt_tokens", count},
	{"completion_tokens", "completion_tokens", count},
	{"total_tokens", "total_tokens", count},
	{"prompt_cache_read_tokens", "prompt_cache_read_tokens", count},
	{"prompt_cache_write_tokens", "prompt_cache_write_tokens", count},
	{"prompt_audio_tokens", "prompt_audio_tokens", count},
	{"completion_audio_tokens", "completion_audio_tokens", count},
	{"reasoning_tokens", "reasoning_tokens", count},
	{"cost", "cost", dollars},
	{"cache_savings", "cache_savings", dollars},
	{"cache_miss_reason", "cache_miss_reason", plain},
	{"cache_miss_at", "cache_miss_at", plain},
	{"cache_missed_tokens", "cache_missed_tokens", count},
	{"cache_loss", "cache_loss", dollars},
	{"parent_request_id", "parent_request_id", plain},
	{"root_request_id", "root_request_id", plain},
	{"turn", "turn", code},
	{"is_passthrough_billing", "is_passthrough_billing", plain},
	{"is_subscription", "is_subscription", plain},
	{"list_cost", "list_cost", dollars},
	{"rate_limits", "rate_limits", plain},
	{"user_id", "request_user_id", plain},
	{"session_id", "session_id", plain},
	{"organization_id", "organization_id", plain},
	{"country_code", "country_code", plain},
	{"request_referrer", "request_referrer", plain},
	{"prompt_id", "prompt_id", plain},
	{"prompt_version", "prompt_version", plain},
	{"node_id", "node_id", plain},
	{"job_id", "job_id", plain},
	{"attempt", "attempt", code},
	{"attempt_of", "attempt_of", plain},
	{"trace_id", "trace_id", plain},
	{"span_id", "span_id", plain},
	{"threat", "threat", plain},
	{"cache_enabled", "cache_enabled", plain},
	{"cache_reference_id", "cache_reference_id", plain},
	{storage.FeedbackScore, "feedback_rating", plain},
	{"scores", "scores", plain},
	{"properties", "properties", plain},
	{"assets", "assets", plain},
	{"request_omitted", "request_omitted", plain},
	{"response_omitted", "response_omitted", plain},
	{"request_truncated", "request_truncated", plain},
	{"response_truncated", "response_truncated", plain},
	{"size_bytes", "size_bytes", count},
	{"updated_at", "updated_at", moment},
}

// bodyColumns are shown when asked for by name.
var bodyColumns = []column{
	{"request_body", "request_body", plain},
	{"response_body", "response_body", plain},
}

// parseColumns finds columns by their names or aliases, which become the
// headings.
func parseColumns(names []string) ([]column, error) {
	columns := make([]column, len(names))
	for i, name := range names {
		var err error
		if columns[i], err = parseColumn(name); err != nil {
			return nil, err
		}
	}
	return columns, nil
}

func parseColumn(name string) (column, error) {
	full := fullName(name)
	if key, ok := strings.CutPrefix(full, propertyPrefix); ok && key != "" {
		return column{name, "properties." + gjson.Escape(key), plain}, nil
	}
	if key, ok := strings.CutPrefix(full, scorePrefix); ok && key != "" {
		return column{name, "scores." + gjson.Escape(key), code}, nil
	}
	var known []string
	for _, columns := range [][]column{allColumns, bodyColumns} {
		for _, c := range columns {
			if c.heading == full {
				c.heading = name
				return c, nil
			}
			known = append(known, c.heading)
		}
	}
	return column{}, fmt.Errorf("unknown column %q; columns are %s, property.<name> and score.<name>", name, strings.Join(known, ", "))
}

// numeric columns align right.
func (f format) numeric() bool { return f >= millis }

// width is what values of a format mostly need.
func (f format) width() int {
	return [...]int{moment: 19, millis: 7, dollars: 9, count: 6, code: 3, plain: 12, nested: 12}[f]
}

// raw is the value as CSV has it: as in the API, nothing where it is unknown.
func (c *column) raw(record gjson.Result) string { return record.Get(c.path).String() }

// maxIndent bounds how far a table moves what is beneath others.
const maxIndent = 16

// cell is the value as a table has it.
func (c *column) cell(record gjson.Result, zone *time.Location) string {
	value := record.Get(c.path)
	if value.Type == gjson.Null {
		return "-"
	}
	switch c.format {
	case nested:
		return strings.Repeat("  ", int(min(record.Get("depth").Int(), maxIndent))) + printable(value.String())
	case moment:
		if t, err := storage.ParseTimestamp(value.String()); err == nil {
			return t.Time().In(zone).Format(time.DateTime)
		}
	case millis:
		return plugins.Milliseconds(value.Int()).String()
	case dollars:
		return nanodollars(value.Num).String()
	case count:
		return formatCount(value.Int())
	}
	return printable(value.String())
}

// nanodollars is an amount of the API, which is in dollars.
func nanodollars(dollars float64) plugins.Nanodollars {
	return plugins.Nanodollars(math.Round(dollars * 1e9))
}

// formatCount groups the digits by three.
func formatCount(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// printable is s on one line and without what could drive a terminal: callers
// choose the names of their users and models.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Cf, r): // invisible; some turn the direction
			return -1
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsGraphic(r):
			return r
		}
		return unicode.ReplacementChar
	}, s)
}
