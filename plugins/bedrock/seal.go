package bedrock

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// The encrypted_content of our reasoning items is the reasoningContent that the
// model wants back unchanged: {"reasoningText":{"text":...,"signature":...}} or
// {"redactedContent":...}.

type reasoningContent struct {
	ReasoningText   *reasoningText `json:"reasoningText,omitempty"`
	RedactedContent []byte         `json:"redactedContent,omitempty"`
}

type reasoningText struct {
	Text      string `json:"text"`
	Signature string `json:"signature"`
}

func seal(c reasoningContent) string {
	b, _ := json.Marshal(c) // strings
	return string(b)
}

// unseal is the reasoningContent in a reasoning's encrypted_content, nil if another
// provider made it.
func unseal(encrypted string) json.RawMessage {
	if !plugins.ValidJSON([]byte(encrypted)) {
		return nil
	}
	v := gjson.Parse(encrypted)
	if v.Get("reasoningText.signature").Str == "" && v.Get("redactedContent").Str == "" {
		return nil
	}
	return json.RawMessage(encrypted)
}
