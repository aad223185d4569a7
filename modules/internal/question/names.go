package question

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/weirhq/weir/storage"
)

// Aliases are short names of fields, in filters, columns and sort keys alike.
var Aliases = map[string]string{
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
	"error":    "error_message",
	"feedback": storage.FeedbackScore,
}

// FullName is the name that an alias stands for; other names are their own.
func FullName(name string) string {
	if full, ok := Aliases[name]; ok {
		return full
	}
	return name
}

// The prefixes of names within a map.
const (
	PropertyPrefix = "property."
	ScorePrefix    = "score."
)

// FilterField is the field that a name speaks of, with the key within a map. It
// is nil when there is none.
func FilterField(name string) (f *storage.Field, key string) {
	name = FullName(name)
	if key, ok := strings.CutPrefix(name, PropertyPrefix); ok && key != "" {
		return Field("properties"), key
	}
	if key, ok := strings.CutPrefix(name, ScorePrefix); ok && key != "" {
		return Field("scores"), key
	}
	if f := Field(name); f != nil && !f.Map {
		return f, ""
	}
	return nil, ""
}

// Field is the field of requests that has a name, or nil.
func Field(name string) *storage.Field { return storage.LookupField(storage.RequestResponse, name) }

// sortKeys are the API's names of keys that filters call by another name.
var sortKeys = map[string]storage.SortKey{
	"request_created_at":  storage.SortCreatedAt,
	"response_created_at": storage.SortLastActive,
	"response_model":      storage.SortBodyModel,
	"cached":              storage.SortIsCached,
}

// ParseSort reads sort keys, <name>[:asc|:desc], into the sort of the API. The
// largest come first unless a key says asc.
func ParseSort(keys []string) (json.RawMessage, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	var members []string
	for _, key := range keys {
		name, direction, err := CutDirection(key)
		if err != nil {
			return nil, err
		}
		name = FullName(name)
		value := Quote(direction)
		if property, ok := strings.CutPrefix(name, PropertyPrefix); ok {
			name, value = string(storage.SortProperties), "{"+Quote(property)+":"+value+"}"
		} else if apiName, ok := sortKeys[name]; ok {
			name = string(apiName)
		}
		members = append(members, Quote(name)+":"+value)
	}
	sort := []byte("{" + strings.Join(members, ",") + "}")
	if _, _, err := storage.ParseSort(sort); err != nil {
		return nil, fmt.Errorf("--%w", err)
	}
	return sort, nil
}

// CutDirection reads a sort key, <name>[:asc|:desc], which is desc without a direction.
func CutDirection(key string) (name, direction string, err error) {
	name, direction = key, "desc"
	if i := strings.LastIndexByte(key, ':'); i >= 0 {
		name, direction = key[:i], key[i+1:]
	}
	if direction != "asc" && direction != "desc" {
		return "", "", fmt.Errorf("--sort: %q: expected asc or desc behind the colon, not %q", key, direction)
	}
	return name, direction, nil
}

// Quote is s as a JSON string.
func Quote(s string) string {
	text, _ := json.Marshal(s) // a string always marshals
	return string(text)
}
