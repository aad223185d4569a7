package translate

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// CustomParameters is the schema by which a provider without custom tools
// offers one as a function. The Assembler takes the input out of its arguments.
var CustomParameters = json.RawMessage(
	`{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}`)

// AsFunction returns the description and the parameters of a tool as a function. The
// description has the grammar of a custom tool, because functions have no other place for it.
func (t *Tool) AsFunction() (description string, parameters json.RawMessage) {
	if t.Type != "custom" {
		return t.Description, ObjectSchema(t.Parameters)
	}
	description = t.Description
	if definition := gjson.GetBytes(t.Format, "definition").Str; definition != "" {
		description += "\n\nThe input matches this " + gjson.GetBytes(t.Format, "syntax").Str + " grammar:\n" + definition
	}
	return description, CustomParameters
}

// ObjectSchema returns the schema with the type that functions require.
func ObjectSchema(schema json.RawMessage) json.RawMessage {
	v := gjson.ParseBytes(schema)
	switch {
	case v.Get("type").Exists():
		return schema
	case len(v.Map()) == 0:
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return append(json.RawMessage(`{"type":"object",`), v.Raw[1:]...)
}

// IsStrict reports whether the arguments must match the parameters.
func (t *Tool) IsStrict() bool { return t.Strict != nil && *t.Strict }

// Field returns a field of the tool as the client sent it, nil if it is null or
// absent.
func (t *Tool) Field(path string) json.RawMessage { return fieldOf(t.Raw, path) }

// DropHints drops fields that only tune a hosted tool. The size "medium" is the default.
func (p *Request) DropHints(t *Tool, hints ...string) error {
	for _, hint := range hints {
		if v := t.Field(hint); v == nil || string(v) == `"medium"` {
			continue
		}
		if err := p.DropWithWarning(t.Param+"."+hint, NotSupported); err != nil {
			return err
		}
	}
	return nil
}

// Allows reports whether the choice allows the tool.
func (c ToolChoice) Allows(t *Tool) bool {
	name := t.Name
	if t.Hosted() {
		name = t.Type
	}
	return c.Allowed == nil || slices.Contains(c.Allowed, name)
}

// MapTools translates the tools that the choice allows. The error is a 400 if a call is
// required and there is no tool to call.
func MapTools[T any](p *Request, translate func(*Tool) (T, error)) ([]T, error) {
	var tools []T
	for i := range p.Tools {
		if !p.ToolChoice.Allows(&p.Tools[i]) {
			continue
		}
		t, err := translate(&p.Tools[i])
		if err != nil {
			return nil, err
		}
		tools = append(tools, t)
	}
	if p.ToolChoice.Mode == "required" && len(tools) == 0 {
		return nil, NoToolError()
	}
	return tools, nil
}

// NoToolError returns the 400 for a choice that requires a call if there is no tool.
func NoToolError() error {
	return plugins.Invalid("tool_choice", "The tool choice requires a call, but there is no tool to call.")
}

// Object returns the arguments as a JSON object: {} if there are none, {"input": "..."} for a custom
// tool, and {"INVALID_JSON": "..."} for text that is no object, such as an answer that was cut off.
func (c *ToolCall) Object() json.RawMessage {
	switch {
	case c.Custom:
		return append(plugins.AppendString([]byte(`{"input":`), c.Arguments), '}')
	case noArguments(c.Arguments):
		return json.RawMessage("{}")
	case !IsObject(c.Arguments):
		return InvalidArguments(c.Arguments)
	}
	return json.RawMessage(c.Arguments)
}

// IsObject reports whether arguments are what providers and clients that expect an object take.
func IsObject(arguments string) bool {
	return plugins.ValidJSON([]byte(arguments)) && gjson.Parse(arguments).IsObject()
}

// unquoted returns the object that arguments have as a JSON string, as some models and clients write it, or
// else the arguments (https://github.com/quarkiverse/quarkus-langchain4j/pull/2642,
// https://github.com/vllm-project/vllm/pull/54964).
func unquoted(arguments string) string {
	if strings.HasPrefix(strings.TrimSpace(arguments), `"`) && plugins.ValidJSON([]byte(arguments)) {
		if s := gjson.Parse(arguments).Str; IsObject(s) {
			return s
		}
	}
	return arguments
}

// InvalidArguments wraps arguments that are no object as Anthropic advises, so that nobody takes them for
// a call without arguments, and a model can see what was wrong with them
// (https://platform.claude.com/docs/en/agents-and-tools/tool-use/fine-grained-tool-streaming).
func InvalidArguments(arguments string) json.RawMessage {
	return append(plugins.AppendString([]byte(`{"INVALID_JSON":`), arguments), '}')
}

// noArguments reports whether arguments say that there are none, as some models do with a space or
// null (https://github.com/xorbitsai/xagent/issues/1501).
func noArguments(arguments string) bool {
	arguments = strings.TrimSpace(arguments)
	return arguments == "" || arguments == "null"
}

// FailedCall says that a call failed, for providers that refuse an empty output, or that have no
// mark of failed calls.
const FailedCall = "(The call failed.)"

// ContentWithFailure returns the content. If the call failed, FailedCall comes first, for providers that
// have no mark of failed calls.
func (o *ToolOutput) ContentWithFailure() []Part {
	if !o.Failed {
		return o.Content
	}
	return append([]Part{{Type: PartText, Text: FailedCall}}, o.Content...)
}

// IsAlphanumeric reports whether c is a letter or digit of ASCII.
func IsAlphanumeric(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// JSONInstruction is the instruction for a model that cannot be held to
// json_object.
const JSONInstruction = "Answer with one JSON object and nothing else: no prose, no code fence."

const answerTool = "structured_answer"

// AnswerTool returns the tool for a model that cannot be held to a JSON schema: it
// answers by calling the tool with the answer as arguments, which the plugin's
// Decode passes to the Assembler as text (IsAnswerTool). It is nil if a tool must be called:
// then the turn ends in a call, not in an answer. The error is a 400 if the client has a
// tool of that name.
func (p *Request) AnswerTool() (*Tool, error) {
	if p.Tool(answerTool) != nil {
		return nil, plugins.Invalid("tools", "A tool may not be named '%s' where the answer has a JSON schema.", answerTool)
	}
	if p.ToolChoice.Mode == "required" {
		return nil, nil
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

// findTool returns the tool that a model means by a name, nil if there is none. Models leave out the
// namespace of a tool, put a dot behind it, or begin a name with "functions.", as some are trained
// to: such a name means the one tool that it fits.
func (p *Request) findTool(name string) *Tool {
	bare := strings.TrimPrefix(name, "functions.")
	if t := cmp.Or(p.Tool(name), p.Tool(bare)); t != nil {
		return t
	}
	var means *Tool
	for i := range p.Tools {
		t := &p.Tools[i]
		if t.Hosted() || !t.isCalled(bare) {
			continue
		}
		if means != nil {
			return nil
		}
		means = t
	}
	return means
}

// isCalled reports whether a tool may be meant by a name, with its namespace or without.
func (t *Tool) isCalled(name string) bool {
	given := cmp.Or(t.given, t.Name)
	namespace, bare := t.Namespace, strings.TrimPrefix(given, t.Namespace+separator)
	if t.MCP != nil {
		namespace, bare = t.MCP.Server, t.MCP.Name
	}
	return name == given || namespace != "" && (name == bare || name == namespace+"."+bare)
}
