package translate

import "slices"

// Unseal opens the encrypted content of earlier reasoning for the provider of this
// attempt, by the inverse of Options.Seal. What open does not recognize is left out
// with a warning: no provider accepts the reasoning of another. The turns of other
// copies of p stay as they are.
func (p *Request) Unseal(open func(sealed string) (string, bool)) error {
	turns := make([]Turn, 0, len(p.Turns))
	for _, t := range p.Turns {
		items := make([]Item, 0, len(t.Items))
		for _, item := range t.Items {
			r, ok := item.(*ReasoningItem)
			if !ok || r.EncryptedContent == "" {
				items = append(items, item)
				continue
			}
			content, ok := open(r.EncryptedContent)
			if !ok {
				field := at("input", r.Index) + ".encrypted_content"
				if err := p.DropWithWarning(field, "reasoning of another provider, left out"); err != nil {
					return err
				}
				continue
			}
			opened := *r
			opened.EncryptedContent = content
			items = append(items, &opened)
		}
		if len(items) > 0 {
			turns = append(turns, Turn{t.Role, items})
		}
	}
	p.Turns = turns
	return nil
}

// ResumesWithoutReasoning reports whether the model is about to go on from calls
// before which it did not think: of all turns with calls since the user spoke, none
// begins with reasoning that own says is the model's. It need not think again
// between them.
func ResumesWithoutReasoning(turns []Turn, own func(*ReasoningItem) bool) bool {
	called := false
	for _, t := range slices.Backward(turns) {
		switch t.Role {
		case RoleTool:
			called = true
		case RoleAssistant:
			first, ok := t.Items[0].(*ReasoningItem)
			if !called || ok && own(first) {
				return false
			}
		default:
			if called {
				return true
			}
		}
	}
	return called
}
