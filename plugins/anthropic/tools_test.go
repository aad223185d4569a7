package anthropic

import (
	"regexp"
	"testing"

	"github.com/weirhq/weir/plugins/plugintest"
)

func TestCalls(t *testing.T) {
	plugintest.Calls(t, Provider{}, claude5, "messages.#.content.#.id", "messages.#.role", regexp.MustCompile(`^[a-zA-Z0-9_-]+$`).MatchString)
}

func TestAllowedToolsLeaveOutTheOthers(t *testing.T) {
	fields := `"parallel_tool_calls":false,"tools":[` + function + `,` + other + `,{"type":"web_search"}],
		"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"g"},{"type":"web_search"}]}`
	plugintest.Maps(t, Provider{}, claude5, fields,
		"[tools.#.name,tool_choice]", `[["g","web_search"],{"type":"any","disable_parallel_tool_use":true}]`)
}
