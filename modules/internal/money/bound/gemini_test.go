package bound

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
)

// A request of Gemini sets aside what it has, and all that the model reads where the provider
// fetches, searches or runs something, or where bytes tell no length.
func TestGeminiIsBounded(t *testing.T) {
	m := &catalog.Model{}
	m.Context = 1_000_000
	data := strings.Repeat("A", 20_000)
	wav := base64.StdEncoding.EncodeToString([]byte(wave(1, 8000, "")))
	text := `{"text":"` + strings.Repeat("a", 1000) + `"}`
	for _, c := range []struct {
		parts, fields string
		least, most   int64
	}{
		{text, ``, 1000, 1100},
		{text, `,"systemInstruction":{"parts":[` + text + `]},"generationConfig":{"temperature":1},"safetySettings":[{}],"toolConfig":{"functionCallingConfig":{}}`, 2000, 2300},
		{text, `,"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT"}}]}]`, 1000, 1200},
		{text, `,"tools":[{"function_declarations":[]},{"google_search":{}}]`, 1_000_000, 1_000_000},
		{text, `,"tools":[{"urlContext":{}}]`, 1_000_000, 1_000_000},
		{text, `,"cachedContent":"cachedContents/a"`, 1_000_000, 1_000_000},
		{text, `,"newField":{"a":1}`, 1_000_000, 1_000_000},
		{`{"inlineData":{"mimeType":"image/png","data":"` + data + `"}}`, ``, PictureTokens, PictureTokens + 200},
		{`{"inline_data":{"mime_type":"image/png","data":"` + data + `"}},` + text, ``, PictureTokens + 1000, PictureTokens + 1300},
		{`{"inlineData":{"mimeType":"audio/wav","data":"` + wav + `"}}`, ``, 32, 300},
		{`{"inlineData":{"mimeType":"audio/flac","data":"` + data + `"}}`, ``, 1_000_000, 1_000_000},
		{`{"inlineData":{"mimeType":"text/plain","data":"` + data + `"}}`, ``, 20_000, 20_200},
		{`{"inlineData":{"mimeType":"application/pdf","data":"` + data + `"}}`, ``, 1_000_000, 1_000_000},
		{`{"inlineData":{"mimeType":"image/png","mime_type":"application/pdf","data":"` + data + `"}}`, ``, 1_000_000, 1_000_000},
		{`{"inlineData":{"mimeType":"image/png","data":"a","data":"` + data + `"}}`, ``, 1_000_000, 1_000_000},
		{`{"inlineData":{"mimeType":"image/png","data":"a"},"inline_data":{"mime_type":"video/mp4","data":"` + data + `"}}`, ``, 1_000_000, 1_000_000},
		{`{"fileData":{"fileUri":"https://example.com/a.pdf"}}`, ``, 1_000_000, 1_000_000},
		{`{"file_data":{"file_uri":"gs://a/b"}}`, ``, 1_000_000, 1_000_000},
		{`{"functionCall":{"name":"f","args":{"file":"a.go","image":"b","document":{}}}}`, ``, 50, 200},
		{`{"functionResponse":{"name":"f","response":{"file":"a.go"},"parts":[{"inlineData":{"mimeType":"image/png","data":"` + data + `"}}]}}`, ``, PictureTokens, PictureTokens + 300},
		{`{"function_response":{"parts":[{"fileData":{"fileUri":"https://example.com/a.pdf"}}]}}`, ``, 1_000_000, 1_000_000},
	} {
		body := fmt.Appendf(nil, `{"contents":[{"role":"user","parts":[%s]}]%s}`, c.parts, c.fields)
		d := Of(plugins.GenerateContent, objectOf(string(body)), nil)
		if got := d.Usage(m, UpperBound, int64(len(body)), 1, 1).Input.N; got < c.least || got > c.most {
			t.Errorf("%.100s%.80s: %d tokens, want %d to %d", c.parts, c.fields, got, c.least, c.most)
		}
	}
}
