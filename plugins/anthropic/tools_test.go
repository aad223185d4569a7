package anthropic

import (
	"regexp"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/plugintest"
)

func TestCalls(t *testing.T) {
	conversation := plugintest.Conversation{Messages: "messages", Role: "role", Calls: "content.#.id", Outputs: "content.#.tool_use_id"}
	plugintest.Calls(t, Provider{}, claude5, conversation, true, regexp.MustCompile(`^[a-zA-Z0-9_-]+$`).MatchString)
}

func TestAllowedToolsLeaveOutTheOthers(t *testing.T) {
	fields := `"parallel_tool_calls":false,"tools":[` + function + `,` + other + `,{"type":"web_search"}],
		"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"g"},{"type":"web_search"}]}`
	_, body, _, err := prepare(t, claude5, plugintest.Request(fields), true)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := gjson.Get(body, "tools.#.name").Raw, `["g","web_search"]`; got != want {
		t.Errorf("got the tools %s, want %s", got, want)
	}
	if got, want := gjson.Get(body, "tool_choice").Raw, `{"type":"any","disable_parallel_tool_use":true}`; got != want {
		t.Errorf("got the choice %s, want %s", got, want)
	}
}
