package recording

import (
	"cmp"

	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/money"
	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/streams"
	"github.com/weirhq/weir/storage"
)

// Settling is what a lane knows of the end of an answer, besides the record.
type Settling struct {
	End storage.EndState
	// Left, Streams, Served and Unbegun are those of money.Ending. Streams: the request asked for a
	// stream.
	Left, Streams, Served, Unbegun bool
	// Request is the request, nil for the part of it that the record stores.
	Request *plugins.Object
	// Written returns how many bytes of the answer the model has written, and in how many
	// events. nil counts those in the part of the answer that the record stores.
	Written func() (bytes, events int64)
}

// Settle counts an answer whose cost or usage the provider has not stated, by the table in the
// documentation of the package money. Commit or End must follow. It does nothing when a bill that
// bounds the call has ended.
func (x *Exchange) Settle(s Settling) {
	r, seen := &x.Record, x.Info()
	if r.Dialect == plugins.Batches || x.Local != nil { // the calls of a batch are settled later
		return
	}
	paid := x.Bill != nil && x.Bill.Open()
	if !paid && x.Bill != nil && x.Bill.Bounded() { // its last request was settled when the bill ended
		return
	}
	e := &money.Ending{
		Status: r.Status.N, Left: s.Left, Broken: x.BrokenOff(s.End), Provider: s.End == storage.UpstreamAborted, Stream: s.Streams || r.Stream, Served: s.Served, Unbegun: s.Unbegun,
		Final: seen.Usage.Output.Valid && seen.Finish != "" && seen.Phase != plugins.Running && !x.Cut, Cost: r.Cost, Stated: seen.Usage,
		Length: func() money.Length { return x.length(s) },
	}
	if r.Usage == (plugins.Usage{}) && r.Cost == money.Unstated(r.Status.N) && !x.costing.free {
		e.Cost = plugins.Cost{} // nobody has stated it
	}
	if e.Broken && e.Stream && !e.Final {
		e.Hosted = x.hosted(s.Request)
	}
	rule := e.Rule()
	if rule == money.AsStated {
		return
	}
	if !x.costing.free && (!paid || !x.Bill.Reserved().Valid) {
		x.countUnpaid(s, e, rule)
	}
	if paid {
		used := x.Bill.Settle(e, r.ServiceTier)
		if e.CostStated() || !x.Bill.Reserved().Valid {
			used.Cost = plugins.Cost{}
		} else {
			x.costing.counted = max(used.Cost.N, r.Cost.N)
			used.Cost = plugins.KnownCost(x.costing.counted)
		}
		defer x.charge(used)
	}
	x.update()
}

// charge charges what the call has used so far.
func (x *Exchange) charge(used bound.Used) {
	if x.Bill == nil {
		return
	}
	if err := x.Bill.Charge(x.ctx, used); err != nil {
		x.site.Logger.Error("a charge is not on disk", zap.Stringer("id", x.Record.ID), zap.Stringer("cost", used.Cost.N), zap.Error(err))
	}
	x.Bill.NoteCharges(&x.Record)
}

// Release ends the bill: nothing can be charged any more.
func (x *Exchange) Release() {
	if x.Bill == nil {
		return
	}
	if err := x.Bill.Release(x.ctx); err != nil {
		x.site.Logger.Error("a reservation is not released", zap.Stringer("id", x.Record.ID), zap.Error(err))
	}
}

// length returns the length of the answer so far. If the record stores nothing of it, all bytes that
// passed count.
func (x *Exchange) length(s Settling) money.Length {
	r := &x.Record
	length := money.Length{Took: r.Latency.N}
	switch {
	case s.Written != nil:
		length.Bytes, length.Events = s.Written()
	case r.ResponseBytes > 0:
		response := x.Kept.Content(r).Response
		var ok bool
		if length.Bytes, ok = bound.Written(r.Dialect, response); !ok {
			length.Bytes = r.ResponseBytes
		}
		for event := range streams.SSEData(response.Data) {
			if observe.Read(r.Dialect, r.Provider, nil, event).Content {
				length.Events++
			}
		}
	}
	return length
}

// countUnpaid counts an answer for a call without budgets, by the length of the stored answer if the
// rule says so. The cost is unknown if the length does not determine it, or if the answer is not
// stored.
func (x *Exchange) countUnpaid(s Settling, e *money.Ending, rule money.Rule) {
	r, used := &x.Record, e.Stated
	if used.ReportedCost.Valid || e.Cost == r.Cost && (!e.Broken || x.Answer == nil) {
		return // the record has what is stated, and no more can be said
	}
	content := x.Kept.Content(r)
	request := s.Request
	if request == nil {
		request, _ = plugins.ParseObject(content.Request.Data)
	}
	inputKnown := used.Input.Valid // enough if the request is omitted
	if s.Request != nil || !r.RequestOmitted {
		inputKnown = bound.Countable(r.Dialect, request, used.Input)
	}
	_, outputShown := bound.Written(r.Dialect, content.Response)
	outputShown = s.Written != nil || outputShown && !r.ResponseTruncated
	call := x.Bill.Call()
	if call == nil {
		call = &bound.Call{Request: bound.JSON(r.Dialect, request)}
		call.Model, _ = x.site.App.Catalog().Lookup(r.Provider, r.Model)
	}
	if rule != money.ByLength || x.Answer == nil || !inputKnown || !outputShown || call.Model == nil || x.costing.spent != nil {
		x.costing.unknown = true
		return
	}
	used.Input = used.Input.Or(plugins.Known(bound.Likely.Text(int64(len(request.Data)))))
	used.Output = plugins.Known(e.Written(call))
	priced := *r
	priced.Usage, priced.ServiceTier = used, cmp.Or(r.ServiceTier, request.Get("service_tier").Str)
	x.price(&priced)
	x.costing.counted = priced.Cost.N
}

// hosted reports whether the answer may have called tools that the provider runs and bills: the
// request has some, and the stored answer does not show that none was called.
func (x *Exchange) hosted(request *plugins.Object) bool {
	r := &x.Record
	content := x.Kept.Content(r)
	if request == nil {
		request, _ = plugins.ParseObject(content.Request.Data)
	}
	if !bound.Of(r.Dialect, request, nil).Hosted && (x.Bill == nil || !x.Bill.Hosted()) {
		return false
	}
	return r.ResponseTruncated || bound.MayHaveCalled(r.Dialect, content.Response.Data)
}
