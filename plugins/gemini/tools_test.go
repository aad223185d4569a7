package gemini

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/plugintest"
)

func TestCalls(t *testing.T) {
	plugintest.Calls(t, Provider{}, pro3, "contents.#.parts.#.functionCall.id", "contents.#.role", nil)
}

func TestAllowedToolsLeaveOutTheOthers(t *testing.T) {
	tools := `"tools":[` + function + `,` + other + `,{"type":"web_search"}],"tool_choice":{"type":"allowed_tools",`
	for choice, want := range map[string]string{
		`"mode":"required","tools":[{"type":"function","name":"g"}]}`:                   `{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["g"]}}`,
		`"mode":"auto","tools":[{"type":"function","name":"g"}]}`:                       `{"functionCallingConfig":{"mode":"VALIDATED","allowedFunctionNames":["g"]}}`,
		`"mode":"auto","tools":[{"type":"web_search"}]}`:                                `{"functionCallingConfig":{"mode":"NONE"},"includeServerSideToolInvocations":true}`,
		`"mode":"auto","tools":[{"type":"web_search"},{"type":"function","name":"f"}]}`: `{"functionCallingConfig":{"mode":"VALIDATED","allowedFunctionNames":["f"]},"includeServerSideToolInvocations":true}`,
	} {
		_, body, _, err := plugintest.Prepare(t, Provider{}, pro3, plugintest.Request(tools+choice), true)
		if err != nil {
			t.Fatal(err)
		}
		if got := gjson.Get(body, "toolConfig").Raw; got != want {
			t.Errorf("%s: got %s, want %s", choice, got, want)
		}
		if searches := gjson.Get(body, "tools.#.googleSearch").Raw != "[]"; searches != strings.Contains(choice, "web_search") {
			t.Errorf("%s: got %s", choice, gjson.Get(body, "tools"))
		}
	}
}
