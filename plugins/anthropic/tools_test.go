package anthropic

import (
	"regexp"
	"testing"

	"github.com/weirhq/weir/plugins/plugintest"
)

func TestCalls(t *testing.T) {
	conversation := plugintest.Conversation{Messages: "messages", Role: "role", Calls: "content.#.id", Outputs: "content.#.tool_use_id"}
	plugintest.Calls(t, Provider{}, claude5, conversation, true, regexp.MustCompile(`^[a-zA-Z0-9_-]+$`).MatchString)
}

func TestAllowedToolsLeaveOutTheOthers(t *testing.T) {
	fields := `"parallel_tool_calls":false,"tools":[` + function + `,` + other + `,{"type":"web_search"}],
		"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"g"},{"type":"web_search"}]}`
	plugintest.Maps(t, Provider{}, claude5, fields,
		"[tools.#.name,tool_choice]", `[["g","web_search"],{"type":"any","disable_parallel_tool_use":true}]`)
}
