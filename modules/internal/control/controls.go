// Package control reads what a caller, or an edge proxy in front of Weir, sets for a
// call: the control headers, which it removes from the request, and the variables of
// Caddy that take precedence over them.
package control

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/nearest"
	"github.com/weirhq/weir/internal/redact"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// Bounds of what may be said of a call, in bytes unless told. Of control headers,
// longer text is cut and what exceeds a count is left out, with a warning.
const (
	MaxName       = 256     // names of properties, scores and prompt inputs
	MaxValue      = 4 << 10 // values of properties, tags of sessions
	MaxProperties = 100     // number of properties of a call
	MaxScores     = 100     // number of scores of a call

	maxID     = 1 << 10 // ids, names and paths
	maxInput  = 64 << 10
	maxInputs = 100 // number of prompt inputs
)

// Controls is what the control headers of one request say, beside what belongs
// in its record.
type Controls struct {
	// Secret is the key in Service-Auth; Keyed is true when the header was sent.
	Secret string
	Keyed  bool
	// ID is the value of Service-Request-Id.
	ID string
	// OmitRequest and OmitResponse forbid to keep the content. OmitHeader is the name of
	// a header that says so, "" if neither is set.
	OmitRequest, OmitResponse bool
	OmitHeader                string
	// Strict refuses what would else be changed of the request with a warning.
	Strict bool
	// DryRun asks where a call of the gateway would go, and sends nothing.
	DryRun bool
	// Cost asks for the cost and the tokens of a call of the gateway.
	Cost bool
	// RateLimitPolicy is a limit that the caller sets to its own calls.
	RateLimitPolicy string
	// Cache is what the caller says of Weir's cache.
	Cache Cache
	// Refused says why the call cannot be made as its headers ask, nil if it can.
	Refused *plugins.Error
	// Inputs are those of a prompt template.
	Inputs map[string]string
	// Warnings are lines "<field>: <what was done>" for Service-Warnings.
	Warnings []string

	headers *Headers
	record  *storage.Record // gets what belongs there
}

// Read takes the control headers out of header, and fills in the record. Where
// several prefixes say the same thing, the first prefix wins, except that either
// may omit; of one prefix, a property's own header wins over Service-Properties.
func Read(header http.Header, headers *Headers, record *storage.Record) *Controls {
	c := &Controls{headers: headers, record: record}
	for _, prefix := range c.headers.Prefixes {
		var objectKey string
		var objects []string
		for key, values := range header {
			name, ok := strings.CutPrefix(key, prefix)
			if !ok {
				continue
			}
			delete(header, key)
			if name == "Properties" {
				objectKey, objects = key, values
				continue
			}
			c.set(key, name, values)
		}
		if objects != nil {
			c.properties(objectKey, objects)
		}
	}
	c.readCacheControl(header["Cache-Control"])
	c.record.CacheEnabled = c.Cache.Enabled != nil && *c.Cache.Enabled
	c.trim("properties", c.record.Properties, MaxProperties)
	c.trim("prompt inputs", c.Inputs, maxInputs)
	return c
}

// texts are the headers, without a prefix, whose value is kept as text, flags those that
// switch something on, and names all but those that end with a name of the caller's.
var (
	texts = map[string]func(*Controls) *string{
		"Experiment-Id":    func(c *Controls) *string { return &c.record.ExperimentID },
		"Job-Id":           func(c *Controls) *string { return &c.record.JobID },
		"Model-Override":   func(c *Controls) *string { return &c.record.ModelOverride },
		"Node-Id":          func(c *Controls) *string { return &c.record.NodeID },
		"Prompt-Id":        func(c *Controls) *string { return &c.record.PromptID },
		"Prompt-Version":   func(c *Controls) *string { return &c.record.PromptVersion },
		"Ratelimit-Policy": func(c *Controls) *string { return &c.RateLimitPolicy },
		"Request-Id":       func(c *Controls) *string { return &c.ID },
		"Session-Id":       func(c *Controls) *string { return &c.record.SessionID },
		"Session-Name":     func(c *Controls) *string { return &c.record.SessionName },
		"Session-Path":     func(c *Controls) *string { return &c.record.SessionPath },
		"User-Id":          func(c *Controls) *string { return &c.record.UserID },
	}
	flags = map[string]func(*Controls) *bool{
		"Cost":   func(c *Controls) *bool { return &c.Cost },
		"Strict": func(c *Controls) *bool { return &c.Strict },
	}
	names = slices.Sorted(slices.Values(slices.AppendSeq(slices.AppendSeq(slices.AppendSeq(
		[]string{"Auth", "Dry-Run", "Omit-Request", "Omit-Response", "Properties"}, maps.Keys(texts)), maps.Keys(flags)), maps.Keys(cacheHeaders))))
)

// The beginnings of headers that end with a name of the caller's.
const (
	propertyHeader = "Property-"
	inputHeader    = "Prompt-Input-"
)

func (c *Controls) set(key, name string, values []string) {
	text, isText := texts[name]
	flag, isFlag := flags[name]
	property, isProperty := strings.CutPrefix(name, propertyHeader)
	input, isInput := strings.CutPrefix(name, inputHeader)
	cached, isCached := cacheHeaders[name]
	switch {
	case isCached:
		cached(c, key, values)
	case isText:
		c.text(text(c), key, values)
	case isFlag:
		*flag(c) = c.isTrue(key, values) || *flag(c)
	case isProperty:
		c.property(key, c.headers.propertyName(property), values)
	case isInput:
		c.entry(&c.Inputs, key, input, values, maxInput)
	case name == "Auth":
		if !c.Keyed {
			c.Keyed, c.Secret = true, Bearer(values[0])
		}
	case name == "Dry-Run":
		c.DryRun = c.isMeant(key, values) || c.DryRun
	case name == "Omit-Request":
		c.OmitRequest = c.omits(key, values) || c.OmitRequest
	case name == "Omit-Response":
		c.OmitResponse = c.omits(key, values) || c.OmitResponse
	default:
		if strings.HasPrefix(name, "Omit") && c.omits(key, values) { // who misspells it means it
			c.OmitRequest, c.OmitResponse = true, true
		}
		c.unknown(key, name)
	}
}

// unknown reports a header that has a prefix of control headers and no meaning:
// clients of other services send some, such as Helicone-Retry-Enabled.
func (c *Controls) unknown(key, name string) {
	near := nearest.Name(name, names)
	for _, open := range []string{propertyHeader, inputHeader} {
		parts := strings.SplitAfterN(name, "-", strings.Count(open, "-")+1)
		last := len(parts) - 1
		if nearest.Name(strings.Join(parts[:last], ""), []string{open}) != "" {
			near = open + parts[last]
		}
	}
	done := "ignored, there is no such control header"
	if near != "" {
		done += "; did you mean " + strings.TrimSuffix(key, name) + near + "?"
	}
	c.Warn(key, done)
}

// isTrue reads a boolean header: on when any value is `true`.
func (c *Controls) isTrue(key string, values []string) (on bool) {
	for _, v := range values {
		if strings.EqualFold(v, "true") {
			on = true
		} else {
			c.Warn(key, "off, the only value that switches it on is true")
		}
	}
	return on
}

// isMeant reads a boolean header that keeps something from happening. It fails closed: the header is
// on unless all of its values, also those of a comma-separated list, say that it is off.
func (c *Controls) isMeant(key string, values []string) (on bool) {
	for _, v := range values {
		for v := range strings.SplitSeq(v, ",") {
			switch strings.ToLower(strings.TrimSpace(v)) {
			case "", "false", "0", "no", "off":
			case "true", "1", "yes", "on":
				on = true
			default:
				on = true
				c.Warn(key, "on, but write true or false")
			}
		}
	}
	return on
}

// omits reads a header that omits content.
func (c *Controls) omits(key string, values []string) bool {
	on := c.isMeant(key, values)
	if on {
		c.OmitHeader = key
	}
	return on
}

// text sets *field to a header's value, unless another prefix did.
func (c *Controls) text(field *string, key string, values []string) {
	if *field == "" {
		*field, _ = c.value(key, values, maxID)
	}
}

// value is the text of a header, cut to max bytes.
func (c *Controls) value(key string, values []string, max int) (string, bool) {
	if len(values) > 1 {
		c.Warn(key, "sent more than once, the first counts")
	}
	v := values[0]
	if !utf8.ValidString(v) {
		c.Warn(key, "ignored, it is not UTF-8")
		return "", false
	}
	return c.cut(key, v, max), true
}

func (c *Controls) cut(key, v string, max int) string {
	if len(v) <= max {
		return v
	}
	for !utf8.RuneStart(v[max]) {
		max--
	}
	c.Warn(key, fmt.Sprintf("cut to %d bytes", max))
	return v[:max]
}

// entry sets a name of a map, unless another prefix did.
func (c *Controls) entry(m *map[string]string, key, name string, values []string, max int) {
	if name == "" || len(name) > MaxName {
		c.Warn(key, fmt.Sprintf("ignored, a name has 1 to %d bytes", MaxName))
		return
	}
	if redact.Credential(name) {
		c.Warn(key, "ignored, it is named like a credential")
		return
	}
	v, ok := c.value(key, values, max)
	if !ok {
		return
	}
	if *m == nil {
		*m = make(map[string]string)
	}
	if _, twice := (*m)[name]; !twice {
		(*m)[name] = v
	}
}

// property sets a property of the record. Those of the session follow its headers,
// so that the two never differ.
func (c *Controls) property(key, name string, values []string) {
	if header := SessionName(name); header != "" {
		c.Warn(key, "ignored, a session is named by the header "+header)
		return
	}
	c.entry(&c.record.Properties, key, name, values, MaxValue)
}

// properties reads a JSON object of strings, for names whose letter case
// matters.
func (c *Controls) properties(key string, values []string) {
	if len(values) > 1 {
		c.Warn(key, "sent more than once, the first counts")
	}
	text := values[0]
	object := gjson.Parse(text)
	if !utf8.ValidString(text) || !plugins.ValidJSON([]byte(text)) || !object.IsObject() {
		c.Warn(key, "ignored, it is no JSON object")
		return
	}
	object.ForEach(func(name, value gjson.Result) bool {
		if value.Type == gjson.String {
			c.property(key, name.Str, []string{value.Str})
		} else {
			c.Warn(key, "ignored a value that is no string")
		}
		return true
	})
}

// trim leaves out what exceeds a count, by the order of the names.
func (c *Controls) trim(what string, m map[string]string, max int) {
	if len(m) <= max {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(m))[max:] {
		delete(m, name)
	}
	c.Warn(what, fmt.Sprintf("kept the first %d", max))
}

// Warn adds a warning. It must not repeat a value: it goes back in a header.
func (c *Controls) Warn(field, done string) {
	c.Warnings = append(c.Warnings, field+": "+done)
}

// Bearer is the secret of an Authorization-like value.
func Bearer(v string) string {
	if scheme, secret, ok := strings.Cut(v, " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(secret)
	}
	return v
}

// SessionNames are the properties that say which session a call belongs to: its
// id, name and path.
var SessionNames = [...]string{"Service-Session-Id", "Service-Session-Name", "Service-Session-Path"}

// SessionName is that of SessionNames which name is in any letter case, or empty.
func SessionName(name string) string {
	for _, session := range SessionNames {
		if strings.EqualFold(name, session) {
			return session
		}
	}
	return ""
}

// SessionProperties adds the session to the properties, under the full names of
// its headers.
func SessionProperties(r *storage.Record) {
	for i, value := range [...]string{r.SessionID, r.SessionName, r.SessionPath} {
		if value == "" {
			continue
		}
		if r.Properties == nil {
			r.Properties = make(map[string]string)
		}
		r.Properties[SessionNames[i]] = value
	}
}
