package inbound_test

import (
	"io"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/inbound"
	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

// The stream of a response in one piece has the grammar of streams, whatever the items are.
func TestStreamsOfResponsesHaveTheirGrammar(t *testing.T) {
	api, _ := inbound.Of(plugins.Responses)
	for name, say := range answersWithMany {
		a := translate.NewAssembler(&translate.Request{Model: "m"}, io.Discard, translate.Options{})
		a.Start("m", "r")
		for i := range 3 {
			say(a, i)
		}
		a.Finish(translate.ReasonStop)
		stream := api.Stream(gjson.ParseBytes(a.End()))
		if _, err := plugintest.Check(stream); err != nil {
			t.Errorf("%s: %v\n%s", name, err, stream)
		}
	}
}
