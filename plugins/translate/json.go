package translate

import (
	"bytes"
	"encoding/json"
)

// appendCompact appends valid JSON without white space between its tokens.
func appendCompact(b []byte, raw json.RawMessage) []byte {
	w := bytes.NewBuffer(b)
	if json.Compact(w, raw) != nil {
		return append(b, "null"...)
	}
	return w.Bytes()
}

// compact is what a provider sent, in UTF-8 and without white space between its
// tokens, nil unless it is valid and begins with open.
func compact(raw json.RawMessage, open byte) []byte {
	b := appendCompact(nil, bytes.ToValidUTF8(raw, []byte("\uFFFD")))
	if len(b) == 0 || b[0] != open {
		return nil
	}
	return b
}

// appendElements appends elements to those of an array.
func appendElements(b, elements []byte) []byte {
	if len(b) > 0 && len(elements) > 0 {
		b = append(b, ',')
	}
	return append(b, elements...)
}
