package routing

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/modules/internal/question"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// The properties by which a condition asks for what a record does not have. No caller can set
// them: a call's own properties are replaced.
const (
	toolsProperty  = "request.tools"
	imagesProperty = "request.images"
)

var conditionNames = map[string]string{
	"tools":  question.PropertyPrefix + toolsProperty,
	"images": question.PropertyPrefix + imagesProperty,
}

// attributes are the fields of a record that are known before a call is sent, and the tokens, which are
// estimated.
var attributes = []string{
	"country_code", "job_id", "key_id", "node_id", "organization_id", "project", "prompt_id", "prompt_tokens", "prompt_version",
	"properties", "request_created_at", "request_model", "request_path", "request_referrer", "session_id", "stream", "threat",
	"total_tokens", "trace_id", "user_id", "verified_by",
}

// parseCondition reads a filter of calls that were not sent yet.
func parseCondition(when string) (storage.Filter, error) {
	f, err := question.ParseFilterOf(conditionNames, []string{when}, time.Now())
	if err != nil {
		return nil, err
	}
	for leaf := range storage.Leaves(f) {
		if !slices.Contains(attributes, leaf.Field.Name) {
			return nil, fmt.Errorf("%s is not known before the call is sent; a condition takes tools, images, tokens, stream and what the caller says: %s",
				leaf.Field.Name, strings.Join(attributes, ", "))
		}
	}
	return f, nil
}

// described returns a copy of the record of a call with what conditions ask for.
func (a *Ask) described() *storage.Record {
	r := *a.Record
	r.Stream = a.Stream
	r.Usage = plugins.Usage{Input: plugins.Known(a.Tokens), Output: plugins.Known(0)}
	r.Properties = maps.Clone(r.Properties)
	if r.Properties == nil {
		r.Properties = make(map[string]string)
	}
	r.Properties[toolsProperty] = strconv.FormatBool(a.Tools)
	r.Properties[imagesProperty] = strconv.FormatBool(a.Images)
	return &r
}
