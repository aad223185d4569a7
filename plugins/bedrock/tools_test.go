package bedrock

import (
	"regexp"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/plugintest"
)

func TestCalls(t *testing.T) {
	conversation := plugintest.Conversation{Messages: "messages", Role: "role", Calls: "content.#.toolUse.toolUseId", Outputs: "content.#.toolResult.toolUseId"}
	plugintest.Calls(t, new(Provider), claude45, conversation, true, regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`).MatchString)
}

func TestAllowedToolsLeaveOutTheOthers(t *testing.T) {
	_, body, _, err := prepare(t, claude45, plugintest.Request(`"tools":[`+function+`,`+other+`],
		"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"g"}]}`), true)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := gjson.Get(body, "toolConfig.tools.#.toolSpec.name").Raw, `["g"]`; got != want {
		t.Errorf("got the tools %s, want %s", got, want)
	}
	if got, want := gjson.Get(body, "toolConfig.toolChoice").Raw, `{"any":{}}`; got != want {
		t.Errorf("got the choice %s, want %s", got, want)
	}
}
