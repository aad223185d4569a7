package llmgateway

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/control"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/modules/llmgateway/stored"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

const responsesPath = "/v1/responses/"

// storedMethods are the methods of the endpoints of a response that was answered
// earlier, by what follows its id in the path.
var storedMethods = map[string]string{"": "GET, DELETE", "/input_items": "GET", "/cancel": "POST"}

// splitResponsePath returns the id in the path of such an endpoint, and what follows.
func splitResponsePath(path string) (id, action string) {
	id = strings.TrimPrefix(path, responsesPath)
	if i := strings.IndexByte(id, '/'); i >= 0 {
		return id[:i], id[i:]
	}
	return id, ""
}

// serveStored answers the endpoints of a response that was answered earlier.
func (h *Handler) serveStored(w http.ResponseWriter, r *http.Request, path string) error {
	answer, err := h.answerStored(r, path)
	return h.writeState(w, answer, err)
}

// writeState answers what was asked of what is stored: a value that is JSON, or is
// encoded as such.
func (h *Handler) writeState(w http.ResponseWriter, answer any, err error) error {
	if err == nil {
		w.Header().Set("Content-Type", "application/json")
		if body, ok := answer.([]byte); ok {
			_, err = w.Write(body)
			return err
		}
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(answer)
	}
	e := asError(err)
	if e.Status == http.StatusInternalServerError {
		h.site.Logger.Error("a stored response cannot be read", zap.Error(err))
	}
	return apierror.Write(w, plugins.Responses, e)
}

func (h *Handler) answerStored(r *http.Request, path string) (any, error) {
	store, err := h.admitStored(r)
	if err != nil {
		return nil, err
	}
	id, action := splitResponsePath(path)
	if r.Method == http.MethodDelete {
		if err := store.Delete(r.Context(), id); err != nil {
			return nil, stored.Error(err, "Response", id)
		}
		return deletion{id, "response", true}, nil
	}
	response, err := store.Find(r.Context(), id)
	if err != nil {
		return nil, stored.Error(err, "Response", id)
	}
	query := r.URL.Query()
	switch {
	case action == "/input_items":
		return listItems(query, response.Input(), "desc")
	case action == "/cancel":
		return nil, plugins.Invalid("", "Only a response of 'background: true' can be cancelled.")
	case query.Get("stream") == "true":
		return nil, plugins.Unsupported("stream", "This response cannot be streamed again: ask for it without 'stream'.")
	}
	return response.Body, nil
}

// deletion is the answer when something was deleted.
type deletion struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Deleted bool   `json:"deleted"`
}

// admitStored returns what the caller of an endpoint may have.
func (h *Handler) admitStored(r *http.Request) (*stored.Store, error) {
	var caller storage.Record
	control.Read(r.Header, h.site.App.Headers(), &caller)
	key, e := h.gate().Admit(r, llmapp.ScopeGateway, "Authorization")
	if e != nil {
		return nil, e
	}
	control.ReadEdge(r, "", &caller)
	return h.stored(key.Org(), caller.UserID)
}

// stored returns the responses of a caller.
func (h *Handler) stored(org, user string) (*stored.Store, error) {
	journal, err := h.journal()
	if err != nil {
		return nil, err
	}
	return &stored.Store{Journal: journal, Org: org, User: user}, nil
}

const (
	defaultItems = 20
	maxListed    = 100
)

// listItems answers the page that a query asks for.
func listItems(query url.Values, items []string, order string) (any, error) {
	limit := defaultItems
	if text := query.Get("limit"); text != "" {
		var err error
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > maxListed {
			return nil, plugins.Invalid("limit", "Invalid 'limit': a number of 1 to %d is expected.", maxListed)
		}
	}
	if text := query.Get("order"); text != "" {
		order = text
	}
	if !slices.Contains([]string{"asc", "desc"}, order) {
		return nil, plugins.Invalid("order", "Invalid 'order': 'asc' or 'desc' is expected.")
	}
	page, found := stored.List(items, query.Get("after"), limit, order == "desc")
	if !found {
		return nil, plugins.Invalid("after", "There is no item '%.128s' in this list.", query.Get("after"))
	}
	return page, nil
}
