package recording

import (
	"bytes"
	"cmp"
	"net/http"

	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/money"
	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// Settling is what a lane knows of the end of an answer, beside the record.
type Settling struct {
	End storage.EndState
	// Left: the client, or Weir for it, did not wait for the provider, which works on.
	Left bool
	// Streams: a stream was asked for.
	Streams bool
	// Served: the client has a part of the answer.
	Served bool
	// Request is the request, nil if only what is kept of it is known.
	Request *plugins.Object
	// Written returns how many bytes of the answer the model has written, and in how many
	// events. nil: what is kept of the answer tells.
	Written func() (bytes, events int64)
}

// Settle counts an answer whose cost or usage the provider has not stated, by the table in the
// documentation of the package money. Commit or End must follow.
func (x *Exchange) Settle(s Settling) {
	r, seen := &x.Record, x.Info()
	if r.Dialect == plugins.Batches || x.Hit != nil { // its calls tell what they cost, or nobody is paid
		return
	}
	paid := x.Bill != nil && x.Bill.Open()
	e := &money.Ending{
		Status: r.Status.N, Left: s.Left, Broken: x.BrokenOff(s.End), Provider: s.End == storage.UpstreamAborted, Stream: s.Streams || r.Stream, Served: s.Served,
		Final: seen.Usage.Output.Valid && seen.Finish != "" && seen.Phase != plugins.Running && !x.Cut, Cost: r.Cost, Stated: seen.Usage,
	}
	if e.Broken && e.Stream && !e.Final {
		e.Hosted = x.hosted(s.Request)
	}
	rule := e.Rule()
	if rule == money.AsStated {
		return
	}
	if !paid || !x.Bill.Reserved().Valid {
		x.countUnpaid(s, e, rule)
	}
	if paid {
		var length money.Length
		if rule == money.ByLength {
			length = x.length(s)
		}
		used := x.Bill.Settle(e, length, r.ServiceTier)
		if e.CostStated() || !x.Bill.Reserved().Valid {
			used.Cost = plugins.Cost{}
		} else {
			x.counted = max(used.Cost.N, r.Cost.N)
			used.Cost = plugins.KnownCost(x.counted)
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

// length is how much of the answer has come. If nothing of it is kept, all bytes that passed
// count.
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
		length.Events = int64(bytes.Count(response.Data, []byte("data:")))
	}
	return length
}

// countUnpaid counts the cost of an answer that was broken off and whose cost nothing bounds, by
// the length of what is kept of it. The cost is unknown if the length does not tell it, or if the
// answer is not kept.
func (x *Exchange) countUnpaid(s Settling, e *money.Ending, rule money.Rule) {
	r, used := &x.Record, e.Stated
	if !e.Broken || r.Status.N != http.StatusOK || x.Answer == nil || used.ReportedCost.Valid {
		return
	}
	content := x.Kept.Content(r)
	request := s.Request
	if request == nil {
		request, _ = plugins.ParseObject(content.Request.Data)
	}
	tells := used.Input.Valid // which is enough if the request is omitted
	if s.Request != nil || !r.RequestOmitted {
		tells = bound.Countable(r.Dialect, request, used.Input)
	}
	_, shown := bound.Written(r.Dialect, content.Response)
	shown = s.Written != nil || shown && !r.ResponseTruncated
	call := x.Bill.Call()
	if call == nil {
		call = &bound.Call{Request: bound.JSON(r.Dialect, request)}
		call.Model, _ = x.site.App.Catalog().Lookup(r.Provider, r.Model)
	}
	if rule != money.ByLength || !tells || !shown || call.Model == nil || x.spent != nil {
		x.uncounted = true
		return
	}
	used.Input = used.Input.Or(plugins.Known(bound.Likely.Text(int64(len(request.Data)))))
	used.Output = plugins.Known(e.Written(call, x.length(s)))
	priced := *r
	priced.Usage, priced.ServiceTier = used, cmp.Or(r.ServiceTier, request.Get("service_tier").Str)
	x.price(&priced)
	x.counted = priced.Cost.N
}

// hosted reports whether the answer may have called tools that the provider runs and bills: the
// request has some, and what is kept of the answer does not show that none was called.
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
