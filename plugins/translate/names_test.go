package translate

import (
	"errors"
	"slices"
	"testing"

	"github.com/weirhq/weir/plugins"
)

func TestNames(t *testing.T) {
	n := &Names{
		Fields: map[string]string{"text.format": "response_format", "max_output_tokens": "max_tokens", "reasoning.summary": ""},
		Items:  []ItemName{{Path: "messages[0]"}, {Path: "messages[1]", First: 2}, {Path: "messages[1].tool_calls[0]"}},
	}
	for path, want := range map[string]string{
		"text.format":                   "response_format",
		"text.format.schema":            "response_format.schema",
		"text.verbosity":                "text.verbosity",
		"max_output_tokens":             "max_tokens",
		"input[0].content":              "messages[0].content",
		"input[1].content[1].image_url": "messages[1].content[3]",
		"input[2].call_id":              "messages[1].tool_calls[0]",
		"input[7].call_id":              "input[7].call_id",
		"input":                         "input",
		"":                              "",
	} {
		if got := n.Path(path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
	err := n.Error(plugins.Unsupported("max_output_tokens", "'max_output_tokens' is too much."))
	if e := new(plugins.Error); !errors.As(err, &e) || e.Param != "max_tokens" || e.Message != "'max_tokens' is too much." {
		t.Errorf("got %+v", e)
	}
	got := n.Warnings([]string{"reasoning.summary: left out", "text.format: not enforced"})
	if !slices.Equal(got, []string{"response_format: not enforced"}) {
		t.Errorf("got %q", got)
	}
}
