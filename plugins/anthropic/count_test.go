package anthropic

import (
	"io"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/translate"
)

// The endpoint refuses every field that is not about the input.
func TestACountIsAskedForWithTheFieldsOfTheInput(t *testing.T) {
	p, err := translate.ParseRequest([]byte(`{"model":"m","instructions":"Be brief.","input":"hi","max_output_tokens":7,"temperature":0.5,"top_p":0.5,
		"user":"u","stream":true,"service_tier":"default","tools":[{"type":"function","name":"f","parameters":{"type":"object"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	req, err := Provider{}.PrepareCount(t.Context(), p, translate.Target{Model: "claude-sonnet-4-5", BaseURL: "https://api.anthropic.com", Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(req.Body)
	if err != nil || req.URL.Path != "/v1/messages/count_tokens" || req.Header.Get("X-Api-Key") != "k" {
		t.Errorf("%s, %v", req.URL, err)
	}
	if got := gjson.GetBytes(body, "@keys").Raw; got != `["model","system","messages","tools"]` {
		t.Errorf("the request is %s", body)
	}
	if n, ok := (Provider{}).Tokens([]byte(`{"input_tokens":12}`)); n != 12 || !ok {
		t.Error(n, ok)
	}
	if _, ok := (Provider{}).Tokens([]byte(`{"type":"error"}`)); ok {
		t.Error("an error is a count")
	}
}
