package catalog

import (
	"iter"
	"regexp"
	"slices"
	"strings"
)

// Match is a rule over model names: exactly one of its fields is set.
type Match struct {
	Equals     string         `json:"equals,omitempty"`
	StartsWith string         `json:"starts_with,omitempty"`
	EndsWith   string         `json:"ends_with,omitempty"`
	Contains   string         `json:"contains,omitempty"`
	Regex      *regexp.Regexp `json:"regex,omitempty"` // RE2, not anchored
	Or         []Match        `json:"or,omitempty"`
	And        []Match        `json:"and,omitempty"`
	Not        *Match         `json:"not,omitempty"`
}

// Matches reports whether the rule holds for a name. A nil rule holds for none.
func (m *Match) Matches(name string) bool {
	switch {
	case m == nil:
		return false
	case m.Equals != "":
		return name == m.Equals
	case m.StartsWith != "":
		return strings.HasPrefix(name, m.StartsWith)
	case m.EndsWith != "":
		return strings.HasSuffix(name, m.EndsWith)
	case m.Contains != "":
		return strings.Contains(name, m.Contains)
	case m.Regex != nil:
		return m.Regex.MatchString(name)
	case m.Not != nil:
		return !m.Not.Matches(name)
	case m.And != nil:
		return !slices.ContainsFunc(m.And, func(k Match) bool { return !k.Matches(name) })
	}
	return slices.ContainsFunc(m.Or, func(k Match) bool { return k.Matches(name) })
}

var (
	// location is what says where a model runs: a region of Bedrock's inference
	// profiles, or one segment of a path, as in "openai/gpt-5",
	// "publishers/google/models/gemini-2.5-pro" or an ARN.
	location = regexp.MustCompile(`^(?:[^/]+/|(?:us|us-gov|eu|apac|au|jp|ca|in|sa|global)\.)`)
	// release is what says which edition of a model: a date, "@default",
	// "-latest", or Bedrock's "-v1:0".
	release = regexp.MustCompile(`(?:-\d{8}|-\d{4}-\d\d-\d\d|@[\w.-]+|-latest|-v\d+:\d+|:\d+)$`)
)

// spellings are a name and its shorter forms, the fullest first: those without
// releases, then those without the first location, and so on. Variants with other
// prices, such as OpenRouter's ":free", are not stripped.
func spellings(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name != "" {
			for s := name; ; {
				if !yield(s) {
					return
				}
				i := release.FindStringIndex(s)
				if i == nil || i[0] == 0 {
					break
				}
				s = s[:i[0]]
			}
			i := location.FindStringIndex(name)
			if i == nil {
				return
			}
			name = name[i[1]:]
		}
	}
}
