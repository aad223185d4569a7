package lineage

import (
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"
)

func TestTasksAreTheArgumentsOfCalledTools(t *testing.T) {
	const task = "Find each caller of Open, and say where."
	want, _ := observe.TextHash(task, observe.TaskLetters)
	for name, c := range map[string]struct {
		dialect plugins.Dialect
		answer  string
		found   bool
	}{
		"Chat Completions": {plugins.Chat, `{"choices":[{"message":{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"task","arguments":"{\"prompt\":\"` + task + `\"}"}}]},"finish_reason":"tool_calls"}]}`, true},
		"with spaces":      {plugins.Chat, `{"choices": [{"finish_reason": "tool_calls", "message": {"tool_calls": [{"function": {"name": "task", "arguments": "{\"prompt\": \"` + task + `\"}"}}]}}]}`, true},
		"Messages":         {plugins.Messages, `{"content":[{"type":"tool_use","id":"t","name":"Task","input":{"prompt":"` + task + `"}}],"stop_reason":"tool_use"}`, true},
		"Responses":        {plugins.Responses, `{"output":[{"type":"function_call","name":"task","arguments":"{\"prompt\":\"` + task + `\"}"}]}`, true},
		"Gemini":           {plugins.GenerateContent, `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"task","args":{"prompt":"` + task + `"}}}]}}]}`, true},
		"no call":          {plugins.Chat, `{"choices":[{"message":{"role":"assistant","content":"` + task + `"},"finish_reason":"tool_calls"}]}`, false},
	} {
		body := storage.Body{Type: "application/json", Data: []byte(c.answer)}
		calls, got := toolCalls(turnsOf(c.dialect, body))
		if c.found && !observe.Transcript(c.dialect).MayCallTools(body.Data) {
			t.Errorf("%s: the calls are not looked for", name)
		}
		if slices.Contains(got, want) != c.found {
			t.Errorf("%s: %v", name, got)
		}
		if (len(calls) == 1 && strings.EqualFold(calls[0].name, "task")) != c.found {
			t.Errorf("%s: calls %v", name, calls)
		}
	}
}
