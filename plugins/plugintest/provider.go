package plugintest

import (
	"testing"

	"github.com/weirhq/weir/plugins/translate"
)

// Provider runs a provider with a model against the fixtures in the folder testdata
// and the recorded answers of an endpoint, as [Run] and [Cassettes] do. The fixture
// named inTurn must pass [Fixture.InTurn].
func Provider(t *testing.T, p translate.Provider, model, endpoint, inTurn string) {
	t.Helper()
	fixtures := Fixtures(t, "testdata")
	Run(t, p, translate.Target{Model: model, BaseURL: "http://localhost"}, fixtures)
	Named(t, fixtures, inTurn).InTurn(t, p)
	t.Run("recorded", func(t *testing.T) { Cassettes(t, endpoint, func(string) translate.Provider { return p }) })
}
