package recording

import (
	"bytes"
	"context"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"
)

// Results records the calls of a batch while a client downloads their results: each
// call once, however often, from however many nodes. It reads them at any chunking, and
// holds one at a time.
type Results struct {
	x       *Exchange
	of      observe.Results
	like    storage.Record // of the caller of the batch
	maxBody int64

	result   []byte // under way
	index    int
	disabled bool // the answer has no results
	unsure   bool // the backend cannot tell what it has
	hasAll   bool // the answer has the results of all calls if it ends as it should
	batch         // what is known of the calls so far

	// Of Inline: the containers that are open, and whether a string is, and an escape.
	open            []byte
	quoted, escaped bool
}

// maxResult bounds one result, in bytes. A longer one is not recorded.
const maxResult = 32 << 20

// resultIDs is the namespace of the ids of these records (RFC 9562, section 5.5).
var resultIDs = uuid.MustParse("6f6b1f0a-7a51-4d0e-9c3c-2f2b8d1b6a57")

// batch is what the calls of a batch have used whose results have passed.
type batch struct {
	batchRecord        *storage.Record // the record of the batch, nil if it is not known
	results, succeeded int64
	used               bound.Used // the cost is unknown if that of a call is
	skipped            bool       // a result was not read
}

// Results begins a download, of which x is the exchange: it reads the plain bytes of
// the answer. The records have the user, the session and the properties of who made the
// batch, if that is known, and else of who downloads it. What must not be kept of either is
// kept neither of the calls nor of the download: call Results before anything is kept.
func (x *Exchange) Results(of observe.Results, maxBody int64) *Results {
	rs := &Results{x: x, of: of, maxBody: maxBody, like: x.Record}
	rs.used = bound.Free()
	rs.like.CreatedAt = dayOf(x.Record.CreatedAt)
	if of.Batch != "" {
		if batch, err := x.recorder.Response(x.ctx, x.Record.Org, of.Batch); err == nil && batch.Dialect == plugins.Batches {
			rs.like, rs.batchRecord = *batch, batch
			rs.like.Batch = ""
			rs.like.MaskContent(x.Record.ContentMask())
			x.Kept.Omit(&x.Record, batch.RequestOmitted, batch.ResponseOmitted)
		}
	}
	rs.like.RequestOmitted, rs.like.ResponseOmitted = x.Record.RequestOmitted, x.Record.ResponseOmitted
	return rs
}

// dayOf is the beginning of a day, in UTC. Nodes that download the same results at once
// must agree on the time of their records, which ClickHouse knows by it.
func dayOf(t storage.Timestamp) storage.Timestamp {
	return storage.Millis(t.Time().UTC().Truncate(24 * time.Hour))
}

// Write implements capture.Reader.
func (rs *Results) Write(p []byte) {
	if rs.of.Inline {
		rs.elements(p)
		return
	}
	for len(p) > 0 && !rs.disabled {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			rs.add(p)
			return
		}
		rs.add(p[:end])
		rs.take()
		p = p[end+1:]
	}
}

// Close says that the body ended. If it has the results of all calls, what is set aside for the
// batch ends, because what its calls have used is known, and nobody needs to ask for the results
// again. A client may ask the provider for a part of them, so that the results are counted. If it is
// not known how many calls there are, only Weir's own download is known to have them all. OpenAI has
// a file for the calls that failed, which cost nothing, beside the file for those that succeeded.
func (rs *Results) Close(complete bool) {
	if !rs.of.Inline {
		rs.take()
	}
	if !complete || rs.batchRecord == nil || rs.skipped || rs.disabled {
		return
	}
	ofErrors := rs.of.File != rs.of.Batch && rs.succeeded > 0 // has the rest
	calls := bound.ParseBatch(rs.batchRecord.Batch).Calls()   // 0 if it is not known
	if calls > 0 && rs.results == calls || calls == 0 && rs.hasAll && rs.results > 0 || ofErrors {
		earlier := rs.x.Earlier()
		earlier.endBatch(rs.batchRecord, rs.used)
		earlier.markRecorded(rs.batchRecord)
	}
}

// elements finds the elements of response.inlinedResponses.inlinedResponses, or of any
// array that is as deep.
func (rs *Results) elements(p []byte) {
	const arrays = "{{{["
	for i, c := range p {
		if len(rs.open) > len(arrays) {
			rs.add(p[i : i+1])
		}
		switch {
		case rs.escaped:
			rs.escaped = false
		case rs.quoted:
			rs.escaped, rs.quoted = c == '\\', c != '"'
		case c == '"':
			rs.quoted = true
		case c == '{' || c == '[':
			switch string(rs.open) {
			case arrays[:len(arrays)-1]:
				rs.index = 0
			case arrays:
				rs.result = append(rs.result[:0], c)
			}
			rs.open = append(rs.open, c)
		case c == '}' || c == ']':
			rs.open = rs.open[:max(len(rs.open)-1, 0)]
			if string(rs.open) == arrays {
				rs.take()
				rs.disabled = false
			}
		}
	}
}

func (rs *Results) add(p []byte) {
	if len(rs.result) <= maxResult {
		rs.result = append(rs.result, p...)
	}
}

// take records the result that is complete. If the first line is no result, nothing that
// follows is read as one.
func (rs *Results) take() {
	result := rs.result
	rs.result = rs.result[:0]
	if len(bytes.TrimSpace(result)) == 0 || rs.disabled {
		return
	}
	index := rs.index
	rs.index++
	if rs.results++; len(result) > maxResult {
		rs.skipped = true
		rs.x.site.Logger.Error("a call of a batch has no record: its result is too long", zap.Stringer("id", rs.x.Record.ID),
			zap.Int("index", index), zap.Int("max_bytes", maxResult))
		return
	}
	parsed, ok := observe.ParseResult(rs.x.Record.Provider, result, index)
	if !ok {
		rs.disabled, rs.skipped = index == 0, true
		return
	}
	rs.record(&parsed)
}

// count adds what a call has used. What its caller said does not choose its price.
func (rs *Results) count(r storage.Record, result *observe.Result) {
	r.ModelOverride = ""
	learn(&r, &result.Info)
	models := append([]string{r.ResponseModel}, bound.ParseBatch(rs.batchRecord.Batch).Models()...)
	price(&r, result.Info.Beside, rs.x.site.App.Catalog(), r.CreatedAt.Time(), models[:min(len(models), 2)]...)
	rs.used.Cost = rs.used.Cost.Both(r.Cost)
	if !r.Usage.ReportedCost.Valid { // which is 0 for a call that failed
		rs.succeeded++
		rs.used.Usage.Add(r.Usage)
	}
}

func (rs *Results) record(result *observe.Result) {
	x, r := rs.x, rs.like
	r.Provider, r.Account, r.Path, r.TargetURL = x.Record.Provider, x.Record.Account, x.Record.Path, x.Record.TargetURL
	r.ID = uuid.NewSHA1(resultIDs, []byte(r.Org+"\x00"+r.Provider+"\x00"+rs.of.File+"\x00"+result.Key))
	if result.Created > 0 {
		r.CreatedAt = storage.Millis(time.Unix(result.Created, 0))
	}
	r.Status, r.Dialect = result.Status, result.Info.Dialect
	if rs.batchRecord != nil {
		rs.count(r, result)
	}
	ctx := context.WithoutCancel(x.ctx) // a client that leaves has made the call, too
	if !rs.unsure {
		known, err := x.recorder.Known(ctx, r.Key())
		if known {
			return
		}
		rs.unsure = err != nil // then a record that is known is replaced by the same
	}
	r.RespondedAt, r.UpdatedAt = r.CreatedAt, storage.Millis(time.Now())
	r.Latency, r.TimeToFirstToken, r.Stream = plugins.Duration{}, plugins.Duration{}, false
	r.EndState, r.Number = storage.Complete, 0
	r.RequestModel, r.RequestTruncated, r.RequestBytes = "", false, 0
	r.ResponseBytes = int64(len(result.Body))
	r.ResponseTruncated = false
	k := storage.Keep(&r, storage.Content{Response: storage.Body{Type: "application/json", Data: result.Body}}, rs.maxBody)
	if err := x.site.Import(x.recorder, &r, &result.Info, k); err != nil {
		x.site.Logger.Error("a record is lost", zap.Stringer("id", r.ID), zap.String("store", x.site.Store), zap.Error(err))
		return
	}
	x.site.export(&r, k)
}
