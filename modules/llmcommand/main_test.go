package llmcommand

import (
	"bytes"
	"strings"
	"testing"
)

// What Caddy's commands say or do in terms of another binary is ours to say.
func TestOwnCommands(t *testing.T) {
	for args, want := range map[string]string{
		"":                           "query ",
		"help":                       "hash-key ",
		"--help":                     "version ",
		"version":                    "Weir ",
		"--version":                  "\nCaddy ",
		"upgrade":                    "go install github.com/weirhq/weir/xcaddy/weir@latest",
		"add-package example.com/x":  "add-package fetches a binary from caddyserver.com, which has no Weir",
		"remove-package example.com": "xcaddy build --with github.com/weirhq/weir/modules/standard",
	} {
		own := ownCommand(strings.Fields(args))
		if own == nil {
			t.Errorf("%q is Caddy's", args)
			continue
		}
		var out bytes.Buffer
		if err := own(&out); err != nil {
			out.WriteString(err.Error())
		}
		if !strings.Contains(out.String(), want) || strings.Contains(out.String(), "caddy run") {
			t.Errorf("%q says\n%s\nwant %q", args, &out, want)
		}
	}
	for _, args := range []string{"run", "help run", "stats", "validate --config x"} {
		if ownCommand(strings.Fields(args)) != nil {
			t.Errorf("%q is not Caddy's", args)
		}
	}
}
