package transcript

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// Turn is a message of any dialect.
type Turn struct {
	// Role is the dialect's own word: user, assistant, model, tool and so on.
	Role string
	// Texts are the parts that are text, results of tools among them.
	Texts []string
	// Calls are calls of tools.
	Calls []Call
	// Results counts the results of tools, and FailedResults those that report an error.
	Results, FailedResults int
	// Finish is the finish reason of a choice of a response, "" if the body has none.
	Finish string
}

// Call is a call of a tool that a model asks for.
type Call struct {
	ID, Name string
	// Arguments are JSON text.
	Arguments string
}

// Request returns the turns of a request in their order, instructions first, without
// reasoning. A body that is not whole JSON has no turns.
func (f *Format) Request(request []byte) []Turn {
	if !json.Valid(request) {
		return nil
	}
	var turns []Turn
	for _, path := range f.Input {
		role := "user"
		switch path[strings.LastIndexByte(path, '.')+1:] {
		case "system", "instructions", "systemInstruction", "system_instruction":
			role = "system"
		}
		at := gjson.GetBytes(request, path)
		switch {
		case role == "system" || at.Type == gjson.String:
			turns = f.appendTurn(turns, at, role)
		case at.IsArray():
			at.ForEach(func(_, message gjson.Result) bool {
				turns = f.appendTurn(turns, message, role)
				return true
			})
		case at.IsObject():
			turns = f.appendTurn(turns, at, role)
		}
	}
	return turns
}

// Response returns the message of a stored response, or its choices.
func (f *Format) Response(response []byte) []Turn {
	if f.Message+f.Choices == "" || !json.Valid(response) {
		return nil
	}
	finish := gjson.GetBytes(response, f.Finish)
	if f.Choices == "" {
		turns := f.appendTurn(nil, gjson.GetBytes(response, f.Message), "assistant")
		for i := range turns {
			turns[i].Role, turns[i].Finish = "assistant", finish.Str
		}
		return turns
	}
	var turns []Turn
	reasons := finish.Array()
	for i, message := range gjson.GetBytes(response, f.Choices).Array() {
		before := len(turns)
		turns = f.appendTurn(turns, message, "assistant")
		if len(turns) > before && i < len(reasons) {
			turns[before].Finish = reasons[i].Str
		}
	}
	return turns
}

// appendTurn appends what v says, if it says anything.
func (f *Format) appendTurn(turns []Turn, v gjson.Result, role string) []Turn {
	t := Turn{Role: role}
	switch kind := v.Get("type").Str; {
	case v.IsArray():
	case v.Get("role").Str != "":
		t.Role = v.Get("role").Str
	case kind == "function_call": // Responses
		t.Role = "assistant"
	case kind == "function_call_output":
		t.Role = "tool"
	}
	eachPart(v, 0, func(part gjson.Result) {
		if part.Type == gjson.JSON {
			t.addCalls(part, f.Calls)
			t.addResult(part)
		}
		if text := textOf(part).Str; text != "" {
			t.Texts = append(t.Texts, text)
		}
	})
	if t.Texts == nil && t.Calls == nil && t.Results == 0 {
		return turns
	}
	return append(turns, t)
}

// CallForm is how a format has calls of tools: as a part that has a type, or in a member
// of a message or part. The paths are within the call.
type CallForm struct {
	Type, Member        string // one of the two
	ID, Name, Arguments string
}

// MayCallTools reports whether a response, which may be a stream, may call a tool.
func (f *Format) MayCallTools(response []byte) bool {
	return slices.ContainsFunc(f.Calls, func(c CallForm) bool {
		if c.Member != "" { // the colon: a finish reason may have the same name
			return bytes.Contains(response, []byte(`"`+c.Member+`":`))
		}
		return bytes.Contains(response, []byte(`"`+c.Type+`"`))
	})
}

// addCalls adds the calls that a message or part has or is.
func (t *Turn) addCalls(part gjson.Result, forms []CallForm) {
	kind := part.Get("type").Str
	for _, c := range forms {
		add := func(_, call gjson.Result) bool {
			if name := call.Get(c.Name).Str; name != "" {
				t.Calls = append(t.Calls, Call{call.Get(c.ID).Str, name, call.Get(c.Arguments).String()})
			}
			return true
		}
		switch call := part.Get(c.Member); {
		case c.Type != "" && c.Type == kind:
			add(call, part)
		case c.Type != "":
		case call.IsArray():
			call.ForEach(add)
		case call.IsObject():
			add(call, call)
		}
	}
}

// addResult counts a message or part that is the result of a tool.
func (t *Turn) addResult(part gjson.Result) {
	kind, converse := part.Get("type").Str, part.Get("toolResult")
	text := part.Get("content")
	switch {
	case part.Get("role").Str == "tool": // Chat, Cohere, Ollama
	case kind == "tool_result": // Messages
	case converse.Exists(), part.Get("functionResponse").Exists(): // Converse, Gemini
	case kind == "function_call_output": // Responses
		text = part.Get("output")
	default:
		return
	}
	t.Results++
	if part.Get("is_error").Bool() || converse.Get("status").Str == "error" || reportsError(text.Str) {
		t.FailedResults++
	}
}

// reportsError reports whether a text is like the answers of tools that failed. Most dialects
// have no other sign.
func reportsError(text string) bool {
	return len(text) >= len("error") && strings.EqualFold(text[:len("error")], "error") || strings.HasPrefix(text, `{"error"`)
}
