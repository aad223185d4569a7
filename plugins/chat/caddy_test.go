package chat

import (
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

func TestModules(t *testing.T) {
	for i := range vendors {
		v := &vendors[i]
		if v.name == "openai" {
			continue
		}
		info, err := caddy.GetModule("llm.providers." + v.name)
		if err != nil {
			t.Error(err)
			continue
		}
		if _, ok := info.New().(translate.Provider); !ok {
			t.Errorf("%s is no provider", v.name)
		}
		baseURL, keyEnv := plugins.DefaultTarget(v.name)
		if strings.HasSuffix(baseURL, "/") || strings.HasPrefix(baseURL, "https") && keyEnv == "" {
			t.Errorf("%s is at %q with the key of %q", v.name, baseURL, keyEnv)
		}
	}
}

func TestAzureCaddyfile(t *testing.T) {
	plugintest.Caddyfile(t, "llm.providers.azure", "api_version")
}
