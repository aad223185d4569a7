package llmlog

import (
	"cmp"
	"net/http"
	"slices"

	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"
)

// bounded is a call that a budget counts.
type bounded struct {
	*llmapp.Ticket
	model      *catalog.Model // nil without a price
	usage      plugins.Usage  // at most
	conditions catalog.Conditions
	tiers      []string      // that the request asks for
	cutAt      int64         // the output tokens after which the stream is ended; 0: it is not
	silent     bool          // the model may think what its answer does not show
	batch      bool          // the provider makes the calls later
	reads      *bound.Demand // nil until the request has been read
}

// tierFields are the header fields by which clients of Vertex AI and Bedrock ask for a service
// tier (https://cloud.google.com/vertex-ai/generative-ai/docs/priority-paygo,
// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModel.html).
var tierFields = []string{"X-Vertex-AI-LLM-Shared-Request-Type", "X-Amzn-Bedrock-Service-Tier"}

// reserve sets aside what the call may cost, if a budget counts the call. The bytes of the
// call stay as they are. A budget counts what a provider is asked to make: not what is read
// or deleted, what counts tokens, and what the client's subscription pays.
func (x *exchange) reserve(key *access.Key) *plugins.Error {
	r := &x.Record
	app := x.h.site.App
	pays := x.account != nil
	budgets, err := app.BudgetsOf(r.Org)
	if x.limit != nil {
		budgets = append(slices.Clip(budgets), x.limit)
	}
	if !pays && (len(budgets) == 0 && err == nil || r.Subscription || x.isFree()) {
		return nil
	}
	var sent []byte
	if pays || err != nil || llmapp.ReadBodies(budgets) { // budgets that cannot be read now may count the call in a moment
		var refused *plugins.Error
		if sent, refused = x.readBody(); refused != nil {
			return refused
		}
	}
	x.update() // the body tells the model, the user and what the call continues
	s := llmapp.Spending{Org: r.Org, Key: key, Account: x.account, Provider: cmp.Or(r.Provider, llmapp.NoProvider), Record: r, Limit: x.limit}
	object, isObject := plugins.ParseObject(sent)
	request := bound.JSON(r.Dialect, object)
	if isObject {
		s.Model = cmp.Or(observe.PathModel(r.Dialect, r.Path), request.Field("model").Str)
	}
	var batch bound.Batch
	makesBatch := r.Dialect == plugins.Batches && !x.isFree()
	if makesBatch {
		batch = x.batched(s.Model, object)
		s.Model, s.Batch = "", append([]string{}, batch.Models()...)
	}
	if x.isBatch() {
		s.Files, s.Names = true, batch.Names()
	}
	if pays {
		x.TargetModel = s.Model
		if err := x.checkCall(key, request, object, isObject); err != nil {
			return err
		}
	}
	b := &bounded{
		conditions: catalog.Conditions{At: r.CreatedAt.Time(), Geography: request.Field("inference_geo").Str},
		tiers:      request.Tiers(),
	}
	for _, field := range tierFields {
		b.tiers = append(b.tiers, x.r.Header.Values(field)...)
	}
	s.AtMost = func() bound.Used {
		switch {
		case x.isFree():
			return bound.Free()
		case makesBatch:
			return batch.AtMost(app.Catalog(), s.Provider, b.conditions.At)
		}
		most := b.uses(bound.Most, app, &s, request, sent)
		b.usage = most.Usage
		return most
	}
	s.Expected = func(output int64) bound.Used {
		limit := b.cutAt
		defer func() { b.cutAt = limit }()
		b.cutAt = output
		return b.uses(bound.Likely, app, &s, request, sent)
	}
	if makesBatch {
		s.Expected = nil
	}
	if x.asksForEvents(request) {
		s.Cut = func(fits func(bound.Used) bool) bool { return b.cut(request, func() bool { return fits(s.AtMost()) }) }
	}
	if x.h.site.Money.Bounds(s) && s.Model != "" {
		if err := request.Check(); err != nil {
			return err.(*plugins.Error) //nolint:errorlint,forcetypeassert // Check returns no other
		}
	}
	ticket, err := x.h.site.Money.Admit(x.ctx, s)
	if err != nil {
		return err.(*plugins.Error) //nolint:errorlint,forcetypeassert // Admit returns no other
	}
	b.Ticket, b.silent, b.batch = ticket, b.model != nil && request.Silent(b.model), makesBatch
	batch.Reservation = ticket.Batch()
	r.Batch = batch.Text()
	if x.bounded = b; ticket.Bounded() {
		x.Pay = x.charge
	}
	if pays {
		x.r = llmapp.WithTicket(x.r, ticket)
	}
	return nil
}

// batched returns what the calls of a batch can use at most: those within the request, or in a
// file that was uploaded before.
func (x *exchange) batched(model string, body *plugins.Object) bound.Batch {
	file := body.Get("input_file_id").Str
	if file == "" {
		adder := x.adder()
		return adder.Inline(model, body)
	}
	return x.Uploaded(file, "").MadeBy(body)
}

// adder adds up the calls of a batch at the provider.
func (x *exchange) adder() bound.Adder {
	return bound.Adder{Catalog: x.h.site.App.Catalog(), Provider: cmp.Or(x.Record.Provider, x.h.Provider)}
}

// uploads reports whether the request uploads a file, which may have the calls of a batch.
func (x *exchange) uploads() bool {
	return x.r.Method == http.MethodPost && x.Record.Dialect == plugins.Batches && observe.IsUpload(x.Record.Path)
}

// isFree reports whether the call costs nothing. Where a path has encoded slashes, the provider
// decides which they are.
func (x *exchange) isFree() bool {
	if x.r.URL.RawPath != "" {
		return !x.makes()
	}
	return x.Record.Dialect.CountsTokens() || !x.makes() || x.uploads() || observe.IsCancel(x.Record.Path)
}

// makes reports whether the request makes the provider do something, or opens a connection on
// which it may.
func (x *exchange) makes() bool {
	switch x.r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodDelete:
		return x.r.Header.Get("Upgrade") != "" ||
			slices.ContainsFunc(methodOverrides, func(name string) bool { return x.r.Header.Get(name) != "" }) ||
			x.r.URL.Query().Has("$httpMethod")
	}
	return true
}

// methodOverrides are the fields that name another method, which Google and others obey
// (https://cloud.google.com/apis/docs/system-parameters).
var methodOverrides = []string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"}

// readBody reads the body for what the call may cost.
func (x *exchange) readBody() ([]byte, *plugins.Error) {
	if !x.hasBody() || x.r.Method == http.MethodConnect {
		return nil, nil
	}
	if contentEncoding(x.r.Header) != "" {
		e := plugins.Invalid("", "The gateway has to read this call before it passes: send the body without Content-Encoding.")
		e.Status = http.StatusUnsupportedMediaType
		return nil, e
	}
	refused, err := x.readAhead()
	if err != nil {
		return nil, plugins.Invalid("", "The body of the request broke off.")
	}
	return x.ahead.Bytes, refused
}

// uses is the most that the call can use, by the tokens that text has by a scale. It is unknown
// without a price.
func (b *bounded) uses(by bound.Scale, app *llmapp.App, s *llmapp.Spending, request bound.Request, body []byte) bound.Used {
	var ok bool
	if b.model, ok = app.Catalog().Lookup(s.Provider, s.Model); !ok || s.Model == "" {
		b.model = nil
		return bound.Used{}
	}
	if b.reads == nil {
		object, _ := plugins.ParseObject(body)
		b.reads = bound.OfTurn(app.Counts(), request.Dialect, object, s.Org, s.Provider, s.Model)
	}
	usage, ok := request.Uses(b.model, b.reads, by, int64(len(body)), b.cutAt)
	if !ok {
		return bound.Used{}
	}
	return bound.Used{Cost: b.model.AtMost(usage, b.conditions, b.tiers...), Usage: usage}
}

func (x *exchange) charge(cost plugins.Cost) {
	x.bounded.reads.Learn(x.h.site.App.Counts(), x.Record.Usage.Input)
	x.meter(bound.Used{Cost: cost, Usage: x.Record.Usage})
}

func (x *exchange) meter(used bound.Used) {
	if err := x.bounded.Charge(x.ctx, used, bound.Used{}); err != nil {
		x.h.site.Logger.Error("a charge is not on disk", zap.Stringer("id", x.Record.ID), zap.Stringer("cost", used.Cost.N), zap.Error(err))
	}
}

// settle counts an answer whose cost or usage the provider has not stated: by its length if the
// answer was broken off, else, if a budget counts it, as the most that the call can have used.
func (x *exchange) settle(end storage.EndState) {
	status := x.Record.Status
	left := status.N == recording.StatusClientLeft // before the provider answered, which works on
	broken := x.BrokenOff(end)
	if x.bounded == nil && broken {
		x.countKept()
	}
	if x.bounded == nil || x.bounded.batch || !x.bounded.Open() || !left && (status.N < 200 || status.N >= 300) {
		return
	}
	usage, stated, cost := x.bounded.usage, x.Record.Usage, x.Record.Cost
	if cost.Valid && stated.Input.Valid && !broken {
		return
	}
	if broken {
		written := bound.Likely.Text(x.Record.ResponseBytes)
		if x.bounded.silent || left || !x.Record.Stream { // what is no stream was written before it came
			written = max(written, bound.Thought(x.Record.Latency.N))
		}
		usage.Output = plugins.Known(min(usage.Output.N, written))
	}
	if counted := x.bounded.Reserved(); counted.Valid && (broken || !cost.Valid) {
		if broken && x.bounded.model != nil {
			if most := x.bounded.model.AtMost(usage, x.bounded.conditions, x.bounded.tiers...); most.Valid {
				counted.N = min(counted.N, most.N)
			}
		}
		x.Counted = max(counted.N, cost.N)
		x.Commit(end)
	}
	usage.Input, usage.Output.N = stated.Input.Or(usage.Input), max(usage.Output.N, stated.Output.N)
	x.meter(bound.Used{Usage: usage})
}

// countKept counts the cost of an answer that was broken off, by the length of what is kept of
// it. Some providers state until the end only what they began with. The cost is unknown if the
// length does not tell the cost, or if the answer is not kept.
func (x *exchange) countKept() {
	r := &x.Record
	used := r.Usage
	if x.observer == nil || r.Status.N != http.StatusOK || used.ReportedCost.Valid || used.Output.Valid && x.phase() != plugins.Running {
		return
	}
	kept := x.Kept.Content(r)
	written, ok := bound.Written(r.Dialect, kept.Response)
	if !ok || r.ResponseTruncated || !x.requestTells(kept.Request.Data, used.Input) {
		x.Uncounted = true
		return
	}
	used.Input = used.Input.Or(plugins.Known(bound.Likely.Text(r.RequestBytes)))
	used.Output = plugins.Known(max(used.Output.N, bound.Likely.Text(written)))
	x.Count(used)
}

// requestTells reports whether the length of the answer tells its cost, by what is kept of the
// request. If the request is omitted, it is enough that the provider has stated the input.
func (x *exchange) requestTells(kept []byte, input plugins.Count) bool {
	if x.Record.RequestOmitted {
		return input.Valid
	}
	request, _ := plugins.ParseObject(kept)
	return bound.Countable(x.Record.Dialect, request, input)
}

// release frees what is set aside and was not charged.
func (x *exchange) release() {
	if x.bounded == nil {
		return
	}
	if status := x.writer.Status(); x.err != nil {
		x.bounded.Answered(0, x.err)
	} else if x.account == nil {
		x.bounded.Answered(status, nil)
	}
	if err := x.bounded.Release(x.ctx); err != nil {
		x.h.site.Logger.Error("a reservation is not released", zap.Stringer("id", x.Record.ID), zap.Error(err))
	}
}
