package echo

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"math/rand/v2"
	"net/http"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// The limits are OpenAI's; the default is small because nothing is in it.
const (
	maxEmbeddingInputs = 2048
	maxDimensions      = 3072
	defaultDimensions  = 16
)

func serveEmbeddings(w http.ResponseWriter, _ *http.Request, x *exchange) *plugins.Error {
	inputs, f := embeddingInputs(x.body.Get("input"))
	if f != nil {
		return f
	}
	dimensions := defaultDimensions
	if d := x.body.Get("dimensions"); d.Type != gjson.Null {
		if d.Type != gjson.Number || d.Num < 1 || d.Num > maxDimensions {
			return plugins.Invalid("dimensions", "dimensions must be a number from 1 to %d", maxDimensions)
		}
		dimensions = int(d.Num)
	}

	data := make([][]byte, len(inputs))
	var promptTokens int64
	for i, input := range inputs {
		v := vector(input.Raw, dimensions)
		embedding, _ := json.Marshal(v) // finite numbers
		if x.body.Get("encoding_format").String() == "base64" {
			embedding = render(`%s`, packed(v))
		}
		data[i] = render(`{"object":"embedding","index":%d,"embedding":%s}`, i, embedding)
		promptTokens += embeddingTokens(input)
	}
	writeJSON(w, http.StatusOK, render(`{"object":"list","data":[%s],"model":%s,"usage":{"prompt_tokens":%d,"total_tokens":%d}}`,
		bytes.Join(data, []byte(",")), modelOf(x.body), promptTokens, promptTokens))
	return nil
}

// embeddingInputs are the things to embed: a text, several texts, a list of
// token numbers, or several such lists.
func embeddingInputs(input gjson.Result) ([]gjson.Result, *plugins.Error) {
	inputs := []gjson.Result{input}
	if input.IsArray() && input.Get("0").Type != gjson.Number {
		inputs = input.Array()
	}
	if n := len(inputs); n == 0 || n > maxEmbeddingInputs {
		return nil, plugins.Invalid("input", "input must hold from 1 to %d items", maxEmbeddingInputs)
	}
	for _, v := range inputs {
		if v.Type != gjson.String && !v.IsArray() {
			return nil, plugins.Invalid("input", "input must be a string, an array of strings, or arrays of tokens")
		}
	}
	return inputs, nil
}

func embeddingTokens(input gjson.Result) int64 {
	if input.IsArray() {
		return input.Get("#").Int()
	}
	return int64(tokens(len(input.Str)))
}

// vector is a unit vector that depends on the input alone.
func vector(input string, dimensions int) []float32 {
	rnd := rand.New(rand.NewChaCha8(sha256.Sum256([]byte(input))))
	v := make([]float32, dimensions)
	var square float64
	for i := range v {
		v[i] = float32(int32(rnd.Uint32() | 1)) // odd, as a vector of zeros has no direction
		square += float64(v[i]) * float64(v[i])
	}
	norm := float32(math.Sqrt(square))
	for i := range v {
		v[i] /= norm
	}
	return v
}

// packed is the base64 of 32-bit little-endian floats, which OpenAI's SDKs ask for
// unless told otherwise.
func packed(v []float32) string {
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, v)
	return base64.StdEncoding.EncodeToString(b.Bytes())
}
