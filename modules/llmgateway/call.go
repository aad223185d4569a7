package llmgateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/control"
	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
)

// maxRequest bounds the body of a request, in bytes.
const maxRequest = 64 << 20

// call is one request of a client, whatever attempts it takes.
type call struct {
	h       *Handler
	w       http.ResponseWriter
	r       *http.Request
	dialect plugins.Dialect // that the client speaks
	ctx     context.Context // the client's, and ends when the store closes
	cancel  context.CancelFunc

	recorder recording.Recorder
	release  func()
	claimed  bool

	body     []byte                             // the client's
	sent     []byte                             // the same, with what it refers to
	parsed   func() (*translate.Request, error) // of Responses
	stateful stateful

	id       uuid.UUID      // of the record of the attempt that answers
	record   storage.Record // what all attempts have in common, in the end that of the answer
	inputs   map[string]string
	counted  *storage.Record // the one that has the exchange's Number
	warnings []string
	strict   bool // warnings are refusals

	last *attempt // the one that failed last, as long as it may be the answer
}

// serveCall answers a call of a model.
func (h *Handler) serveCall(w http.ResponseWriter, r *http.Request, d plugins.Dialect) error {
	c := &call{h: h, w: w, r: r, dialect: d}
	c.ctx, c.cancel = context.WithCancel(r.Context())
	defer c.cancel()
	if err := c.admit(); err != nil {
		return writeError(w, d, err, nil)
	}
	defer c.end()
	targets, err := c.plan()
	if err != nil {
		c.refuse(asError(err))
		return nil
	}
	if failures, answered := h.policy.run(c.ctx, targets, c.attempt); !answered {
		c.fail(failures)
	}
	return nil
}

// admit finds out whose call it is, and under which id it is recorded.
func (c *call) admit() *plugins.Error {
	authorization := c.r.Header.Get("Authorization")
	if authorization == "" && anthropics(c.dialect) {
		authorization = c.r.Header.Get("X-Api-Key")
	}
	ctl := control.Read(c.r.Header, c.h.app.Headers(), &c.record)
	if authorization == "" {
		return denied(http.StatusUnauthorized, "missing_api_key", "Send your API key in the header Authorization: Bearer <key>.")
	}
	key, ok := c.h.app.Authenticate(control.Bearer(authorization))
	switch {
	case !ok:
		return denied(http.StatusUnauthorized, "invalid_api_key", "The API key is not known.")
	case !key.Allows(llmapp.ScopeGateway):
		return denied(http.StatusForbidden, "insufficient_scope", "The API key lacks the scope "+llmapp.ScopeGateway+".")
	case key.Store() != c.h.store:
		return denied(http.StatusForbidden, "wrong_region", "The API key belongs to another region than this address.")
	}

	r := &c.record
	control.ReadEdge(c.r, "", r)
	control.SessionProperties(r)
	r.Org, r.AuthHash = key.Org(), key.Hash()
	r.Dialect, r.Referrer = c.dialect, "gateway"
	r.RequestOmitted, r.ResponseOmitted = ctl.OmitRequest, ctl.OmitResponse
	if !r.RequestOmitted {
		c.inputs = ctl.Inputs
	}

	var err error
	if c.recorder, c.release, err = c.h.open(c.cancel); err != nil {
		c.h.logger.Error("no record is kept: the store does not open", zap.String("store", c.h.store), zap.Error(err))
		c.recorder, c.release = recording.Nowhere{}, func() {}
	}
	r.CreatedAt = storage.Millis(time.Now())
	c.recorder.Begin(r)
	c.counted = r
	c.id, c.claimed = recording.Identify(c.ctx, c.recorder, ctl)
	r.ID = c.id
	recording.Placeholders(c.ctx, r)
	c.warnings, c.strict = ctl.Warnings, ctl.Strict
	c.w.Header()["Service-Id"] = []string{c.id.String()}
	return nil
}

// end lets go of what the call held.
func (c *call) end() {
	c.recorder.Abandon(c.counted) // unless an attempt was recorded as the answer
	if c.claimed {
		c.recorder.Release(c.id)
	}
	c.release()
}

// plan reads the request and decides which targets are tried.
func (c *call) plan() ([]target, error) {
	if encoding := c.r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, denied(http.StatusUnsupportedMediaType, "unsupported_content_encoding", "Send the body without Content-Encoding.")
	}
	var err error
	c.body, err = translate.ReadAll(http.MaxBytesReader(nil, c.r.Body, maxRequest), c.r.ContentLength)
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, denied(http.StatusRequestEntityTooLarge, "request_too_large", fmt.Sprintf("The body is over %d bytes long.", maxRequest))
	}
	if err != nil {
		return nil, plugins.Invalid("", "The body of the request could not be read.")
	}
	c.record.RequestBytes = int64(len(c.body))

	c.sent = c.body
	c.parsed = sync.OnceValues(func() (*translate.Request, error) { return translate.ParseRequest(c.sent) })
	model := gjson.GetBytes(c.body, "model")
	if !plugins.ValidJSON(c.body) || model.Type != gjson.String || model.Str == "" {
		return nil, c.malformed()
	}
	c.record.RequestModel = strings.ToValidUTF8(model.Str[:min(len(model.Str), maxModel)], "")

	resolver := resolver{c.h.app.Catalog(), c.h.app.Accounts(c.record.Org), c.h.app.Aliases}
	targets, warnings, err := resolver.resolve(model.Str)
	if err != nil {
		return nil, err
	}
	c.warnings = append(c.warnings, warnings...)
	if c.dialect == plugins.Responses {
		c.sent = c.restore(c.body)
		c.stateful = statefulField(c.sent)
	}
	if field := c.stateful.field; field != "" && len(targets) > 1 {
		return nil, plugins.Unsupported(field, "'%s' names what one provider keeps: name that one alone, as in '%s'.%s",
			field, targets[0].name(), c.stateful.hint)
	}
	return targets, nil
}

// malformed tells what is wrong with a body that names no model.
func (c *call) malformed() error {
	if c.dialect == plugins.Responses {
		if _, err := c.parsed(); err != nil {
			return err
		}
	} else if !plugins.ValidJSON(c.body) {
		return plugins.Invalid("", "The body of the request is not valid JSON.")
	}
	e := plugins.Invalid("model", "Missing required parameter: 'model'.")
	e.Code = "missing_required_parameter"
	return e
}

// stateful is a field of a body of Responses that refers to what a provider
// keeps, and what else the client can do.
type stateful struct{ field, hint string }

// statefulField is the first of a body, "" if there is none.
func statefulField(body []byte) (found stateful) {
	gjson.ParseBytes(body).ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "previous_response_id", "conversation", "background", "prompt":
			if v.Type != gjson.Null && v.Type != gjson.False {
				found.field = key.Str
			}
		case "input":
			i := 0
			v.ForEach(func(_, item gjson.Result) bool {
				if item.Get("type").Str == "item_reference" {
					found = stateful{fmt.Sprintf("input[%d]", i), " Clients send the item itself when 'store' is false."}
				}
				i++
				return found.field == ""
			})
		}
		return found.field == ""
	})
	return found
}

// refuse answers a call for which no attempt was made.
func (c *call) refuse(e *plugins.Error) {
	a := c.begin(target{account: nowhere}, 0)
	a.record.Status = plugins.Known(int64(e.Status))
	a.record.ErrorType = e.Type
	if c.ctx.Err() != nil {
		a.record.Status, a.record.ErrorType = plugins.Known(recording.StatusClientLeft), ""
		a.record.EndState = storage.ClientAborted
	}
	a.answer()
	a.commit()
	a.report()
	c.tell(e, nil)
}

// nowhere is the account of calls that come to none.
var nowhere = &llmapp.Account{Provider: "custom"}

// fail answers a call whose attempts all failed.
func (c *call) fail(failures []failure) {
	a := c.last
	if a == nil { // nothing was sent
		c.refuse(failures[len(failures)-1].err)
		return
	}
	a.answer()
	if c.ctx.Err() != nil { // between two attempts, perhaps
		a.record.EndState = storage.ClientAborted
	}
	a.enter()
	a.report()
	c.tell(a.err, reports(failures))
}

// tell answers an error, if there is a client: one whose call the end of the
// process cut off is still there.
func (c *call) tell(e *plugins.Error, attempts []attemptReport) {
	if c.r.Context().Err() != nil {
		return
	}
	if c.ctx.Err() != nil {
		e, attempts = &plugins.Error{
			Status: http.StatusServiceUnavailable, Type: "server_error", Code: "server_error", Message: "The gateway is shutting down.",
		}, nil
	}
	c.announce(nil)
	_ = writeError(c.w, c.dialect, e, attempts) // the client is gone
}

// announce sets our own response headers.
func (c *call) announce(warnings []string) {
	if all := append(c.warnings[:len(c.warnings):len(c.warnings)], warnings...); len(all) > 0 {
		c.w.Header()["Service-Warnings"] = all
	}
}

// asError is err as the client is told it.
func asError(err error) *plugins.Error {
	if e, ok := errors.AsType[*plugins.Error](err); ok {
		return e
	}
	return &plugins.Error{
		Status: http.StatusInternalServerError, Type: "server_error", Code: "server_error",
		Message: "The gateway failed to process the request.",
	}
}
