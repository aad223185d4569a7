package anthropic

import (
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
	plugintest.Run(t, Provider{}, plugins.Target{Model: "claude-3-7-sonnet-latest", BaseURL: "http://localhost"}, fixtures(t))
}
