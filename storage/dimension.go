package storage

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// Dimension is what requests are grouped by. The zero Dimension puts all of them
// into one group.
type Dimension struct {
	Name DimensionName
	// Property is the name of the property of ByProperty.
	Property string
}

// DimensionName names the value of a request that is compared.
type DimensionName string

// The dimensions besides the fields of RequestResponse, by their names. A request
// has as many rows as it has scores, feedback included, or properties when it is
// grouped by them.
const (
	ByUser         DimensionName = "user_id"
	BySession      DimensionName = "session_id"
	BySessionName  DimensionName = "session_name"
	BySessionTag   DimensionName = "session_tag"
	ByScore        DimensionName = "score"
	ByProperty     DimensionName = "property" // the value of one
	ByPropertyName DimensionName = "property_key"
	// ByTree is the root_request_id of a request, and the request's own id if it is
	// that of another one that the query chooses.
	ByTree DimensionName = "root_request_id"
)

// Dimensions are the names by which callers may group requests. The last stands for the names of properties, and
// PropertyPrefix before a name for the values of that property.
var Dimensions = []DimensionName{
	"model", "provider", ByUser, "status", "end_state", "stream", "request_path", "finish_reason", "error_type", "cache_miss_reason",
	"request_model", "country_code", "prompt_id", "prompt_version", "node_id", "job_id", "request_referrer",
	"cached", "is_passthrough_billing", "threat", ByTree, ByPropertyName,
}

// PropertyPrefix stands before the name of a property that is a dimension.
const PropertyPrefix = "property:"

// ParseDimension reads one of Dimensions, or the name of a property behind
// PropertyPrefix.
func ParseDimension(s string) (Dimension, error) {
	if name, ok := strings.CutPrefix(s, PropertyPrefix); ok && name != "" {
		return Dimension{Name: ByProperty, Property: name}, nil
	}
	if name := DimensionName(s); slices.Contains(Dimensions, name) {
		return Dimension{Name: name}, nil
	}
	return Dimension{}, errors.New(Unknown("field", s, append(slices.Clone(Dimensions), PropertyPrefix+"<name>")))
}

// String is the name that ParseDimension reads.
func (d Dimension) String() string {
	if d.Name == ByProperty {
		return PropertyPrefix + d.Property
	}
	return string(d.Name)
}

// values are what the record has of the dimension.
func (g *RecordGrouper) values(d Dimension, r *Record) []string {
	switch d.Name {
	case "":
		return []string{""}
	case BySessionName:
		return []string{r.SessionName}
	case BySessionTag:
		return []string{g.tags[r.SessionID]}
	case ByTree:
		switch {
		case r.RootID != uuid.Nil:
			return []string{r.RootID.String()}
		case g.roots[r.ID]:
			return []string{r.ID.String()}
		}
		return []string{""}
	case ByProperty:
		return []string{r.Properties[d.Property]}
	case ByPropertyName:
		return slices.Collect(maps.Keys(r.Properties))
	case ByScore:
		names := slices.Collect(maps.Keys(r.Scores))
		if r.Feedback != nil {
			names = append(names, FeedbackScore)
		}
		return names
	}
	return []string{LookupField(RequestResponse, string(d.Name)).value(r)}
}

// value is the text of a field that compares no content and no map, "" where the
// record lacks it.
func (f *Field) value(r *Record) string {
	switch f.Kind {
	case Boolean:
		if value, known := f.Bool(r); known {
			return strconv.FormatBool(value)
		}
		return ""
	case Number:
		if n, known := f.Number(r, ""); known {
			return strconv.FormatFloat(n, 'f', -1, 64)
		}
		return ""
	}
	return f.text(r, nil)
}
