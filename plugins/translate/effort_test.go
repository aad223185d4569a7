package translate_test

import (
	"testing"

	. "github.com/weirhq/weir/plugins/translate"
)

func TestLimitEffort(t *testing.T) {
	for _, test := range []struct {
		asked  string
		levels []string
		want   string
	}{
		{"high", []string{"low", "medium", "high"}, "high"},
		{"xhigh", []string{"low", "medium", "high"}, "high"},
		{"medium", []string{"high", "low"}, "low"},
		{"minimal", []string{"none", "high", "low"}, "low"},
		{"low", []string{"high", "medium"}, "medium"},
		{"none", []string{"low", "high"}, "low"},
		{"none", []string{"none", "low"}, "none"},
		{"max", []string{"none", "default"}, "default"},
		{"default", []string{"low", "medium", "high"}, "medium"},
		{"low", []string{"none"}, ""},
		{"low", nil, ""},
	} {
		r := &Request{Reasoning: Reasoning{Effort: test.asked}}
		if err := r.LimitEffort(test.levels); err != nil {
			t.Fatal(err)
		}
		if got := r.Reasoning.Effort; got != test.want || (got != test.asked) != (len(r.Warnings) == 1) {
			t.Errorf("%s of %q: got %q, with the warnings %q", test.asked, test.levels, got, r.Warnings)
		}
		strict := &Request{Reasoning: Reasoning{Effort: test.asked}, Strict: true}
		if err := strict.LimitEffort(test.levels); (err != nil) != (test.want != test.asked) {
			t.Errorf("strictly, %s of %q: got error %v", test.asked, test.levels, err)
		}
	}
}
