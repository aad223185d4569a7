package gemini

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/plugintest"
)

// fixtures are the answers in testdata: <name>.sse and <name>.json are what the
// provider sends, <name>.want.json what must come of either, and
// <name>.request.json the request, if it matters.
func fixtures(t *testing.T) []plugintest.Fixture {
	wants, err := filepath.Glob("testdata/*.want.json")
	if err != nil || len(wants) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	var all []plugintest.Fixture
	for _, want := range wants {
		path := strings.TrimSuffix(want, ".want.json")
		read := func(suffix string) []byte {
			b, err := os.ReadFile(path + suffix)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			return b
		}
		all = append(all, plugintest.Fixture{
			Name:    filepath.Base(path),
			Request: string(read(".request.json")),
			Stream:  read(".sse"),
			JSON:    read(".json"),
			Want:    string(read(".want.json")),
		})
	}
	return all
}

func TestFixtures(t *testing.T) {
	plugintest.Run(t, Provider{}, plugins.Target{Model: "gemini-3-test", BaseURL: "http://localhost"}, fixtures(t))
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

// endless is a body that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestEndlessAnswer(t *testing.T) {
	a := plugins.NewAssembler(&plugins.Prompt{Model: "m"}, nil, plugins.Options{})
	if err := (Provider{}).Decode(&http.Response{Body: io.NopCloser(endless{})}, a); err != nil {
		t.Fatal(err)
	}
	if a.Failure() == nil {
		t.Error("an answer without end is no failure")
	}
}

// answer is the response to a request that the provider answers with body.
func answer(t *testing.T, request, body string) gjson.Result {
	t.Helper()
	p, err := plugins.ParseRequest([]byte(request))
	if err != nil {
		t.Fatal(err)
	}
	a := plugins.NewAssembler(p, io.Discard, plugins.Options{})
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
