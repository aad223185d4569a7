package llmgateway

import (
	"encoding/base64"
	"encoding/binary"
	"math"

	"github.com/tidwall/gjson"
)

// packEmbeddings returns the answer to a request for embeddings in base64 with those that the
// provider wrote as numbers packed: clients decode what they asked for without a look, OpenAI's
// SDK for Node.js into a wrong vector (https://github.com/mudler/LocalAI/pull/9135).
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
	end := 0 // of what b has of the answer
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

// pack returns a vector as little-endian float32, and false for what is no list of numbers.
func pack(vector gjson.Result) (b []byte, ok bool) {
	ok = vector.IsArray()
	vector.ForEach(func(_, v gjson.Result) bool {
		ok = ok && v.Type == gjson.Number
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v.Num)))
		return ok
	})
	return b, ok
}
