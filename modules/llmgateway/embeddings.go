package llmgateway

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tidwall/gjson"
)

// fusedWarning is the warning about an answer with fewer embeddings than the request has inputs, "" for any
// other: some models make one embedding of several inputs (https://github.com/BerriAI/litellm/issues/38823).
func fusedWarning(request, answer []byte) string {
	inputs := gjson.GetBytes(request, "input")
	if !inputs.IsArray() || inputs.Get("0").Type == gjson.Number { // one text, or the tokens of one
		return ""
	}
	asked, got := len(inputs.Array()), gjson.GetBytes(answer, "data.#").Int()
	if got >= int64(asked) {
		return ""
	}
	return fmt.Sprintf("data: the provider made %d embeddings of %d inputs", got, asked)
}

// packEmbeddings returns the answer with its embeddings in base64, if the request asks for base64. Some
// providers answer with lists of numbers all the same, which OpenAI's SDK for Node.js decodes
// into a wrong vector (https://github.com/mudler/LocalAI/pull/9135).
func packEmbeddings(request, answer []byte) []byte {
	if gjson.GetBytes(request, "encoding_format").Str != "base64" {
		return answer
	}
	found := gjson.GetBytes(answer, "data.#.embedding")
	vectors := found.Array()
	if len(found.Indexes) != len(vectors) {
		return answer
	}
	var b []byte
	end := 0 // b has the answer up to here
	for i, v := range vectors {
		packed, ok := pack(v)
		if !ok {
			continue
		}
		b = append(append(b, answer[end:found.Indexes[i]]...), '"')
		b = append(base64.StdEncoding.AppendEncode(b, packed), '"')
		end = found.Indexes[i] + len(v.Raw)
	}
	if end == 0 {
		return answer
	}
	return append(b, answer[end:]...)
}

// pack returns a vector as little-endian float32, false if it is not a list of numbers.
func pack(vector gjson.Result) (b []byte, ok bool) {
	ok = vector.IsArray()
	vector.ForEach(func(_, v gjson.Result) bool {
		ok = ok && v.Type == gjson.Number
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v.Num)))
		return ok
	})
	return b, ok
}
