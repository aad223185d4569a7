package plugins

import "testing"

func TestRedactURL(t *testing.T) {
	for address, want := range map[string]string{
		"https://api.openai.com/v1":            "https://api.openai.com/v1",
		"https://weir:secret@10.0.0.5:8000/v1": "…@10.0.0.5:8000/v1",
		"https://secret@10.0.0.5/v1":           "…@10.0.0.5/v1",
		"https://weir:sec/re:t@10.0.0.5":       "…@10.0.0.5",
		"https://weir:sec@ret@10.0.0.5":        "…@10.0.0.5",
		"weir:secret@10.0.0.5":                 "…@10.0.0.5",
		"":                                     "",
	} {
		if got := RedactURL(address); got != want {
			t.Errorf("%s is shown as %s, expected %s", address, got, want)
		}
	}
}
