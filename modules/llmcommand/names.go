package llmcommand

import (
	"strings"

	"github.com/weirhq/weir/storage"
)

// aliases are short names of fields, in filters, columns and sort keys alike.
var aliases = map[string]string{
	"id":       "request_id",
	"time":     "request_created_at",
	"ended":    "response_created_at",
	"user":     "user_id",
	"session":  "property.Service-Session-Id", // where the API has it
	"country":  "country_code",
	"in":       "prompt_tokens",
	"out":      "completion_tokens",
	"tokens":   "total_tokens",
	"ttft":     "time_to_first_token",
	"body":     "request_body",
	"response": "response_body",
	"feedback": storage.FeedbackScore,
}

// fullName is the name that an alias stands for; other names are their own.
func fullName(name string) string {
	if full, ok := aliases[name]; ok {
		return full
	}
	return name
}

// The prefixes of names within a map.
const (
	propertyPrefix = "property."
	scorePrefix    = "score."
)

// filterField is the field that a name speaks of, with the key within a map. It
// is nil when there is none.
func filterField(name string) (f *storage.Field, key string) {
	name = fullName(name)
	if key, ok := strings.CutPrefix(name, propertyPrefix); ok && key != "" {
		return field("properties"), key
	}
	if key, ok := strings.CutPrefix(name, scorePrefix); ok && key != "" {
		return field("scores"), key
	}
	if f := field(name); f != nil && !f.Map {
		return f, ""
	}
	return nil, ""
}

func field(name string) *storage.Field { return storage.LookupField(storage.RequestResponse, name) }
