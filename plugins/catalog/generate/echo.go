package main

import (
	"regexp"

	"github.com/weirhq/weir/plugins/catalog"
)

// echo is Weir's own provider, which has no network. It charges for every model name,
// so that a first look shows costs too; the prices are ours to choose.
func echo() (provider, error) {
	input, err := catalog.ParseRate("1")
	if err != nil {
		return provider{}, err
	}
	output, err := catalog.ParseRate("2")
	if err != nil {
		return provider{}, err
	}
	return provider{ID: "echo", Models: []*catalog.Model{{
		ID:     "echo-1",
		Name:   "Echo",
		Owner:  "weir",
		Match:  &catalog.Match{Regex: regexp.MustCompile("")},
		Input:  []string{"text", "image"},
		Output: []string{"text"},

		Reasoning: true,
		ToolCall:  true,
		Prices:    []catalog.Price{{Input: input, Output: output}},
	}}}, nil
}
