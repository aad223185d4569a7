package llmgateway

import (
	"encoding/json"
	"net/http/httptest"
	"testing"

	"github.com/weirhq/weir/modules/llmapp"
)

func TestModels(t *testing.T) {
	h := &Handler{models: models(parseCatalog(t), []*llmapp.Account{
		{Label: "beta", Provider: "beta"}, {Label: "alpha", Provider: "alpha"}, {Label: "lab", Provider: "vllm", Models: []string{"llama", "small"}},
	})}
	const (
		big   = `{"id":"big","object":"model","created":1749513600,"owned_by":"maker"}`
		free  = `{"id":"free-price","object":"model","created":0,"owned_by":"beta"}`
		llama = `{"id":"llama","object":"model","created":0,"owned_by":"vllm"}`
		open  = `{"id":"maker/open","object":"model","created":0,"owned_by":"beta"}`
		small = `{"id":"small","object":"model","created":0,"owned_by":"alpha"}`
	)
	for multimodal, want := range map[bool]string{
		false: `{"object":"list","data":[` + big + "," + free + "," + llama + "," + open + "," + small + `]}`,
		true:  `{"object":"list","data":[` + big + `]}`,
	} {
		w := httptest.NewRecorder()
		if err := h.serveModels(w, httptest.NewRequest("GET", "/v1/models", nil), multimodal); err != nil {
			t.Fatal(err)
		}
		if got := w.Body.String(); got != want {
			t.Errorf("multimodal %v:\n%s\nwant\n%s", multimodal, got, want)
		}
	}
}

func TestModelsWithoutProviders(t *testing.T) {
	h := &Handler{models: models(parseCatalog(t), nil)}
	w := httptest.NewRecorder()
	if err := h.serveModels(w, httptest.NewRequest("GET", "/v1/models", nil), false); err != nil {
		t.Fatal(err)
	}
	if got := w.Body.String(); got != `{"object":"list","data":[]}` {
		t.Errorf("got %s", got)
	}
}

func TestModelDetail(t *testing.T) {
	h := &Handler{models: models(parseCatalog(t), []*llmapp.Account{{Label: "mine", Provider: "alpha"}})}
	w := httptest.NewRecorder()
	if err := h.serveModels(w, httptest.NewRequest("GET", "/v1/models?detail=true", nil), true); err != nil {
		t.Fatal(err)
	}
	var list struct{ Data []map[string]any }
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || len(list.Data) != 1 {
		t.Fatalf("%s: %v", w.Body, err)
	}
	m := list.Data[0]
	if m["context_window"] != 1000.0 || m["max_output_tokens"] != nil || len(m["input_modalities"].([]any)) != 2 {
		t.Errorf("detail is %v", m)
	}
	offer := m["providers"].([]any)[0].(map[string]any)
	price := offer["prices"].([]any)[0].(map[string]any)
	if offer["provider"] != "mine" || price["input"] != "2" {
		t.Errorf("the offer is %v", offer)
	}
}
