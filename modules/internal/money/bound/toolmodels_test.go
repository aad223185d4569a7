package bound

import (
	"slices"
	"testing"

	"github.com/weirhq/weir/plugins"
)

// A tool calls a model also where the provider chooses which.
func TestToolModels(t *testing.T) {
	for _, body := range []string{
		`{"tools":[{"type":"image_generation"}]}`,
		`{"tools":[{"type":"image_generation","model":null}]}`,
		`{"tools":[{"type":"namespace","tools":[{"type":"image_generation"}]}]}`,
		`{"input":[{"type":"additional_tools","tools":[{"type":"image_generation","quality":"high"}]}]}`,
		`{"tools":[{"type":"image_generation","model":"gpt-image-1"}]}`,
	} {
		object, _ := plugins.ParseObject([]byte(body))
		if got := JSON(plugins.Responses, object).ToolModels(); !slices.Equal(got, []string{"gpt-image-1"}) {
			t.Errorf("%s calls %q", body, got)
		}
	}
}
