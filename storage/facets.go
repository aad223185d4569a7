package storage

import (
	"cmp"
	"context"
	"slices"
)

// FacetQuery asks which values requests have, and how often.
type FacetQuery struct {
	Org    string
	Filter Filter
	// Window chooses requests.
	Window Window
	Fields []Dimension
}

// MaxFacetValues bounds the values of a facet.
const MaxFacetValues = 20

// Facets is the answer to a FacetQuery.
type Facets struct {
	// Count is the number of requests, attempts that did not answer included.
	Count  int64   `json:"count"`
	Fields []Facet `json:"fields"`
}

// Facet has the values of one field.
type Facet struct {
	Field string `json:"field"`
	// Values are the most frequent ones, at most MaxFacetValues.
	Values []FacetValue `json:"values"`
	// Others counts the requests that have another value.
	Others int64 `json:"others"`
}

// FacetValue is a value and how many requests have the value. The value is "" for requests
// without a value.
type FacetValue struct {
	Value string `json:"value"`
	Count int64  `json:"count"`
}

// Answer counts the requests by each of the fields.
func (q *FacetQuery) Answer(ctx context.Context, g Grouper) (*Facets, error) {
	answer := &Facets{Fields: make([]Facet, len(q.Fields))}
	for i, field := range q.Fields {
		answer.Fields[i] = Facet{Field: field.String(), Values: []FacetValue{}}
	}
	err := g.Groups(ctx, &GroupQuery{
		Org: q.Org, Filter: q.Filter, Window: q.Window, By: append([]Dimension{{}}, q.Fields...), Apart: true,
		CountOnly: true, Top: Top{Count: MaxFacetValues, By: LargestGroups},
	}, func(group *GroupTotals) error {
		switch f := group.Set - 1; {
		case f < 0:
			answer.Count = group.Requests
		case group.Key == nil:
			answer.Fields[f].Others = group.Requests
		default:
			answer.Fields[f].Values = append(answer.Fields[f].Values, FacetValue{group.Key[0], group.Requests})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, f := range answer.Fields {
		slices.SortFunc(f.Values, func(a, b FacetValue) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Value, b.Value))
		})
	}
	return answer, nil
}
