package llmgateway

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins/catalog"
)

func parseCatalog(t *testing.T) *catalog.Catalog {
	c, err := catalog.Parse([]byte(`{"version": "test", "providers": [
		{"id": "alpha", "models": [
			{"id": "big", "aliases": ["big-latest"], "input": ["text", "image"], "output": ["text"], "context": 1000, "released": "2025-06-10", "owner": "maker",
				"prices": [{"input": "2", "output": "8"}]},
			{"id": "small", "input": ["text"], "output": ["text"], "context": 1000},
			{"id": "maker/open", "input": ["text"], "output": ["text"], "context": 1000},
			{"id": "text-embedding", "input": ["text"], "output": ["text"], "context": 1000},
			{"id": "whisper", "input": ["audio"], "output": ["text"]},
			{"id": "old"}
		]},
		{"id": "beta", "models": [
			{"id": "maker/open", "input": ["text"], "output": ["text"], "context": 1000},
			{"id": "free-price", "input": ["text"], "output": ["text"], "context": 1000}
		]}
	]}`))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// list answers a GET of a list of models, without a key.
func (h *Handler) list(t *testing.T, target string) *httptest.ResponseRecorder {
	t.Helper()
	h.site = &recording.Site{App: new(llmapp.App)}
	w := httptest.NewRecorder()
	if err := h.ServeHTTP(w, httptest.NewRequest("GET", target, nil), nil); err != nil {
		t.Fatal(err)
	}
	return w
}

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
	for path, want := range map[string]string{
		"/v1/models":              `{"object":"list","data":[` + big + "," + free + "," + llama + "," + open + "," + small + `]}`,
		"/v1/models/":             `{"object":"list","data":[` + big + "," + free + "," + llama + "," + open + "," + small + `]}`,
		"/v1/models/multimodal":   `{"object":"list","data":[` + big + `]}`,
		"/v1/models/big":          big,
		"/v1/models/maker/open":   open,
		"/v1/models/maker%2Fopen": open,
	} {
		if got := h.list(t, path).Body.String(); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", path, got, want)
		}
	}
	w := h.list(t, "/v1/models/bigger")
	if e := gjson.Get(w.Body.String(), "error"); w.Code != 404 || e.Get("code").Str != "model_not_found" || !strings.Contains(e.Get("message").Str, "'bigger'") {
		t.Errorf("an unknown model: %d %s", w.Code, w.Body)
	}
}

func TestModelsWithoutProviders(t *testing.T) {
	h := &Handler{models: models(parseCatalog(t), nil)}
	if got := h.list(t, "/v1/models").Body.String(); got != `{"object":"list","data":[]}` {
		t.Errorf("got %s", got)
	}
}

func TestModelDetail(t *testing.T) {
	h := &Handler{models: models(parseCatalog(t), []*llmapp.Account{{Label: "mine", Provider: "alpha"}})}
	w := h.list(t, "/v1/models/multimodal?detail=true")
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
