package translate

import "github.com/weirhq/weir/plugins"

// JSONInstruction is the instruction for a model that cannot be held to
// json_object.
const JSONInstruction = "Answer with one JSON object and nothing else: no prose, no code fence."

// answerTool is the name of the tool of AnswerTool.
const answerTool = "structured_answer"

// AnswerTool returns the tool for a model that cannot be held to a JSON schema: it
// answers by calling the tool with the answer as arguments, which the plugin's
// Decode passes to the Assembler as text (IsAnswerTool). The error is a 400 if the
// client has a tool of that name.
func (p *Request) AnswerTool() (*Tool, error) {
	if p.Tool(answerTool) != nil {
		return nil, plugins.Invalid("tools", "A tool may not be named '%s' where the answer has a JSON schema.", answerTool)
	}
	return &Tool{
		Type:        "function",
		Name:        answerTool,
		Description: "Gives the final answer. " + p.Format.Description,
		Parameters:  p.Format.Schema,
	}, nil
}

// IsAnswerTool reports whether a call of the tool is the answer.
func (p *Request) IsAnswerTool(name string) bool {
	return name == answerTool && p.Format.Type == "json_schema" && p.Tool(name) == nil
}
