package catalog

import (
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
