package transcript

// Runs is the transcript of OpenAI's Assistants. A run that streams has its messages and steps
// beside what a run has.
// https://platform.openai.com/docs/api-reference/assistants-streaming/events
var Runs = Format{
	Input:   []string{"instructions", "additional_messages", "thread.messages"},
	Output:  []string{"messages.#.content.#.text.value"},
	Message: "[messages.#.content.#.text.value,steps.#.step_details]",
	Finish:  "status",
	Calls:   []CallForm{chatCalls},
	add:     addRunEvent,
}

var runMessage = Object(Fields{
	"content": List(Fields{"text": Object(Fields{"value": Join, "annotations": Collect}), "refusal": Join}),
})

var runStep = Object(Fields{
	"step_details": Object(Fields{
		"tool_calls": List(Fields{
			"function":         Object(Fields{"name": joinNames, "arguments": Join}),
			"code_interpreter": Object(Fields{"input": Join, "outputs": Collect}),
		}),
	}),
})

// addRunEvent adds an event by the object that it has: a run, a message, a step, or a piece of one.
func addRunEvent(root *node, e event) {
	key := e.Get("id").Str
	switch e.Get("object").Str {
	case "thread.run":
		root.add(e.Result, Merge)
	case "thread.message":
		addRunObject(root.list("messages").ensure(key), e, "content.0", runMessage)
	case "thread.message.delta":
		e.add(root.list("messages").ensure(key), e.Get("delta"), runMessage)
	case "thread.run.step":
		addRunObject(root.list("steps").ensure(key), e, "step_details.tool_calls.0", runStep)
	case "thread.run.step.delta":
		e.add(root.list("steps").ensure(key), e.Get("delta"), runStep)
	case "":
		if e.Get("message").Exists() || e.Get("error").Exists() {
			root.add(e.Result, Merge)
		}
	}
}

// addRunObject adds a message or a step. If it has what comes in pieces, it has all of that.
func addRunObject(n *node, e event, pieces string, s *Shape) {
	if e.Get(pieces).Exists() {
		n.set(e.Raw)
	} else {
		n.add(e.Result, s)
	}
}
