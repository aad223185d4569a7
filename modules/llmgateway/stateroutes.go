package llmgateway

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/admission"
	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/control"
	"github.com/weirhq/weir/modules/internal/intake"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/modules/llmgateway/stored"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
)

// stateRoutes are the endpoints of what is kept, by their path and method.
var stateRoutes = map[string]map[string]func(*stateCall) (any, error){
	"/v1/responses/{id}":                  {http.MethodGet: getResponse, http.MethodDelete: deleteResponse},
	"/v1/responses/{id}/input_items":      {http.MethodGet: listInputItems},
	"/v1/responses/{id}/cancel":           {http.MethodPost: cancelResponse},
	"/v1/conversations":                   {http.MethodPost: createConversation},
	"/v1/conversations/{id}":              {http.MethodGet: getConversation, http.MethodPost: updateConversation, http.MethodDelete: deleteConversation},
	"/v1/conversations/{id}/items":        {http.MethodGet: listConversation, http.MethodPost: addToConversation},
	"/v1/conversations/{id}/items/{item}": {http.MethodGet: getConversationItem, http.MethodDelete: deleteConversationItem},
}

// stateCall is a request of such an endpoint.
type stateCall struct {
	h        *Handler
	w        http.ResponseWriter
	r        *http.Request
	store    *stored.Store
	id, item string // in the path
	omits    string // the header that forbids to keep content, "" if none does
	received intake.Body
	loaded   admission.Held // the memory of the conversation
	body     gjson.Result   // received
}

// stateRoute returns the endpoints of a path, and the ids in it. ours is true of every
// path below theirs.
func stateRoute(path string) (methods map[string]func(*stateCall) (any, error), id, item string, ours bool) {
	parts := strings.Split(strings.TrimPrefix(path, "/v1/"), "/")
	if parts[0] != "conversations" && (parts[0] != "responses" || len(parts) < 2) || !strings.HasPrefix(path, "/v1/") {
		return nil, "", "", false
	}
	pattern := "/v1/" + parts[0]
	for i, part := range parts[1:] {
		switch i {
		case 0:
			id, part = part, "{id}"
		case 2:
			item, part = part, "{item}"
		}
		pattern += "/" + part
	}
	return stateRoutes[pattern], id, item, true
}

// methodsOf is the value of Allow for an endpoint.
func methodsOf(methods map[string]func(*stateCall) (any, error)) string {
	return strings.Join(slices.Sorted(maps.Keys(methods)), ", ")
}

// serveState answers an endpoint of what is kept. A nil answer is written already.
func (h *Handler) serveState(w http.ResponseWriter, r *http.Request, answer func(*stateCall) (any, error), id, item string) error {
	c := &stateCall{h: h, w: w, r: r, id: id, item: item}
	defer func() {
		c.received.Release()
		c.loaded.Release()
	}()
	var value any
	err := c.admit()
	if err == nil {
		value, err = answer(c)
	}
	if err != nil {
		e := asError(err)
		if e.Status == http.StatusInternalServerError {
			h.site.Logger.Error("what is kept cannot be read", zap.Error(err))
		}
		return apierror.Write(w, plugins.Responses, e)
	}
	if value == nil {
		return nil
	}
	w.Header().Set("Content-Type", jsonType)
	if body, ok := value.([]byte); ok {
		_, err = w.Write(body)
		return err
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// admit authenticates the caller, and finds what belongs to it.
func (c *stateCall) admit() (err error) {
	var caller storage.Record
	c.omits = control.Read(c.r.Header, c.h.site.App.Headers(), &caller).OmitHeader
	key, e := c.h.gate().Admit(c.r, llmapp.ScopeGateway, keyFields(plugins.Responses)...)
	if e != nil {
		return e
	}
	control.ReadEdge(c.r, "", &caller)
	c.store, err = c.h.stored(key.Org(), caller.UserID)
	return err
}

// stored returns what a caller has.
func (h *Handler) stored(org, user string) (*stored.Store, error) {
	journal, err := h.journal()
	if err != nil {
		return nil, err
	}
	return &stored.Store{Journal: journal, Org: org, User: user}, nil
}

// maxStateBody bounds the body of a request about what is kept, in bytes.
const maxStateBody = 12 << 20

// readBody reads an object that has these fields at most. An empty body is one without
// any. What is read will be kept, so a caller who forbids that is refused.
func (c *stateCall) readBody(fields ...string) error {
	if c.omits != "" {
		e := plugins.Invalid(c.omits, "A conversation keeps its content, and the header %s forbids to keep content: send the request without the header, or the items as 'input' of a call.", c.omits)
		e.Code = "content_omitted"
		return e
	}
	var err error
	if c.received, err = c.h.intake(maxStateBody).Read(c.w, c.r); err != nil {
		return err
	}
	body := c.received.Bytes
	if len(body) == 0 {
		body = []byte("{}")
	}
	if err := translate.CheckObject(body); err != nil {
		return err
	}
	if err := c.h.checkSize(c.r.Context(), &c.received, body, "items"); err != nil {
		return err
	}
	c.body = gjson.ParseBytes(body)
	c.body.ForEach(func(key, _ gjson.Result) bool {
		if !slices.Contains(fields, key.Str) {
			e := plugins.Invalid(key.Str, "Unknown parameter: '%.128s'.", key.Str)
			e.Code = "unknown_parameter"
			err = e
		}
		return err == nil
	})
	return err
}

// deletion is the answer when something was deleted.
type deletion struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Deleted bool   `json:"deleted"`
}
