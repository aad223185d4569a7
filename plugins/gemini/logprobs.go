package gemini

import (
	"encoding/json"

	"github.com/tidwall/gjson"
)

// logprob is a token of the answer in the form of OpenAI's logprobs.
type logprob struct {
	Token       string       `json:"token"`
	Logprob     float64      `json:"logprob"`
	Bytes       []int        `json:"bytes"`
	TopLogprobs []topLogprob `json:"top_logprobs"`
}

// topLogprob is a token that the model might have written instead.
type topLogprob struct {
	Token   string  `json:"token"`
	Logprob float64 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
}

// logprobs passes on the log probabilities of a candidate
// (https://ai.google.dev/api/generate-content#LogprobsResult).
func (d *decoder) logprobs(v gjson.Result) {
	top := v.Get("topCandidates").Array()
	var all []logprob
	for i, chosen := range v.Get("chosenCandidates").Array() {
		token := chosen.Get("token").Str
		l := logprob{token, chosen.Get("logProbability").Num, bytesOf(token), []topLogprob{}}
		if i < len(top) {
			for _, other := range top[i].Get("candidates").Array() {
				token := other.Get("token").Str
				l.TopLogprobs = append(l.TopLogprobs, topLogprob{token, other.Get("logProbability").Num, bytesOf(token)})
			}
		}
		all = append(all, l)
	}
	if len(all) == 0 {
		return
	}
	if raw, err := json.Marshal(all); err == nil { // a number may be too large for one
		d.a.Logprobs(textKey, raw)
	}
}

// bytesOf returns the bytes of a token as numbers, as OpenAI writes them.
func bytesOf(token string) []int {
	b := make([]int, len(token))
	for i := range len(token) {
		b[i] = int(token[i])
	}
	return b
}
