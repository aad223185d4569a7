package llmgateway

import (
	"encoding/json"
	"net/http"

	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/paths"
	"github.com/weirhq/weir/modules/llmgateway/models"
	"github.com/weirhq/weir/modules/llmgateway/responsesapi"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
)

// serveModels answers GET /v1/models and the paths below it. A caller needs no key; with a key,
// it gets the models of its organisation that the key may call.
func (h *Handler) serveModels(w http.ResponseWriter, r *http.Request, at *match) error {
	request := models.Request{ID: at.id, Multimodal: at.path == modelsPath+"/multimodal"}
	if key, e := h.checker().Admit(r, access.ScopeGateway, keyFields(models.Dialect(r))...); e == nil {
		request.Key = key
	}
	return h.models.Serve(w, r, request)
}

// serveResource answers what OAuth calls the metadata of a protected resource (RFC 9728). No key
// is needed: who has none asks.
func (h *Handler) serveResource(w http.ResponseWriter, r *http.Request, _ *match) error {
	logins := h.site.App.Authenticator().Logins()
	issuers := make([]string, len(logins))
	for i, l := range logins {
		issuers[i] = l.Issuer
	}
	return apierror.WriteJSON(w, http.StatusOK, map[string]any{
		"resource":                 paths.Base(r, r.URL.Path),
		"authorization_servers":    issuers,
		"bearer_methods_supported": []string{"header"},
		"weir_logins":              logins,
	})
}

// serveState answers an endpoint of what is kept.
func (h *Handler) serveState(w http.ResponseWriter, r *http.Request, at *match) error {
	q := &request{h: h, w: w, r: r, ctx: r.Context(), dialect: plugins.Responses}
	defer func() { q.received.Release() }()
	var caller storage.Record
	if e := q.admit(&caller); e != nil {
		return apierror.Write(w, q.dialect, e)
	}
	if q.controls.DryRun && r.Method != http.MethodGet {
		return apierror.Write(w, q.dialect, plugins.Invalid("Service-Dry-Run", "This calls no model, and goes to no provider: there is nothing to tell."))
	}
	var value any
	store, err := h.responses.Store(&caller)
	if err == nil {
		c := &responsesapi.Call{
			Deps: &h.responses, Store: store, W: w, R: r, ID: at.id, Item: at.item,
			Omits: q.controls.OmitHeader, Body: q.readState, Memory: q.memory(),
		}
		defer c.Release()
		value, err = at.answer(c)
	}
	if err != nil {
		e := apierror.Of(err)
		if e.Status == http.StatusInternalServerError {
			h.site.Logger.Error("what is kept cannot be read", zap.Error(err))
		}
		return apierror.Write(w, q.dialect, e)
	}
	if value == nil { // it is written
		return nil
	}
	apierror.NotCached(w.Header())
	w.Header().Set("Content-Type", jsonType)
	if body, ok := value.([]byte); ok {
		_, err = w.Write(body)
		return err
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// readState reads an object that will be kept. An empty body is an object without fields.
func (q *request) readState() ([]byte, error) {
	if err := q.read(responsesapi.MaxBody); err != nil {
		return nil, err
	}
	body := q.received.Bytes
	if len(body) == 0 {
		body = []byte("{}")
	}
	if err := translate.CheckObject(body); err != nil {
		return nil, err
	}
	return body, q.checkSize(body, "items")
}
