package openai

import (
	"testing"

	"github.com/weirhq/weir/plugins/plugintest"
)

func TestCassettes(t *testing.T) { plugintest.Cassettes(t, Provider{}, "responses") }
