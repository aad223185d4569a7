package plugintest

import (
	"testing"

	"github.com/weirhq/weir/plugins/translate"
)

// Provider holds a provider to the fixtures in the folder testdata, of a model,
// and to the recorded answers of an endpoint, as [Run] and [Cassettes] do. Of the
// fixture inTurn the calls must be told in turn, as [Fixture.InTurn] says.
func Provider(t *testing.T, p translate.Provider, model, endpoint, inTurn string) {
	t.Helper()
	fixtures := Fixtures(t, "testdata")
	Run(t, p, translate.Target{Model: model, BaseURL: "http://localhost"}, fixtures)
	Named(t, fixtures, inTurn).InTurn(t, p)
	t.Run("recorded", func(t *testing.T) { Cassettes(t, endpoint, func(string) translate.Provider { return p }) })
}
