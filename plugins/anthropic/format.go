package anthropic

import (
	"encoding/json"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// outputFormat is what the text of the answer must be.
type outputFormat struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
}

// answerTool is the tool by whose arguments models without an output format
// answer. Decode makes text of them.
const answerTool = "structured_answer"

const jsonInstruction = "Answer with one JSON object and nothing else: no prose, no code fence."

func (r *request) setFormat(p *translate.Request, m *model) error {
	switch {
	case p.Format.Type == "json_object":
		r.System = append(r.System, &textBlock{Type: "text", Text: jsonInstruction})
		return drop(p, "text.format", "not enforced by the provider, an instruction in its place")
	case p.Format.Type != "json_schema":
		return nil
	case m.is(noFormat):
		return r.setAnswerTool(p)
	}
	schema, err := Enforceable(p, "text.format.schema", p.Format.Schema)
	if err != nil {
		return err
	}
	r.output().Format = &outputFormat{"json_schema", schema}
	return nil
}

// setAnswerTool leaves the model no way to answer but by a call: to the
// client's tools, where there are any, or with the answer.
func (r *request) setAnswerTool(p *translate.Request) error {
	switch {
	case p.Tool(answerTool) != nil:
		return plugins.Invalid("tools", "A tool may not be named '%s' where the answer has a JSON schema.", answerTool)
	case p.ToolChoice.Mode == "required":
		return nil // the turn ends in a call, not in an answer
	case p.ToolChoice.Mode == "none":
		r.Tools = nil
	}
	r.Tools = append(r.Tools, tool{
		Name:        answerTool,
		Description: "Gives the final answer. " + p.Format.Description,
		InputSchema: objectSchema(p.Format.Schema),
	})
	r.ToolChoice = &toolChoice{Type: "any", DisableParallelToolUse: true}
	return nil
}
