package cohere

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	plugintest.Run(t, Provider{}, plugins.Target{Model: "m-1", BaseURL: "http://localhost"}, fixtures(t))
}

func TestCallsAreDoneAsTheyCome(t *testing.T) {
	p, err := plugins.ParseRequest([]byte(`{"model":"m","input":"hi","stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	var sink bytes.Buffer
	a := plugins.NewAssembler(p, &sink, plugins.Options{})
	stream, err := os.ReadFile("testdata/plan_parallel_tools.sse")
	if err != nil {
		t.Fatal(err)
	}
	if err := (Provider{}).Decode(response(http.StatusOK, string(stream)), a); err != nil {
		t.Fatal(err)
	}
	calls := sink.String()[strings.Index(sink.String(), `"call_id"`):]
	done, added := strings.Index(calls, "output_item.done"), strings.Index(calls, "output_item.added")
	if done < 0 || done > added {
		t.Error("the first call is not done when the second begins")
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

func TestObjectForStream(t *testing.T) {
	body, err := os.ReadFile("testdata/text.json")
	if err != nil {
		t.Fatal(err)
	}
	var sink bytes.Buffer
	a := plugins.NewAssembler(&plugins.Prompt{Model: "m", Stream: true}, &sink, plugins.Options{})
	resp := response(http.StatusOK, string(body))
	resp.Header.Set("Content-Type", "application/json; charset=utf-8")
	if err := (Provider{}).Decode(resp, a); err != nil {
		t.Fatal(err)
	}
	if a.Failure() != nil || !bytes.Contains(sink.Bytes(), []byte("response.output_text.delta")) {
		t.Errorf("the client gets %v and %s", a.Failure(), sink.Bytes())
	}
}
