package chat

import (
	"testing"

	"github.com/weirhq/weir/plugins/translate"
)

func TestResponsesForHostedTools(t *testing.T) {
	target := translate.Target{BaseURL: "https://api.x.ai/v1"}
	for tool, path := range map[string]string{
		`{"type":"web_search"}`:          "/v1/responses",
		`{"type":"function","name":"f"}`: "/v1/chat/completions",
	} {
		req, _, _, err := prepare(t, For("xai"), target, `{"model":"m","input":"hi","tools":[`+tool+`]}`)
		if err != nil {
			t.Fatal(err)
		}
		if req.URL.Path != path {
			t.Errorf("%s: got %s, want %s", tool, req.URL.Path, path)
		}
	}
}
