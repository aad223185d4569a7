package llmgateway

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/capture"
	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/modules/internal/redact"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
)

// attempt is one try at one target.
type attempt struct {
	*call
	target  target
	started time.Time
	prompt  *translate.Request // what is sent, in the translating lane
	sealer  *sealer            // of reasoning, likewise
	notes   []string           // warnings of the other lane

	record    storage.Record
	content   storage.Content
	copy      capture.Copy // of the response
	seen      func() *plugins.ResponseInfo
	committed mark
	lost      bool

	reservation *credits.Reservation // nil where the house does not pay

	err      *plugins.Error // why it failed
	answered bool           // it is the one that answers
	begun    bool           // the client has the header
	wrote    time.Time      // when it was last sent something
	gone     error          // of writing to the client
}

// mark is what a later commit may have to correct in an earlier one.
type mark struct {
	made       bool
	id         uuid.UUID
	end        storage.EndState
	status     plugins.Count
	bytes      int64
	extraction plugins.ResponseInfo
}

// maxError bounds what is kept of the body of an error, in bytes.
const maxError = 64 << 10

// unseen is the extraction of an attempt without a response.
var unseen plugins.ResponseInfo

func (c *call) begin(t target, n int) *attempt {
	a := &attempt{call: c, target: t, started: time.Now(), record: c.record}
	a.seen = func() *plugins.ResponseInfo { return &unseen }
	r := &a.record
	r.CreatedAt, r.Number = storage.Millis(a.started), 0
	r.Attempt, r.Provider = n, t.account.Provider
	r.Path = c.r.URL.Path
	return a
}

// attempt tries a target. It answers the client and returns nil, or returns why
// another attempt may.
func (c *call) attempt(t target, n int) *failure {
	a := c.begin(t, n)
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()

	req, err := a.prepare(ctx)
	if err != nil {
		return &failure{t, asError(err), elsewhere}
	}
	if e := a.reserve(); e != nil {
		return &failure{t, e, elsewhere}
	}
	if c.last != nil {
		c.last.supersede()
		c.last = nil
	}
	defer a.settle()
	a.record.Path, a.record.TargetURL = req.URL.Path, redact.URL(req.URL.String())

	resp, err := t.account.Transport.RoundTrip(req)
	if err != nil {
		return a.unreached(err)
	}
	defer resp.Body.Close()
	resp.Request = req // which not every transport sets
	a.record.Status = plugins.Known(int64(resp.StatusCode))
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return a.refused(resp)
	}
	defer a.copy.Free()
	if a.prompt != nil {
		return a.translate(resp)
	}
	return a.pass(resp)
}

// prepare makes the upstream request.
func (a *attempt) prepare(ctx context.Context) (*http.Request, error) {
	account := a.target.account
	t := translate.Target{
		Model: a.target.model, BaseURL: account.BaseURL, Key: account.Key, Capabilities: a.target.capabilities(),
	}
	if native, ok := account.API.(translate.Native); ok {
		req, err := native.PrepareNative(ctx, a.dialect, a.readable(a.sent), t)
		if err == nil {
			a.passRequestHeaders(req)
		}
		if !errors.Is(err, errors.ErrUnsupported) {
			return req, err
		}
	}
	if a.dialect != plugins.Responses {
		e := plugins.Invalid("model", "%s does not speak the format of this endpoint. POST /v1/responses calls its models.", account.Label)
		e.Code = "unsupported_endpoint"
		return nil, e
	}
	if field := a.stateful.field; field != "" {
		return nil, plugins.Unsupported(field, "'%s' names what a provider keeps, and %s keeps nothing.%s", field, account.Label, a.stateful.hint)
	}
	parsed, err := a.parsed()
	if err != nil {
		return nil, err
	}
	p := *parsed
	p.Model = t.Model // which the response names where the provider does not
	p.Strict = a.strict
	a.prompt = &p
	if a.sealer, err = a.h.sealer(); err != nil {
		a.h.logger.Error("the secret of the gateway cannot be read", zap.Error(err))
		return nil, err
	}
	if err := p.Unseal(a.unseal); err != nil {
		return nil, err
	}
	a.recall(p.Turns)
	return account.API.Prepare(ctx, a.prompt, t)
}

// clientLeft is why an answer ends that nobody waits for any more. It is no
// provider's error, and nobody is told it.
var clientLeft = plugins.Error{Message: "The client left."}

// unreached is a provider that gave no answer.
func (a *attempt) unreached(err error) *failure {
	if a.ctx.Err() != nil {
		a.record.Status = plugins.Known(recording.StatusClientLeft)
		return a.failed(storage.ClientAborted, &clientLeft, giveUp)
	}
	e := plugins.Upstream("The provider could not be reached.")
	e.Code = "upstream_unreachable"
	if n, ok := errors.AsType[net.Error](err); ok && n.Timeout() {
		e.Status, e.Code, e.Message = http.StatusGatewayTimeout, "upstream_timeout", "The provider did not answer in time."
	}
	a.h.logger.Error("a provider gave no answer", zap.Stringer("call", a.id), zap.String("target", a.target.name()), zap.Error(err))
	a.record.Status = plugins.Known(int64(e.Status))
	return a.failed(storage.Failed, e, again)
}

// refused is a provider that answered an error.
func (a *attempt) refused(resp *http.Response) *failure {
	var kept bytes.Buffer
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(resp.Body, &kept), resp.Body}
	e := a.target.account.API.Error(resp)
	if !a.record.ResponseOmitted {
		a.content.Response = storage.Body{
			Type: resp.Header.Get("Content-Type"), Data: kept.Bytes()[:min(kept.Len(), maxError)],
		}
		a.record.ResponseTruncated = kept.Len() > maxError
	}
	a.record.ResponseBytes = int64(kept.Len())

	after := giveUp
	switch status := resp.StatusCode; {
	case (unauthorized(status) || unauthorized(e.Status)) && a.target.account.Platform:
		a.h.logger.Error("a provider refuses the house's key", zap.Stringer("call", a.id),
			zap.String("target", a.target.name()), zap.Int("status", status))
		e, after = plugins.Upstream("The provider does not accept the gateway's credentials."), elsewhere
		e.Code = "upstream_auth"
		a.content.Response, a.record.ResponseTruncated = storage.Body{}, false // it may name the key
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooManyRequests, status >= 500:
		after = again
	}
	return a.failed(storage.Complete, e, after)
}

// unauthorized is a status that refuses a key. Gemini says 400 and means 401,
// which its plugin knows.
func unauthorized(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

// failed ends an attempt that has not answered, and may be the answer if no
// other comes.
func (a *attempt) failed(end storage.EndState, e *plugins.Error, after next) *failure {
	a.record.EndState = end
	a.record.ErrorType = e.Type
	a.update(time.Now()) // what follows is the time of others
	a.err, a.last = e, a
	return &failure{a.target, e, after}
}

// broken is a provider whose answer failed before any of it reached the client.
func (a *attempt) broken(e *plugins.Error) *failure {
	if a.ctx.Err() != nil {
		return a.failed(storage.ClientAborted, &clientLeft, giveUp)
	}
	return a.failed(storage.UpstreamAborted, e, again)
}

// answer makes the attempt the one that answers the call.
func (a *attempt) answer() {
	if a.answered {
		return
	}
	a.answered = true
	r := &a.record
	r.Number, a.call.record.Number, a.counted = a.call.record.Number, 0, r
	if !r.RequestOmitted {
		kept := a.body[:min(int64(len(a.body)), a.h.MaxBody)]
		a.content.Request = storage.Body{Type: a.r.Header.Get("Content-Type"), Data: kept}
		r.RequestTruncated = len(kept) < len(a.body)
		a.content.Inputs = a.inputs
		reader := observe.NewRequestReader(a.dialect)
		reader.Write(a.body)
		a.content.Media = reader.Request().Media
	}
}

// supersede records an attempt after which another one is made.
func (a *attempt) supersede() {
	a.record.ID = uuid.Must(uuid.NewV7()) // fails without randomness alone
	a.record.AttemptOf = a.id
	a.recorder.Begin(&a.record) // an exchange of its own
	a.enter()
	a.h.app.Observe(&a.record)
	a.h.app.Export(&a.record, &a.content)
}

// commit brings the record into the journal as it is known now, unless it stands
// there already. It returns when the end of the process could not lose it.
func (a *attempt) commit() {
	a.update(time.Now())
	a.enter()
}

// enter brings the record into the journal as it is.
func (a *attempt) enter() {
	r := &a.record
	m := mark{true, r.ID, r.EndState, r.Status, r.ResponseBytes, *a.seen()}
	if a.lost || m == a.committed {
		return
	}
	if err := a.recorder.Append(r, &a.content); err != nil {
		a.lost = true // it was counted, so it must stay so
		a.h.logger.Error("a record is lost", zap.Stringer("id", r.ID), zap.String("store", a.h.store), zap.Error(err))
		return
	}
	a.committed = m
}

// update fills in what the answer has told so far, and charges its cost.
func (a *attempt) update(now time.Time) {
	r := &a.record
	r.RespondedAt, r.UpdatedAt = storage.Millis(now), storage.Millis(now)
	r.Latency = plugins.KnownDuration(now.Sub(a.started))
	failure := r.ErrorType
	recording.Learn(r, a.seen())
	if r.ErrorType == "" {
		r.ErrorType = failure
	}
	if r.ModelOverride == "" && r.ResponseModel == "" && a.target.model != "" {
		r.Model = a.target.model
	}
	recorded := r.Model
	if r.PassthroughBilling { // a client cannot choose what it pays
		r.Model = cmp.Or(r.ResponseModel, a.target.model)
	}
	recording.Price(r, a.h.app.Catalog(), a.started)
	if !r.Cost.Valid && r.Model != a.target.model && a.target.listed != nil {
		r.Cost = a.target.listed.Cost(r.Usage, r.ServiceTier, a.started)
		r.PriceVersion = a.h.app.Catalog().Version()
	}
	r.Model = recorded
	a.charge(r.Cost)
}

// report tells metrics, access log and placeholders what the call came to.
func (a *attempt) report() {
	a.call.record = a.record
	a.h.app.Observe(&a.record)
	a.h.app.Export(&a.record, &a.content)
	recording.Log(a.ctx, &a.record)
}
