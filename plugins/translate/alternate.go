package translate

import (
	"strings"

	"github.com/weirhq/weir/plugins"
)

// opening is the user's message where a conversation does not begin with one.
const opening = "(The conversation begins.)"

// GoOn is the user's message where a conversation does not end with one, for providers that do not
// continue what the assistant has said.
const GoOn = "Go on."

// WithGoOn is what a warning says of it.
const WithGoOn = "with a message of the user at the end, because the model does not continue the assistant's"

// Alternate returns the instructions and turns for a provider that has one system
// prompt, takes user and assistant in turn beginning with the user, and refuses
// blank texts. What the system says before all others is the system prompt; what
// it says later becomes text of the user in tags, so that it keeps its place. No
// part is shared with p.
func (p *Request) Alternate() (system []Part, turns []Turn, err error) {
	system = appendNotBlank(nil, []Part{{Param: "instructions", Type: PartText, Text: p.Instructions}})
	for _, t := range p.Turns {
		switch t.Role {
		case RoleTool:
			turns = append(turns, t)
			continue
		case RoleSystem, RoleDeveloper:
			if len(turns) == 0 {
				if system, err = appendSystem(system, t); err != nil {
					return nil, nil, err
				}
				continue
			}
			t.Role = RoleUser
			t.Items = wrapTexts(t.Items, AsSystem)
		default:
			t.Items = wrapTexts(t.Items, func(text string) string { return text })
		}
		if len(t.Items) > 0 {
			turns = append(turns, t)
		}
	}
	if len(turns) == 0 || turns[0].Role != RoleUser {
		m := &Message{Role: RoleUser, Content: []Part{{Type: PartText, Text: opening}}}
		turns = append([]Turn{{RoleUser, []Item{m}}}, turns...)
	}
	return system, turns, nil
}

func appendSystem(system []Part, t Turn) ([]Part, error) {
	for _, item := range t.Items {
		content := item.(*Message).Content
		for i := range content {
			if part := &content[i]; !part.IsText() {
				return nil, plugins.Unsupported(part.Param, "The system can only say text before the conversation begins.")
			}
		}
		system = appendNotBlank(system, content)
	}
	return system, nil
}

// AsSystem is a text of the system that the user says, where the system cannot.
func AsSystem(text string) string { return "<system>\n" + text + "\n</system>" }

// wrapTexts drops blank texts, and wraps each other text.
func wrapTexts(items []Item, wrap func(text string) string) []Item {
	var merged []Item
	for _, item := range items {
		m, ok := item.(*Message)
		if !ok {
			merged = append(merged, item)
			continue
		}
		content := appendNotBlank(nil, m.Content)
		if len(content) == 0 {
			continue
		}
		for i := range content {
			if content[i].IsText() {
				content[i].Text = wrap(content[i].Text)
			}
		}
		wrapped := *m
		wrapped.Content = content
		merged = append(merged, &wrapped)
	}
	return merged
}

func appendNotBlank(parts, more []Part) []Part {
	for _, part := range more {
		if !part.IsText() || strings.TrimSpace(part.Text) != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// IsText reports whether the part is text, said or refused, and not media.
func (p *Part) IsText() bool { return p.Type == PartText || p.Type == PartRefusal }

// DropDetail drops the detail at which the model should look at an image.
func (p *Request) DropDetail(part *Part) error {
	if part.Detail == "" || part.Detail == "auto" {
		return nil
	}
	return p.DropWithWarning(part.Param+".detail", NotSupported)
}
