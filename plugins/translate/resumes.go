package translate

import "slices"

// Unthinking reports whether the model is about to go on from calls before which
// it did not think: of all calls since somebody else spoke, none begins with
// reasoning that own says is the model's. It need not think again between them.
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
