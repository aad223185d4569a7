package gemini

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
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
		"STOP": "completed", "OF_THE_FUTURE": "incomplete",
		"MAX_TOKENS": "incomplete", "CONTINUATION": "incomplete",
		"SAFETY": "incomplete", "RECITATION": "incomplete", "LANGUAGE": "incomplete", "BLOCKLIST": "incomplete",
		"PROHIBITED_CONTENT": "incomplete", "SPII": "incomplete", "IMAGE_SAFETY": "incomplete",
		"MALFORMED_FUNCTION_CALL": "incomplete", "UNEXPECTED_TOOL_CALL": "incomplete", "TOO_MANY_TOOL_CALLS": "incomplete",
		"NO_IMAGE": "incomplete", "OTHER": "incomplete", "FINISH_REASON_UNSPECIFIED": "failed", "": "failed",
	} {
		body := `{"candidates":[{"content":{"parts":[{"text":"Once"}]},"finishReason":"` + finish + `"}]}`
		if got := plugintest.Answer(t, Provider{}, `{"model":"m","input":"hi"}`, body).Get("status").Str; got != want {
			t.Errorf("%s: got %s, want %s", finish, got, want)
		}
	}
}

// What the model generates and no answer has a place for is named, except in its thoughts.
func TestUnplacedMedia(t *testing.T) {
	for part, want := range map[string]string{
		`{"inlineData":{"mimeType":"audio/L16;rate=24000","data":"AAAA"}}`:                  "[The model generated audio/L16;rate=24000, ",
		`{"fileData":{"mimeType":"video/mp4","fileUri":"https://x/y"}}`:                     "[The model generated video/mp4, ",
		`{"inlineData":{"mimeType":"audio/wav","data":"AAAA"},"thought":true},{"text":"a"}`: "a",
	} {
		body := `{"candidates":[{"content":{"parts":[` + part + `]},"finishReason":"STOP"}]}`
		if got := plugintest.Answer(t, Provider{}, `{"model":"m","input":"hi"}`, body); !strings.HasPrefix(got.Get("output.0.content.0.text").Str, want) {
			t.Errorf("%s: %s", part, got)
		}
	}
}

// The provider charges an answer that ends in an error, and clients ask again after a 502.
func TestNobodyAsksAgainForWhatIsCharged(t *testing.T) {
	for _, finish := range []string{"UNEXPECTED_TOOL_CALL", "NO_IMAGE", "MALFORMED_RESPONSE", "MISSING_THOUGHT_SIGNATURE", "OTHER"} {
		p, err := translate.ParseRequest([]byte(`{"model":"m","input":"hi"}`))
		if err != nil {
			t.Fatal(err)
		}
		a := translate.NewAssembler(p, nil, translate.Options{})
		body := `{"candidates":[{"finishReason":"` + finish + `"}]}`
		resp := &http.Response{Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body))}
		if err := (Provider{}).Decode(resp, a); err != nil {
			t.Fatal(err)
		}
		a.End()
		if e := a.Failure(); e == nil || e.Status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %+v", finish, e)
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
		if got := plugintest.Answer(t, Provider{}, `{"model":"m","input":"hi"}`, body).Get("service_tier").Str; got != test.want {
			t.Errorf("%s: got %q, want %q", test.usage, got, test.want)
		}
	}
}

func TestCassettes(t *testing.T) {
	plugintest.Cassettes(t, "generateContent", func(string) translate.Provider { return Provider{} })
}

func sameJSON(a, b string) bool {
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return string(p) == string(q)
}

func TestFailuresInStreamFailTheResponse(t *testing.T) {
	p, err := translate.ParseRequest([]byte(`{"model":"m","input":"hi","stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	a := translate.NewAssembler(p, new(strings.Builder), translate.Options{})
	body := `data: {"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"3s"}]}}` + "\n\n"
	if err := (Provider{}).Decode(plugintest.Response(http.StatusOK, body), a); err != nil {
		t.Fatal(err)
	}
	if e := a.Failure(); e == nil || e.Status != http.StatusTooManyRequests || e.RetryAfter.Seconds() != 3 || a.Committed() {
		t.Errorf("got %+v, want a 429 before anything is told", e)
	}
}

func TestServiceTierIsTold(t *testing.T) {
	_, body, p, err := plugintest.Prepare(t, Provider{}, pro3, plugintest.Request(`"service_tier":"priority"`), true)
	if err != nil || gjson.Get(body, "serviceTier").Str != "priority" || p.ServiceTier != "priority" {
		t.Errorf("got %s, %v", body, err)
	}
	if got := plugintest.Answer(t, Provider{}, `{"model":"m","input":"hi","stream":true}`, plugintest.File(t, "cached_usage.sse")).Get("service_tier").Str; got != "flex" {
		t.Errorf("got the tier %q", got)
	}
}

// BenchmarkDecode reads a stream of 200 events of text.
func BenchmarkDecode(b *testing.B) {
	const usage = `"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":20,"totalTokenCount":29,"promptTokensDetails":[{"modality":"TEXT","tokenCount":9}]},"modelVersion":"gemini-3-flash-preview","responseId":"r1"`
	event := "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\" and then some\"}],\"role\":\"model\"},\"index\":0}]," + usage + "}\r\n\r\n"
	body := strings.Repeat(event, 199) + "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]," + usage + "}\r\n\r\n"
	plugintest.BenchmarkDecode(b, Provider{}, body)
}
