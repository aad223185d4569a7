package llmgateway_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/weirhq/weir/modules/llmgateway"
)

// A configuration with which calls could only fail does not load.
func TestConfigurationsThatServeNothing(t *testing.T) {
	for name, c := range map[string]struct{ llm, want string }{
		"no provider":                 {``, "no provider is configured"},
		"an alias of no provider":     {`"providers": [{"label": "echo"}], "aliases": {"fast": ["openai/gpt-5-mini"]}`, "alias fast"},
		"an alias of a misspelt name": {`"providers": [{"label": "echo"}], "aliases": {"fast": ["eco-1"]}`, "alias fast"},
		"an alias of a provider":      {`"providers": [{"label": "echo"}], "aliases": {"fast": ["echo/echo-1"]}`, ""},
		"a key that is not set":       {`"providers": [{"label": "echo", "api_key": "{env.WEIR_TEST_NO_SUCH_KEY}"}]`, "WEIR_TEST_NO_SUCH_KEY is not set"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("XDG_DATA_HOME", t.TempDir())
			app := `"keys": [{"secret": "k"}], "stores": {"default": {"storage": {"backend": "sqlite", "path": "` + filepath.Join(t.TempDir(), "weir.db") + `"}}}`
			if c.llm != "" {
				app += ", " + c.llm
			}
			var config caddy.Config
			if err := json.Unmarshal([]byte(`{"admin": {"disabled": true}, "apps": {"llm": {`+app+`}, "http": {"servers": {"s": {"listen": ["127.0.0.1:0"],
				"routes": [{"handle": [{"handler": "llm_gateway"}]}]}}}}}`), &config); err != nil {
				t.Fatal(err)
			}
			err := caddy.Validate(&config)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want something about %q", err, c.want)
			}
		})
	}
}

func TestOptionsThatMeanNothing(t *testing.T) {
	for _, option := range []string{"max_body 0", "max_items 0", "max_tools -1", "first_byte_timeout soon", "retries often", "warp 9"} {
		d := caddyfile.NewTestDispenser("llm_gateway {\n" + option + "\n}")
		if err := new(llmgateway.Handler).UnmarshalCaddyfile(d); err == nil || !strings.Contains(err.Error(), strings.Fields(option)[0]) {
			t.Errorf("%s: got %v", option, err)
		}
	}
}
