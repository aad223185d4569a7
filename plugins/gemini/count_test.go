package gemini

import (
	"io"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/translate"
)

func TestACountIsAskedForWithTheWholeRequest(t *testing.T) {
	p, err := translate.ParseRequest([]byte(`{"model":"m","instructions":"Be brief.","input":"hi","tools":[{"type":"function","name":"f","parameters":{"type":"object"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	req, err := Provider{}.PrepareCount(t.Context(), p, translate.Target{Model: "gemini-2.5-flash", BaseURL: "https://generativelanguage.googleapis.com", Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(req.Body)
	if err != nil || req.URL.Path != "/v1beta/models/gemini-2.5-flash:countTokens" || req.Header.Get("X-Goog-Api-Key") != "k" {
		t.Errorf("%s, %v", req.URL, err)
	}
	asked := gjson.GetBytes(body, "generateContentRequest")
	if asked.Get("model").Str != "models/gemini-2.5-flash" || asked.Get("systemInstruction.parts.0.text").Str != "Be brief." ||
		asked.Get("contents.0.parts.0.text").Str != "hi" || !asked.Get("tools.0.functionDeclarations.0.name").Exists() {
		t.Errorf("the request is %s", body)
	}
	if n, ok := (Provider{}).Tokens([]byte(`{"totalTokens":12}`)); n != 12 || !ok {
		t.Error(n, ok)
	}
	if _, ok := (Provider{}).Tokens([]byte(`{"error":{}}`)); ok {
		t.Error("an error is a count")
	}
}
