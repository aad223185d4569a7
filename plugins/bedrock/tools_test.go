package bedrock

import (
	"regexp"
	"testing"

	"github.com/weirhq/weir/plugins/plugintest"
)

func TestCalls(t *testing.T) {
	plugintest.Calls(t, new(Provider), claude45, "messages.#.content.#.toolUse.toolUseId", "messages.#.role", regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`).MatchString)
}

func TestAllowedToolsLeaveOutTheOthers(t *testing.T) {
	plugintest.Maps(t, new(Provider), claude45, `"tools":[`+function+`,`+other+`],
		"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"g"}]}`,
		"[toolConfig.tools.#.toolSpec.name,toolConfig.toolChoice]", `[["g"],{"any":{}}]`)
}
