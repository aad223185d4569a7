package gemini

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/weirhq/weir/plugins/translate"
)

// content is a turn of the user or the model. Its parts are a *textPart, a mediaPart, a callPart, a
// responsePart, or the JSON of a part that came back from the client.
type content struct {
	Role  string `json:"role,omitempty"`
	Parts []any  `json:"parts"`
}

type textPart struct {
	Text             string `json:"text"`
	ThoughtSignature string `json:"thoughtSignature,omitempty"`
}

type callPart struct {
	FunctionCall     functionCall `json:"functionCall"`
	ThoughtSignature string       `json:"thoughtSignature,omitempty"`
}

type functionCall struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type responsePart struct {
	FunctionResponse functionResponse `json:"functionResponse"`
}

type functionResponse struct {
	ID       string         `json:"id"`
	Name     string         `json:"name"`
	Response functionResult `json:"response"`
}

// functionResult has the keys that Google recommends for results that are no objects.
type functionResult struct {
	Output *string `json:"output,omitempty"`
	Error  *string `json:"error,omitempty"`
}

// The roles of a content.
const (
	roleUser  = "user"
	roleModel = "model"
)

// unsignedSignature stands for a missing signature: Gemini did not make the call, or the client lost its
// signature (https://ai.google.dev/gemini-api/docs/thought-signatures).
const unsignedSignature = "skip_thought_signature_validator"

func (r *request) setMessages() error {
	system, turns, err := r.request.Alternate()
	if err != nil {
		return err
	}
	if len(system) > 0 {
		r.SystemInstruction = new(content)
		if r.SystemInstruction.Parts, err = r.parts(system); err != nil {
			return err
		}
	}
	for _, t := range turns {
		if t.Role == translate.RoleTool {
			err = r.addOutputs(t)
		} else {
			err = r.addTurn(t)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addTurn adds a turn of the user or the model, with the model's signatures in their places.
func (r *request) addTurn(t translate.Turn) error {
	role, signature := roleUser, ""
	if t.Role == translate.RoleAssistant {
		role = roleModel
	}
	if r.model.hasLevels() {
		signature = unsignedSignature // of the first call, unless it has one
	}
	return t.Visit(translate.Visitor{
		Message: func(item *translate.Message) error {
			parts, err := r.parts(item.Content)
			r.add(role, parts...)
			return err
		},
		Reasoning: func(item *translate.ReasoningItem) error {
			s, ok := ownReasoning(item.EncryptedContent)
			if !ok {
				return r.request.DropForeignReasoning(item)
			}
			for _, part := range s.Parts {
				r.addHeld(part)
			}
			signature = cmp.Or(s.Call, signature)
			return nil
		},
		Call: func(call *translate.ToolCall, args json.RawMessage) error {
			r.add(role, callPart{functionCall{call.CallID, call.Name, args}, signature})
			signature = ""
			return nil
		},
	})
}

// addHeld adds a part that the client sends back. The signature of a streamed text is a part without
// text: addHeld moves it to the text before.
func (r *request) addHeld(part json.RawMessage) {
	if signature := textSignature(part); signature != "" && len(r.Contents) > 0 {
		last := r.Contents[len(r.Contents)-1]
		text, ok := last.Parts[len(last.Parts)-1].(*textPart)
		if ok && last.Role == roleModel && text.ThoughtSignature == "" {
			text.ThoughtSignature = signature
			return
		}
	}
	r.add(roleModel, part)
}

// addOutputs adds all results of functions to one content, as Gemini requires. Results can only have text,
// so media follow after all of them.
func (r *request) addOutputs(t translate.Turn) error {
	var media []any
	for _, item := range t.Items {
		o := item.(*translate.ToolOutput)
		var texts []string
		var other []any
		for i := range o.Content {
			part := &o.Content[i]
			if part.IsText() {
				texts = append(texts, part.Text)
				continue
			}
			m, err := r.media(part)
			if err != nil {
				return err
			}
			other = append(other, m)
		}
		text := strings.Join(texts, "\n")
		result := functionResult{Output: &text}
		if o.Failed {
			result = functionResult{Error: &text}
		}
		r.add(roleUser, responsePart{functionResponse{o.CallID, o.Name, result}})
		if len(other) > 0 {
			media = append(media, &textPart{Text: "Output of " + o.Name + ", call " + o.CallID + ":"})
			media = append(media, other...)
		}
	}
	r.add(roleUser, media...)
	return nil
}

// add adds to the last content, or to a new one if the role changes.
func (r *request) add(role string, parts ...any) {
	if len(parts) == 0 {
		return
	}
	if n := len(r.Contents); n > 0 && r.Contents[n-1].Role == role {
		r.Contents[n-1].Parts = append(r.Contents[n-1].Parts, parts...)
		return
	}
	r.Contents = append(r.Contents, content{role, parts})
}

func (r *request) parts(message []translate.Part) ([]any, error) {
	parts := make([]any, len(message))
	for i := range message {
		part := &message[i]
		if part.IsText() {
			parts[i] = &textPart{Text: part.Text}
			continue
		}
		var err error
		if parts[i], err = r.media(part); err != nil {
			return nil, err
		}
	}
	return parts, nil
}
