package bedrock

import (
	"bytes"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/plugintest"
)

// target is a model that nobody describes.
var target = plugins.Target{Model: "us.anthropic.claude-3-7-sonnet-20250219-v1:0", BaseURL: "http://localhost", Key: "secret"}

// fixtures are the answers in testdata: <name>.events, which eventStream encodes,
// and <name>.json are what the provider sends, <name>.want.json what must come of
// either, and <name>.request.json the request, if it matters.
func fixtures(t *testing.T) []plugintest.Fixture {
	wants, err := filepath.Glob("testdata/*.want.json")
	if err != nil || len(wants) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	var all []plugintest.Fixture
	for _, want := range wants {
		name := strings.TrimSuffix(filepath.Base(want), ".want.json")
		all = append(all, plugintest.Fixture{
			Name:       name,
			Request:    string(fixture(t, name+".request.json")),
			Stream:     fixture(t, name+".events"),
			StreamType: "application/vnd.amazon.eventstream",
			JSON:       fixture(t, name+".json"),
			Want:       string(fixture(t, name+".want.json")),
		})
	}
	return all
}

func TestFixtures(t *testing.T) {
	plugintest.Run(t, new(Provider), target, fixtures(t))
}

func TestCallsAreDoneAsTheyCome(t *testing.T) {
	p, err := plugins.ParseRequest([]byte(`{"model":"m","input":"hi","stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	var sink bytes.Buffer
	a := plugins.NewAssembler(p, &sink, plugins.Options{})
	if err := new(Provider).Decode(response(http.StatusOK, fixture(t, "bug04_tools_alone.events")), a); err != nil {
		t.Fatal(err)
	}
	done, added := strings.Index(sink.String(), "output_item.done"), strings.LastIndex(sink.String(), "output_item.added")
	if done < 0 || done > added {
		t.Error("the first call is not done when the second begins")
	}
}

func TestResponseID(t *testing.T) {
	resp := response(http.StatusOK, fixture(t, "text.json"))
	resp.Header.Set("X-Amzn-Requestid", "b9ea026a")
	a := assembler(false)
	if err := new(Provider).Decode(resp, a); err != nil || a.Extraction().ResponseID != "b9ea026a" {
		t.Errorf("got %q, %v", a.Extraction().ResponseID, err)
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
	for _, stream := range []bool{false, true} {
		a := assembler(stream)
		err := new(Provider).Decode(&http.Response{Body: io.NopCloser(endless{})}, a)
		if err == nil && a.Failure() == nil {
			t.Errorf("stream %v: an answer without end is no failure", stream)
		}
	}
}
