package llmgateway

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/modules/llmgateway/models"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/storage/control"
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

// lists is a handler of models that all organisations can call.
func lists(models models.List) *Handler {
	return &Handler{gateway: gateway{models: models}}
}

// list answers a GET of a list of models, without a key.
func (h *Handler) list(t *testing.T, target string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	h.site = &recording.Site{App: new(llmapp.App)}
	r, w := httptest.NewRequest("GET", target, nil), httptest.NewRecorder()
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	if err := h.ServeHTTP(w, r, nil); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestModels(t *testing.T) {
	h := lists(models.Of(&routing.Resolver{Catalog: parseCatalog(t), Accounts: []*providers.Account{
		{Label: "beta", Provider: "beta"}, {Label: "alpha", Provider: "alpha"}, {Label: "lab", Provider: "vllm", Models: []string{"llama", "small"}},
	}}))
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

// Clients of Anthropic get the list in its form, page by page.
func TestModelsInAnthropicsForm(t *testing.T) {
	h := lists(models.Of(&routing.Resolver{Catalog: parseCatalog(t), Accounts: []*providers.Account{{Label: "alpha", Provider: "alpha", Models: []string{"big", "llama", "small"}}}}))
	ask := func(path string) (int, string) {
		w := h.list(t, path, "Anthropic-Version", "2023-06-01")
		return w.Code, w.Body.String()
	}
	const (
		big   = `{"type":"model","id":"big","display_name":"big","created_at":"2025-06-10T00:00:00Z"}`
		llama = `{"type":"model","id":"llama","display_name":"llama","created_at":"1970-01-01T00:00:00Z"}`
		small = `{"type":"model","id":"small","display_name":"small","created_at":"1970-01-01T00:00:00Z"}`
	)
	for path, want := range map[string]string{
		"/v1/models?limit=1000":              `{"data":[` + big + "," + llama + "," + small + `],"has_more":false,"first_id":"big","last_id":"small"}`,
		"/v1/models?limit=2":                 `{"data":[` + big + "," + llama + `],"has_more":true,"first_id":"big","last_id":"llama"}`,
		"/v1/models?limit=2&after_id=llama":  `{"data":[` + small + `],"has_more":false,"first_id":"small","last_id":"small"}`,
		"/v1/models?limit=1&before_id=small": `{"data":[` + llama + `],"has_more":true,"first_id":"llama","last_id":"llama"}`,
		"/v1/models?before_id=big":           `{"data":[],"has_more":false,"first_id":null,"last_id":null}`,
		"/v1/models/big":                     big,
	} {
		if code, got := ask(path); code != 200 || got != want {
			t.Errorf("%s: %d %s\nwant %s", path, code, got, want)
		}
	}
	for path, status := range map[string]int{
		"/v1/models?limit=0": 400, "/v1/models?limit=1001": 400, "/v1/models?limit=x": 400, "/v1/models?after_id=nobody": 400, "/v1/models/nobody": 404,
	} {
		if code, got := ask(path); code != status || gjson.Get(got, "type").Str != "error" {
			t.Errorf("%s: %d %s", path, code, got)
		}
	}
}

func TestModelsWithoutProviders(t *testing.T) {
	h := lists(models.Of(&routing.Resolver{Catalog: parseCatalog(t), Accounts: nil}))
	if got := h.list(t, "/v1/models").Body.String(); got != `{"object":"list","data":[]}` {
		t.Errorf("got %s", got)
	}
}

func TestModelDetail(t *testing.T) {
	h := lists(models.Of(&routing.Resolver{Catalog: parseCatalog(t), Accounts: []*providers.Account{{Label: "mine", Provider: "alpha"}}}))
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

// The detail of a model names the accounts alone that the caller's key may call.
func TestModelDetailOfAKey(t *testing.T) {
	list := models.Of(&routing.Resolver{
		Catalog:  parseCatalog(t),
		Accounts: []*providers.Account{{Label: "one", Provider: "alpha"}, {Label: "two", Provider: "beta"}},
		Aliases:  map[string]*routing.Alias{"any": routing.InTheirOrder("one/big", "two/maker/open")},
	})
	for _, c := range []struct {
		settings control.Settings
		path, id string
		want     string
	}{
		{control.Settings{}, "/v1/models", "", "one two"},
		{control.Settings{Providers: []string{"two"}}, "/v1/models", "", "two"},
		{control.Settings{Models: []string{"one/*"}}, "/v1/models", "", "one"},
		{control.Settings{Providers: []string{"two"}}, "/v1/models/maker/open", "maker/open", "two"},
		{control.Settings{Models: []string{"big"}}, "/v1/models/any", "any", "one"},
		{control.Settings{}, "/v1/models/any", "any", "one two"}, // what one key may not call, another may
	} {
		key, err := access.NewKey(&control.Key{Settings: c.settings}, nil, "")
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		if err := list.Serve(w, httptest.NewRequest("GET", c.path+"?detail=true", nil), models.Request{Key: key, ID: c.id}); err != nil {
			t.Fatal(err)
		}
		entry := gjson.ParseBytes(w.Body.Bytes())
		if c.id == "" {
			entry = entry.Get(`data.#(id="maker/open")`)
		}
		var got []string
		for _, label := range entry.Get("providers.#.provider").Array() {
			got = append(got, label.Str)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s with %+v: the accounts are %q, want %s", c.path, c.settings, got, c.want)
		}
	}
}

// Whatever name a call may have for a model has an entry; aliases are in the list, too.
func TestModelsByOtherNames(t *testing.T) {
	h := lists(models.Of(&routing.Resolver{
		Catalog:  parseCatalog(t),
		Accounts: []*providers.Account{{Label: "alpha", Provider: "alpha", Models: []string{"big"}}, {Label: "mine", Provider: "alpha"}, {Label: "lab", Provider: "vllm", Models: []string{"llama"}}},
		Aliases:  map[string]*routing.Alias{"smart": routing.InTheirOrder("big", "lab/llama"), "gone": routing.InTheirOrder("nobody")},
	}))
	const smart = `{"id":"smart","object":"model","created":1749513600,"owned_by":"maker"}`
	if got := h.list(t, "/v1/models").Body.String(); !strings.Contains(got, smart) || strings.Contains(got, "gone") {
		t.Errorf("the list is %s", got)
	}
	for path, want := range map[string]string{
		"/v1/models/smart":       smart,
		"/v1/models/big-latest":  `{"id":"big-latest","object":"model","created":1749513600,"owned_by":"maker"}`,
		"/v1/models/mine/big":    `{"id":"mine/big","object":"model","created":1749513600,"owned_by":"maker"}`,
		"/v1/models/lab%2Fllama": `{"id":"lab/llama","object":"model","created":0,"owned_by":"vllm"}`,
	} {
		if got := h.list(t, path).Body.String(); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", path, got, want)
		}
	}
	for _, path := range []string{"/v1/models/gone", "/v1/models/mine/unheard-of", "/v1/models/big,llama"} {
		if w := h.list(t, path); w.Code != 404 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
