package chat

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// setMessages translates instructions and turns.
func (r *request) setMessages(a attempt) error {
	if a.request.Instructions != "" {
		r.addSystem(a, translate.RoleDeveloper, a.request.Instructions)
	}
	for _, t := range a.request.Turns {
		var err error
		switch t.Role {
		case translate.RoleSystem, translate.RoleDeveloper:
			err = r.addSystemTurn(a, t)
		case translate.RoleAssistant:
			err = r.addAssistant(a, t)
		case translate.RoleTool:
			err = r.addOutputs(a, t)
		default:
			err = r.addUser(a, t)
		}
		if err != nil {
			return err
		}
	}
	if len(r.Messages) == 0 { // all were blank, or reasoning alone
		return translate.EmptyInput()
	}
	if a.vendor.messages.answers {
		return r.addAnswers(a)
	}
	return nil
}

// understood is the text of a message that a vendor demands.
const understood = "Understood."

// addAnswers adds a message of the assistant between outputs and the user, and one of the
// user after the last of the assistant.
func (r *request) addAnswers(a attempt) error {
	var answered []Message
	for i, m := range r.Messages {
		if i > 0 && m.Role == translate.RoleUser && r.Messages[i-1].Role == translate.RoleTool {
			answered = append(answered, Message{Role: translate.RoleAssistant, Content: understood})
		}
		answered = append(answered, m)
	}
	if n := len(answered); n > 0 && answered[n-1].Role != translate.RoleUser && answered[n-1].Role != translate.RoleTool {
		answered = append(answered, Message{Role: translate.RoleUser, Content: translate.GoOn})
	}
	if len(answered) == len(r.Messages) {
		return nil
	}
	r.Messages = answered
	return a.request.DropWithWarning("input", "with messages between those that the provider takes only in another order")
}

func (r *request) addSystemTurn(a attempt, t translate.Turn) error {
	for _, item := range t.Items {
		parts := item.(*translate.Message).Content
		texts, err := textAlone(parts)
		if err != nil {
			return err
		}
		if a.marks(parts) {
			marked, _ := a.parts(parts) // texts
			r.Messages = append(r.Messages, Message{Role: translate.RoleSystem, Content: marked})
			continue
		}
		r.addSystem(a, t.Role, strings.Join(texts, paragraphs))
	}
	return nil
}

// addSystem adds a text of the system. If the vendor takes only one system message, the first,
// the text joins that message. After other messages it becomes a text of the user in tags.
func (r *request) addSystem(a attempt, role translate.Role, text string) {
	if !a.vendor.messages.developer || !a.isReasoning() {
		role = translate.RoleSystem
	}
	switch n := len(r.Messages); {
	case !a.vendor.messages.alternate && !a.vendor.messages.answers || n == 0:
		r.Messages = append(r.Messages, Message{Role: role, Content: text})
	case n == 1 && r.Messages[0].Role == translate.RoleSystem:
		r.Messages[0].Content = r.Messages[0].Content.(string) + "\n\n" + text
	default:
		r.addUserParts(a, []Part{{Type: "text", Text: translate.AsSystem(text)}})
	}
}

func (r *request) addUser(a attempt, t translate.Turn) error {
	for _, item := range t.Items {
		parts, err := a.parts(item.(*translate.Message).Content)
		if err != nil {
			return err
		}
		r.addUserParts(a, parts)
	}
	return nil
}

// addUserParts adds a message of the user. If user and assistant must take turns, and the
// last message is the user's, that message gets the parts.
func (r *request) addUserParts(a attempt, parts []Part) {
	n := len(r.Messages)
	if !a.vendor.messages.alternate || n == 0 || r.Messages[n-1].Role != translate.RoleUser {
		r.Messages = append(r.Messages, Message{Role: translate.RoleUser, Content: content(parts)})
		return
	}
	last := &r.Messages[n-1]
	previous, _ := last.Content.([]Part)
	if text, _ := last.Content.(string); text != "" {
		previous = []Part{{Type: "text", Text: text}}
	}
	last.Content = content(append(previous, parts...))
}

// addAssistant makes one message of a turn.
func (r *request) addAssistant(a attempt, t translate.Turn) error {
	m := Message{Role: translate.RoleAssistant}
	var messages []string
	var extra json.RawMessage // of the next call
	for _, item := range t.Items {
		switch item := item.(type) {
		case *translate.Message:
			texts, err := textAlone(item.Content)
			if err != nil {
				return err
			}
			if len(texts) > 0 {
				messages = append(messages, strings.Join(texts, "")) // citations part a sentence
			}
		case *translate.ReasoningItem:
			var err error
			if extra, err = m.replay(a, item); err != nil {
				return err
			}
		case *translate.ToolCall:
			translated := newToolCall(a, item)
			translated.ExtraContent, extra = extra, nil
			m.ToolCalls = append(m.ToolCalls, translated)
		}
	}
	if len(messages) > 0 {
		m.Content = strings.Join(messages, paragraphs)
	}
	if m.Content != nil || m.ToolCalls != nil {
		r.Messages = append(r.Messages, m)
	}
	return nil
}

// addOutputs adds the outputs of tools. Outputs are text: media follow as a message of the
// user.
func (r *request) addOutputs(a attempt, t translate.Turn) error {
	var media []Part
	for _, item := range t.Items {
		o := item.(*translate.ToolOutput)
		output := o.ContentWithFailure()
		parts, err := a.parts(output)
		if err != nil {
			return err
		}
		m := Message{Role: translate.RoleTool, Content: strings.Join(texts(output), paragraphs), ToolCallID: o.CallID}
		if a.marks(output) {
			m.Content = slices.DeleteFunc(slices.Clone(parts), func(p Part) bool { return p.Type != "text" })
		}
		r.Messages = append(r.Messages, m)
		labelled := false
		for _, p := range parts {
			if p.Type == "text" {
				continue
			}
			if !labelled {
				media = append(media, Part{Type: "text", Text: "From the output of " + o.Name + " (" + o.CallID + "):"})
				labelled = true
			}
			media = append(media, p)
		}
	}
	if media != nil {
		r.addUserParts(a, media)
	}
	return nil
}

// marks reports whether the vendor gets the marks that a content has.
func (a attempt) marks(content []translate.Part) bool {
	return a.vendor.messages.cacheMarks && slices.ContainsFunc(content, func(p translate.Part) bool { return p.CacheBreakpoint && p.Text != "" })
}

// textAlone returns the texts of a content that must have no other parts.
func textAlone(content []translate.Part) ([]string, error) {
	for i := range content {
		if c := &content[i]; !c.IsText() {
			return nil, plugins.Unsupported(c.Param, "The provider takes only text of the system and the assistant.")
		}
	}
	return texts(content), nil
}

// paragraphs is between texts that a client sends in parts of their own.
const paragraphs = "\n\n"

// texts returns the texts of a content.
func texts(content []translate.Part) []string {
	var texts []string
	for i := range content {
		if content[i].Text != "" {
			texts = append(texts, content[i].Text)
		}
	}
	return texts
}
