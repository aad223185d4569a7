package llmgateway

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/admission"
	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/llmgateway/stored"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
)

// stateCall is a request for what is kept.
type stateCall struct {
	request
	store    *stored.Store
	id, item string         // in the path
	loaded   admission.Held // the memory of the conversation
	object   gjson.Result   // the body
}

// serveState answers an endpoint of what is kept. A nil answer is written already.
func (h *Handler) serveState(w http.ResponseWriter, r *http.Request, at *match) error {
	c := &stateCall{request: request{h: h, w: w, r: r, ctx: r.Context(), dialect: plugins.Responses}, id: at.id, item: at.item}
	defer func() {
		c.received.Release()
		c.loaded.Release()
	}()
	var value any
	err := c.open()
	if err == nil {
		value, err = at.answer(c)
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

// open admits the caller, and finds what belongs to it.
func (c *stateCall) open() (err error) {
	var caller storage.Record
	if e := c.admit(&caller); e != nil {
		return e
	}
	c.store, err = c.h.stored(caller.Org, caller.UserID)
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
	if omits := c.controls.OmitHeader; omits != "" {
		e := plugins.Invalid(omits, "A conversation keeps its content, and the header %s forbids to keep content: send the request without the header, or the items as 'input' of a call.", omits)
		e.Code = "content_omitted"
		return e
	}
	if err := c.read(maxStateBody); err != nil {
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
	var err error
	c.object = gjson.ParseBytes(body)
	c.object.ForEach(func(key, _ gjson.Result) bool {
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
