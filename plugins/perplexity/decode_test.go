package perplexity

import (
	"testing"

	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

func TestProvider(t *testing.T) {
	fixtures := plugintest.Fixtures(t, "testdata")
	plugintest.Run(t, Provider{}, translate.Target{Model: "m-1", BaseURL: "http://localhost"}, fixtures)
	plugintest.Named(t, fixtures, "signed_call").InTurn(t, Provider{})
}

// FuzzDecode: whatever the provider sends, the client gets a legal stream or
// object.
func FuzzDecode(f *testing.F) {
	plugintest.Fuzz(f, Provider{}, plugintest.Fixtures(f, "testdata"), nil)
}
