package chat

import (
	"testing"

	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

func TestCassettes(t *testing.T) {
	plugintest.Cassettes(t, "chat.completions", func(name string) translate.Provider {
		if p := For(name); p != nil {
			return p
		}
		return For("compatible")
	})
}
