package openai

import (
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/plugintest"
)

func TestFixtures(t *testing.T) {
	fixtures := plugintest.Fixtures(t, "testdata")
	plugintest.Run(t, Provider{}, plugins.Target{Model: "m-1", BaseURL: "http://localhost"}, fixtures)
	plugintest.Named(t, fixtures, "parallel_tools").InTurn(t, Provider{})
}

// FuzzDecode: whatever the provider sends, the client gets a legal stream or
// object.
func FuzzDecode(f *testing.F) {
	plugintest.Fuzz(f, Provider{}, plugintest.Fixtures(f, "testdata"), nil)
}
