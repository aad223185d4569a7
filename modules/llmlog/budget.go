package llmlog

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/money"
	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"
)

// tierFields are the header fields by which clients of Vertex AI and Bedrock ask for a service
// tier (https://cloud.google.com/vertex-ai/generative-ai/docs/priority-paygo,
// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModel.html).
var tierFields = []string{"X-Vertex-AI-LLM-Shared-Request-Type", "X-Amzn-Bedrock-Service-Tier"}

// payment says who pays for a call, and what counts it, as far as the head of the request tells.
type payment struct {
	counted bool // credits or budgets may count the call
	reads   bool // they may need its body
	refuses bool // they may refuse it: not all of them are budgets that only observe
}

// payment returns who pays for the call. A budget counts what a provider is asked to make: not what is
// read or deleted, what counts tokens, and what the client's subscription pays. Budgets that cannot be
// read now may count the call in a moment.
func (x *exchange) payment() payment {
	r := &x.rec.Record
	budgets, err := x.h.site.App.Money().Of(r.Org)
	if x.limit != nil {
		budgets = append(slices.Clip(budgets), x.limit)
	}
	if x.account != nil {
		return payment{counted: true, reads: true, refuses: true}
	}
	p := payment{counted: (len(budgets) > 0 || err != nil) && !r.Subscription && !x.operation().isFree()}
	p.reads = p.counted && (err != nil || money.ReadBodies(budgets))
	p.refuses = err != nil || slices.ContainsFunc(budgets, func(b *money.Budget) bool { return !b.Observe })
	return p
}

// readBody reads the body if credits, budgets or the cache need it. Where none of them refuses, a body
// that cannot be read passes unread, unless a part of it is gone.
func (x *exchange) readBody(p payment) (body []byte, unread bool, refused *plugins.Error) {
	if !p.reads && x.cache.options == nil {
		return nil, false, nil
	}
	body, refused = x.request.read(&x.writer, x.r)
	if refused != nil && (p.reads && p.refuses || refused.Status == http.StatusRequestTimeout) {
		return nil, true, refused
	}
	return body, refused != nil, nil
}

// reserve sets aside what the call may cost, if credits or a budget count the call, and lets the cache
// see the request. The bytes of the call stay as they are.
func (x *exchange) reserve(key *access.Key) error {
	if x.request.late != nil {
		return x.request.late
	}
	if refused := x.checkMasked(); refused != nil {
		return refused
	}
	p := x.payment()
	if !p.counted && x.cache.options == nil {
		return nil
	}
	body, unread, refused := x.readBody(p)
	if refused != nil {
		return refused
	}
	if p.counted {
		x.update() // the body tells the model, the user and what the call continues
	}
	object, isObject := plugins.ParseObject(body)
	request := bound.JSON(x.rec.Record.Dialect, object)
	x.streams = request.Get("stream").Type == gjson.True || strings.HasSuffix(x.r.URL.Path, ":streamGenerateContent")
	model := ""
	if isObject {
		model = cmp.Or(observe.PathModel(x.rec.Record.Dialect, x.rec.Record.Path), request.Get("model").Str)
	}
	s, batch := x.spending(key, model, object)
	if x.account != nil {
		x.rec.TargetModel = s.Model
		if err := x.checkCall(key, request, object, isObject); err != nil {
			return err
		}
	}
	if x.cache.options != nil {
		if unread {
			object = &plugins.Object{}
		}
		x.cache.ask(object)
	}
	if !p.counted {
		return nil
	}
	s.Call = x.boundCall(request, object, &s)
	switch {
	case unread && p.reads:
		s.MaxUsage = func(int64) bound.Used { return bound.Used{} }
	case x.operation().isFree():
		s.Call.Free = true
	case x.createsBatch():
		s.MaxUsage = func(int64) bound.Used {
			return batch.MaxUsage(x.h.site.App.Catalog(), s.Provider, s.Call.Conditions.At)
		}
	}
	return x.setAside(request, s, batch)
}

// createsBatch reports whether the call creates a batch at the provider.
func (x *exchange) createsBatch() bool {
	return x.rec.Record.Dialect == plugins.Batches && !x.operation().isFree()
}

// spending returns whose call it is and what it calls, and the batch that it creates, if any.
func (x *exchange) spending(key *access.Key, model string, object *plugins.Object) (s money.Spending, batch bound.Batch) {
	r := &x.rec.Record
	s = money.Spending{Org: r.Org, Key: key, Account: x.account, Provider: cmp.Or(r.Provider, llmapp.NoProvider), Model: model, Record: r, Limit: x.limit}
	if x.createsBatch() {
		batch = x.batched(model, object)
		s.Model, s.Batch = "", append([]string{}, batch.Models()...)
	}
	if x.operation().isBatch() {
		s.Files, s.Names = true, batch.AllModels()
	}
	return s, batch
}

// setAside sets aside what the call may cost, or returns why the call cannot be made.
func (x *exchange) setAside(request bound.Request, s money.Spending, batch bound.Batch) error {
	if x.operation().asksForEvents(request) && !s.Call.Silent() {
		s.Cut = s.Call.Lowerable(bound.LeastOutput)
	}
	if x.h.site.App.Money().Bounds(s) && s.Model != "" {
		if err := request.Check(); err != nil {
			return err
		}
	}
	bill, err := x.h.site.App.Money().Admit(x.ctx, s)
	if err != nil {
		return err
	}
	x.rec.Bill = bill
	batch.Reservation = bill.Batch()
	x.rec.Record.Batch = batch.Text()
	if x.account != nil {
		x.r = money.WithBill(x.r, bill)
	}
	return nil
}

// checkMasked refuses a call of which something must not be stored, if masks refuse such calls.
func (x *exchange) checkMasked() *plugins.Error {
	r, maskers := &x.rec.Record, x.h.site.App.Maskers()
	if !maskers.Of(r.Org, r.ContentMask()).Refuses() {
		return nil
	}
	body, refused := x.request.read(&x.writer, x.r)
	if refused != nil {
		return refused
	}
	if refused = maskers.Check(r, body); refused != nil {
		return refused
	}
	if x.r.Header.Get("Upgrade") != "" || x.r.Method == http.MethodConnect {
		return maskers.CheckUnread(r, "The messages of a WebSocket")
	}
	return nil
}

// boundCall returns what the call can use.
func (x *exchange) boundCall(request bound.Request, object *plugins.Object, s *money.Spending) *bound.Call {
	app, org, provider, model := x.h.site.App, s.Org, s.Provider, s.Model
	call := &bound.Call{
		Request: request, Catalog: app.Catalog(), Provider: provider, Bytes: int64(len(object.Data)), Tiers: request.Tiers(),
		Conditions: catalog.Conditions{At: x.rec.Record.CreatedAt.Time(), Geography: request.Get("inference_geo").Str},
		Read: func() *bound.Demand {
			return bound.OfTurn(app.Counts(), request.Dialect, object, org, provider, model)
		},
	}
	for _, field := range tierFields {
		call.Tiers = append(call.Tiers, x.r.Header.Values(field)...)
	}
	if model != "" {
		call.Model, _ = app.Catalog().Lookup(provider, model)
	}
	return call
}

// batched returns what the calls of a batch can use at most: those within the request, or in a
// file that was uploaded before.
func (x *exchange) batched(model string, body *plugins.Object) bound.Batch {
	file := body.Get("input_file_id").Str
	if file == "" {
		adder := x.adder()
		return adder.Inline(model, body)
	}
	return x.rec.Earlier().Uploaded(file, "").CreatedBy(body)
}

// adder adds up the calls of a batch at the provider.
func (x *exchange) adder() bound.Adder {
	return bound.Adder{Catalog: x.h.site.App.Catalog(), Provider: cmp.Or(x.rec.Record.Provider, x.h.Provider)}
}

// settle counts an answer whose cost or usage the provider has not stated.
func (x *exchange) settle(end storage.EndState) {
	x.rec.Settle(recording.Settling{
		End: end, Left: x.rec.Record.Status.N == storage.StatusClientLeft || x.failed && timedOut(x.err), Streams: x.streams, Served: x.rec.Record.ResponseBytes > 0,
	})
}

// timedOut reports whether a call failed because the provider, which got the request, had no time
// for its answer.
func timedOut(err error) bool {
	var dial reverseproxy.DialError
	return errorStatus(err) == http.StatusGatewayTimeout && !errors.As(err, &dial)
}

// release frees what is set aside and was not charged.
func (x *exchange) release() {
	if x.rec.Bill == nil {
		return
	}
	if status := x.writer.Status(); x.err != nil {
		x.rec.Bill.Answered(0, x.err)
	} else if x.account == nil {
		x.rec.Bill.Answered(status, nil)
	}
	x.rec.Release()
}
