package gemini

import (
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

func TestFixtures(t *testing.T) {
	plugintest.Run(t, Provider{}, translate.Target{Model: "gemini-3-test", BaseURL: "http://localhost"}, plugintest.Fixtures(t, "testdata"))
}

// FuzzDecode: whatever the provider sends, the client gets a legal stream or
// object.
func FuzzDecode(f *testing.F) {
	plugintest.Fuzz(f, Provider{}, plugintest.Fixtures(f, "testdata"), nil)
}

func TestFinishReasons(t *testing.T) {
	for finish, want := range map[string]string{
		"STOP": "completed", "OF_THE_FUTURE": "completed",
		"MAX_TOKENS": "incomplete", "CONTINUATION": "incomplete",
		"SAFETY": "incomplete", "RECITATION": "incomplete", "LANGUAGE": "incomplete", "BLOCKLIST": "incomplete",
		"PROHIBITED_CONTENT": "incomplete", "SPII": "incomplete", "IMAGE_SAFETY": "incomplete",
		"MALFORMED_FUNCTION_CALL": "failed", "UNEXPECTED_TOOL_CALL": "failed", "TOO_MANY_TOOL_CALLS": "failed",
		"NO_IMAGE": "failed", "OTHER": "failed", "FINISH_REASON_UNSPECIFIED": "failed", "": "failed",
	} {
		body := `{"candidates":[{"content":{"parts":[{"text":"Once"}]},"finishReason":"` + finish + `"}]}`
		if got := answer(t, `{"model":"m","input":"hi"}`, body).Get("status").Str; got != want {
			t.Errorf("%s: got %s, want %s", finish, got, want)
		}
	}
}

func TestServiceTiers(t *testing.T) {
	for _, test := range []struct{ usage, want string }{
		{`{"serviceTier":"standard"}`, "default"},
		{`{"serviceTier":"flex"}`, "flex"},
		{`{"trafficType":"ON_DEMAND"}`, "default"},
		{`{"trafficType":"ON_DEMAND_PRIORITY"}`, "priority"},
		{`{"trafficType":"PROVISIONED_THROUGHPUT"}`, "PROVISIONED_THROUGHPUT"},
	} {
		body := `{"candidates":[{"content":{"parts":[{"text":"Once"}]},"finishReason":"STOP"}],"usageMetadata":` + test.usage + `}`
		if got := answer(t, `{"model":"m","input":"hi"}`, body).Get("service_tier").Str; got != test.want {
			t.Errorf("%s: got %q, want %q", test.usage, got, test.want)
		}
	}
}

// answer is the response to a request that the provider answers with body.
func answer(t *testing.T, request, body string) gjson.Result {
	t.Helper()
	p, err := translate.ParseRequest([]byte(request))
	if err != nil {
		t.Fatal(err)
	}
	a := translate.NewAssembler(p, io.Discard, translate.Options{})
	if err := (Provider{}).Decode(response(http.StatusOK, body), a); err != nil {
		t.Fatal(err)
	}
	a.End()
	return gjson.ParseBytes(a.Response())
}

func fixture(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
