package gemini

import (
	"encoding/json"

	"github.com/tidwall/gjson"
)

// sealed is the encrypted_content of our reasoning items: what the provider
// wants back that no other item could hold.
type sealed struct {
	// Parts go back as they are, in their place.
	Parts []json.RawMessage `json:"parts,omitempty"`
	// Call is the thought signature of the call that follows.
	Call string `json:"call,omitempty"`
}

// unseal reads an encrypted_content, "" for reasoning that left nothing to bring
// back. It is false where another provider made it.
func unseal(encrypted string) (sealed, bool) {
	var s sealed
	if encrypted == "" {
		return s, true
	}
	if json.Unmarshal([]byte(encrypted), &s) != nil || len(s.Parts) == 0 && s.Call == "" {
		return sealed{}, false
	}
	for _, part := range s.Parts {
		if !gjson.ParseBytes(part).IsObject() {
			return sealed{}, false
		}
	}
	return s, true
}

// signedText is the part of a signature that belongs to the text before it.
func signedText(signature string) json.RawMessage {
	b, _ := json.Marshal(textPart{ThoughtSignature: signature}) // strings
	return b
}

// textSignature is the signature in what signedText made, "" in other parts.
func textSignature(part json.RawMessage) string {
	v := gjson.ParseBytes(part)
	if text := v.Get("text"); text.Type != gjson.String || text.Str != "" {
		return ""
	}
	return v.Get("thoughtSignature").Str
}
