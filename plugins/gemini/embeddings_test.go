package gemini

import (
	"errors"
	"net/http"
	"testing"

	"github.com/weirhq/weir/plugins/translate"
)

func TestEmbeddingsInOpenAIsFormat(t *testing.T) {
	target := translate.Target{Model: "gemini-embedding-001", BaseURL: "https://generativelanguage.googleapis.com", Key: "key"}
	req, err := Provider{}.PrepareEndpoint(t.Context(), http.MethodPost, "/v1/embeddings", target)
	if err != nil {
		t.Fatal(err)
	}
	if got := req.URL.String() + " " + req.Header.Get("Authorization"); got != "https://generativelanguage.googleapis.com/v1beta/openai/embeddings Bearer key" {
		t.Errorf("the request goes to %s", got)
	}
	if _, err := (Provider{}).PrepareEndpoint(t.Context(), http.MethodPost, "/v1/rerank", target); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("reranking: %v", err)
	}
}
