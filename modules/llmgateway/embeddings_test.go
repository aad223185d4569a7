package llmgateway

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// A client that asks for base64 gets it, whether or not the provider knows that format.
func TestEmbeddingsComeInTheFormatAskedFor(t *testing.T) {
	const packed = `{"data":[{"index":0,"embedding": "AACAPwAAAL8="},{"embedding":"AAAAAA==","index":1}],"usage":{"prompt_tokens":5}}`
	for name, c := range map[string]struct{ format, answer, want string }{
		"floats for base64":  {`,"encoding_format":"base64"`, `{"data":[{"index":0,"embedding": [1, -0.5]},{"embedding":[0],"index":1}],"usage":{"prompt_tokens":5}}`, packed},
		"base64 for base64":  {`,"encoding_format":"base64"`, packed, packed},
		"floats for floats":  {`,"encoding_format":"float"`, `{"data":[{"embedding":[1]}]}`, `{"data":[{"embedding":[1]}]}`},
		"floats by default":  {``, `{"data":[{"embedding":[1]}]}`, `{"data":[{"embedding":[1]}]}`},
		"what is no vector":  {`,"encoding_format":"base64"`, `{"data":[{"embedding":[[1],[2]]},{"x":[3]}]}`, `{"data":[{"embedding":[[1],[2]]},{"x":[3]}]}`},
		"an answer in parts": {`,"encoding_format":"base64"`, `{"x":[1],"data":[{"x":1},{"embedding":[1]}]}`, `{"x":[1],"data":[{"x":1},{"embedding":"AACAPw=="}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, map[string][]upstream{"raw": {func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, c.answer)
			}}})
			resp, body := s.postTo("/v1/embeddings", strings.NewReader(`{"model":"raw/m","input":["a","b"]`+c.format+`}`))
			if r := s.kept.all()[0]; resp.StatusCode != http.StatusOK || body != c.want || r.response != c.want {
				t.Errorf("%d %s, the record has %s", resp.StatusCode, body, r.response)
			}
		})
	}
}

// An encoding_format of null is none, to the provider too.
func TestNullEncodingFormat(t *testing.T) {
	var sent string
	s := serve(t, map[string][]upstream{"raw": {func(w http.ResponseWriter, r *http.Request) {
		sent = readAndRestore(r)
		_, _ = io.WriteString(w, `{"data":[{"embedding":[1]}]}`)
	}}})
	const request = `{"model":"raw/m","input":"a","encoding_format":null,"user":"u"}`
	resp, body := s.postTo("/v1/embeddings", strings.NewReader(request))
	if want := `{"model":"m","input":"a","user":"u"}`; resp.StatusCode != http.StatusOK || sent != want {
		t.Errorf("%d %s, the provider got %s", resp.StatusCode, body, sent)
	}
	if r := s.kept.all()[0]; r.request != request {
		t.Errorf("the record has %s", r.request)
	}
}

// Who gets fewer embeddings than the request has inputs is told so: they would stand beside the wrong inputs.
func TestFusedEmbeddingsAreTold(t *testing.T) {
	s := serve(t, map[string][]upstream{"raw": {objectOf(`{"object":"list","data":[{"index":0,"embedding":[1]}]}`)}})
	for input, want := range map[string]string{`["a","b","c"]`: "data: the provider made 1 embeddings of 3 inputs", `[[1,2],[3]]`: "data: the provider made 1 embeddings of 2 inputs", `["a"]`: "", `"a"`: "", `[1,2,3]`: ""} {
		resp, body := s.postTo("/v1/embeddings", strings.NewReader(`{"model":"raw/m","input":`+input+`}`))
		if got := resp.Header.Get("Service-Warnings"); resp.StatusCode != http.StatusOK || got != want {
			t.Errorf("%s: %d %s, warned %q", input, resp.StatusCode, body, got)
		}
	}
}
