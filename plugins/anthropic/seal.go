package anthropic

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// The encrypted_content of our reasoning items is the block that the provider
// wants back unchanged: {"type":"thinking","thinking":...,"signature":...} or
// {"type":"redacted_thinking","data":...}.

type thinkingBlock struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

type redactedBlock struct {
	Type string `json:"type"`
	Data string `json:"data"`
}

func seal(block any) string {
	b, _ := json.Marshal(block) // structs of strings
	return string(b)
}

// unseal is the block in a reasoning's encrypted_content, nil if another
// provider made it.
func unseal(encrypted string) any {
	v := gjson.Parse(encrypted)
	if !plugins.ValidJSON([]byte(encrypted)) {
		return nil
	}
	switch v.Get("type").Str {
	case "thinking":
		if signature := v.Get("signature").Str; signature != "" {
			return thinkingBlock{"thinking", v.Get("thinking").Str, signature}
		}
	case "redacted_thinking":
		if data := v.Get("data").Str; data != "" {
			return redactedBlock{"redacted_thinking", data}
		}
	}
	return nil
}
