package llmotlp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"

	"github.com/weirhq/weir/internal/metric"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/journal"
)

// One call of a model is one record, though several libraries report it: a framework, the
// instrumentation of an SDK, the SDK itself. Two spans are of one call if one is the parent of
// the other, or if the provider gave both the same id, within ten minutes, or if they are twins.
// The inner span counts, and the other fills its gaps. This holds in whatever order and batches the
// spans come, because a record is found by its span keys:
//
//	span <id>      a span that reports the call
//	child <id>     the parent of such a span
//	empty <id>     the same, while nothing is known but that there was a call
//	response <id>  the provider's id of the answer
//	twin <call>    a process, a model, the tokens, whether the call failed, and a stage of time
//	by <library>   the same, and the library that reports it
//
// Each is hashed with the organisation, and the first three with the trace.

// sameAnswer is how far apart two spans with one id of a response can be, in milliseconds.
const sameAnswer = storage.Timestamp(10 * 60 * 1000)

// report is what is known of one call, from one span or several, from this batch or an earlier.
type report struct {
	*storage.Record
	content *storage.Kept // nil if the content stays as it is stored
	stored  bool          // the record was there before this batch
	changed bool          // another span was merged into it
}

// spanKey is a key by which the record of a call is found.
func spanKey(kind, org string, ids ...[]byte) string {
	sum := sha256.New()
	sum.Write([]byte(kind + "\x00" + org))
	for _, id := range ids {
		sum.Write([]byte{0})
		sum.Write(id)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// keys are the span keys of a call.
type keys struct {
	span, parent, child, siblings, empty, response string
	twin, library                                  [3]string // for the stage before that in which the call began, for this, and for the next
}

func (c *call) keys(r *report) (k keys) {
	org, trace, span := r.Org, c.span.TraceId, c.span.SpanId
	k.span, k.child = spanKey("span", org, trace, span), spanKey("child", org, trace, span)
	if len(c.parent) > 0 {
		k.parent, k.siblings, k.empty = spanKey("span", org, trace, c.parent), spanKey("child", org, trace, c.parent), spanKey("empty", org, trace, c.parent)
	}
	if r.ResponseID != "" {
		k.response = spanKey("response", org, []byte(r.ResponseID))
	}
	if r.Usage.Input.N > 0 || failed(r.Record) {
		equal := fmt.Append(nil, c.process, r.RequestModel, r.Usage.Input, r.Usage.Output, failed(r.Record))
		for i := range k.twin {
			stage := fmt.Append(nil, r.begun()/stageTime+storage.Timestamp(i-1))
			k.twin[i], k.library[i] = spanKey("twin", org, equal, stage), spanKey("by", org, equal, stage, []byte(c.scope))
		}
	}
	return k
}

// stored are the keys by which the record is found from now on.
func (k *keys) stored(empty bool) []string {
	all := []string{k.span, k.siblings, k.response, k.twin[1], k.library[1]}
	if empty {
		all = append(all, k.empty)
	}
	return slices.DeleteFunc(all, func(key string) bool { return key == "" })
}

// wanted are the keys by which records of the same call are looked for.
func (k *keys) wanted(empty bool) []string {
	all := slices.Concat([]string{k.span, k.parent, k.child, k.response}, k.twin[:], k.library[:], []string{k.empty})
	if empty {
		all[len(all)-1] = k.siblings
	}
	return slices.DeleteFunc(all, func(key string) bool { return key == "" })
}

// empty reports whether nothing is known of a call but that somebody says that there was one.
func (r *report) empty() bool {
	return !r.Usage.Input.Valid && !r.Usage.Output.Valid && r.ResponseID == "" && r.ErrorType == "" &&
		r.ResponseBytes == 0 && r.Finish == "" && !failed(r.Record) && !r.TimeToFirstToken.Valid
}

func failed(r *storage.Record) bool { return r.EndState == storage.Failed || r.Status.N >= 400 }

// begun is when the span began that counts. The record began with the span that came first.
func (r *report) begun() storage.Timestamp {
	if r.Latency.Valid && r.RespondedAt > 0 {
		return r.RespondedAt - storage.Timestamp(r.Latency.N)
	}
	return r.CreatedAt
}

// like reports whether two reports can be of one call: of one kind of call, and with one outcome.
// A call that failed within a call that did not was tried again.
func (r *report) like(other *report) bool {
	for _, d := range []plugins.Dialect{plugins.Embeddings, plugins.Unknown} {
		if (r.Dialect == d) != (other.Dialect == d) {
			return false
		}
	}
	return failed(r.Record) == failed(other.Record) || r.empty() || other.empty()
}

// within reports whether other is inside of r: it began later, or ended earlier. A span without a
// duration was written when all was over, and is inside of nothing.
func (r *report) within(other *report) bool {
	switch {
	case r.empty() != other.empty():
		return other.empty()
	case r.Latency.N == 0 || other.Latency.N == 0:
		return r.Latency.N > 0
	case r.begun() != other.begun():
		return r.begun() > other.begun()
	case r.Latency.N != other.Latency.N:
		return r.Latency.N < other.Latency.N
	}
	return r.SpanID > other.SpanID
}

// merge fills the gaps of the inner of two reports from the other. The result is r, with its id
// and its beginning.
func (rs *reports) merge(r, other *report, innerIsOther bool) {
	mine, theirs := rs.content(r), rs.content(other)
	inner, outer := *r.Record, *other.Record
	if innerIsOther {
		inner, outer, mine, theirs = outer, inner, theirs, mine
	}
	merged := inner
	fillGaps(&merged, &outer)
	if inner.Provider == llmapp.NoProvider {
		merged.Provider = outer.Provider
	}
	merged.Usage = mergeUsage(inner.Usage, outer.Usage)
	if merged.Status, merged.EndState = inner.Status, inner.EndState; !inner.Status.Valid && failed(&outer) {
		merged.Status, merged.EndState = outer.Status, outer.EndState
	}
	if inner.Latency.N == 0 && outer.Latency.N > 0 {
		merged.Latency, merged.RespondedAt, merged.UpdatedAt = outer.Latency, outer.RespondedAt, outer.UpdatedAt
	}
	merged.Properties = storage.Merge(outer.Properties, inner.Properties)
	merged.SpanKeys = append(slices.Clone(r.SpanKeys), other.SpanKeys...)
	merged.ID, merged.CreatedAt, merged.Number, merged.Revision, merged.Content = r.ID, r.CreatedAt, r.Number, r.Revision, r.Content
	*r.Record = merged
	content := storage.Content{Request: mine.Request, Response: mine.Response, Media: mine.Media || theirs.Media, Inputs: storage.Merge(theirs.Inputs, mine.Inputs)}
	if content.Request.Data == nil {
		content.Request = theirs.Request
	}
	if content.Response.Data == nil {
		content.Response = theirs.Response
	}
	r.content, r.changed = storage.Keep(r.Record, content, maxBody), true
}

// content is what is kept of a report. If the store cannot tell, it sets rs.failure.
func (rs *reports) content(r *report) *storage.Content {
	if r.content != nil {
		return r.content.Content(r.Record)
	}
	c, err := rs.journal.Contents().Content(rs.ctx, r.Record)
	rs.failure = cmp.Or(rs.failure, err)
	if c == nil {
		return new(storage.Content)
	}
	return c
}

// fillGaps gives a record the values that it lacks.
func fillGaps(r, from *storage.Record) {
	to, other := reflect.ValueOf(r).Elem(), reflect.ValueOf(from).Elem()
	for i := range to.NumField() {
		if to.Field(i).CanSet() && to.Field(i).IsZero() {
			to.Field(i).Set(other.Field(i))
		}
	}
}

// mergeUsage returns the usage of the inner span, or of the outer if the inner has none. Two
// that agree complete each other.
func mergeUsage(inner, outer plugins.Usage) plugins.Usage {
	switch {
	case !inner.Input.Valid && !inner.Output.Valid:
		outer.ReportedCost = inner.ReportedCost.Or(outer.ReportedCost)
		return outer
	case inner.Input == outer.Input && inner.Output == outer.Output:
		outer.Merge(inner)
		return outer
	}
	inner.ReportedCost = inner.ReportedCost.Or(outer.ReportedCost)
	return inner
}

// reports are the calls that the spans of a batch are about, and those of earlier batches to
// which they belong.
type reports struct {
	ctx     context.Context
	journal *journal.Journal
	byKey   map[string][]storage.RecordKey
	loaded  map[storage.RecordKey]*report
	order   []*report // that are new or changed
	scores  []*storage.Annotation
	failure error // why the content of a record is not known, nil if all is
}

// load returns a report, nil if its record is gone.
func (rs *reports) load(key storage.RecordKey) *report {
	r, ok := rs.loaded[key]
	if !ok {
		if record, err := rs.journal.Request(rs.ctx, key); err == nil {
			r = &report{Record: record, stored: true}
		}
		rs.loaded[key] = r
	}
	return r
}

// add enters a report of this batch, or what it has learned, so that later spans find it.
func (rs *reports) add(r *report, keys []string) {
	first := !slices.Contains(rs.order, r)
	if first {
		rs.order = append(rs.order, r)
	}
	rs.loaded[r.Key()] = r
	for _, k := range keys {
		if first && !r.stored || !slices.Contains(rs.byKey[k], r.Key()) { // thousands of equal calls have one key
			rs.byKey[k] = append(rs.byKey[k], r.Key())
		}
		if !slices.Contains(r.SpanKeys, k) {
			r.SpanKeys = append(r.SpanKeys, k)
		}
	}
}

// maxRelatives bounds the records that are looked at for one span.
const maxRelatives = 8

// find returns the reports with a key that can be of the call.
func (rs *reports) find(key string, of *report) (found []*report) {
	for _, k := range rs.byKey[key] {
		if len(found) == maxRelatives {
			break
		}
		if r := rs.load(k); key != "" && r != nil && r.like(of) && !slices.Contains(found, r) {
			found = append(found, r)
		}
	}
	return found
}

// end is when the span ended that counts.
func (r *report) end() storage.Timestamp { return max(r.RespondedAt, r.begun()) }

// place returns the report to which a span belongs, and whether the span is the inner one. It
// returns a reason if the span adds nothing to what is known, and neither if the call is new.
func (rs *reports) place(c *call, of *report, k *keys) (to *report, inner bool, reason *metric.Label) {
	children := rs.find(k.child, of)
	if len(children) > 1 {
		return nil, false, &aggregate
	}
	if len(children) == 1 {
		return children[0], children[0].empty() && !of.empty(), nil
	}
	for _, r := range rs.find(k.parent, of) {
		if r.SpanID == hex.EncodeToString(c.parent) { // else another child has its place
			return r, !of.empty(), nil
		}
	}
	for _, r := range rs.find(k.response, of) {
		if r.begun() <= of.RespondedAt+sameAnswer && of.begun() <= r.end()+sameAnswer {
			return r, of.within(r), nil
		}
	}
	if r := rs.twin(of, k); r != nil {
		return r, of.within(r), nil
	}
	if of.empty() {
		for _, r := range rs.find(k.siblings, of) {
			if !r.empty() {
				return nil, false, &sameCall
			}
		}
		return nil, false, nil
	}
	for _, r := range rs.find(k.empty, of) {
		if r.empty() {
			return r, true, nil
		}
	}
	return nil, false, nil
}
