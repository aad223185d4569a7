package llmotlp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/metric"
	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/control"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/journal"
)

// batch is one request on its way into the journal.
type batch struct {
	*Handler
	ctx     context.Context
	key     *access.Key
	journal *journal.Journal

	controls control.Controls // of all spans: what is omitted, and whether nothing is recorded and counted but for the answer
	keepOld  bool             // records that retention deletes soon are made, too
	replace  bool             // records are made again of spans that came before
	results  map[metric.Label]int64
	reason   string   // why the first rejected span was rejected
	warnings []string // each once
}

// readHeader reads what the headers of the batch say of all its spans. Other control headers are
// about one call, and travel in its span.
func (b *batch) readHeader(header http.Header) {
	headers := b.site.App.Headers()
	controls := make(http.Header)
	switches := map[string]*bool{"Keep-Old": &b.keepOld, "Replace": &b.replace}
	for name, values := range header {
		switch control, ok := headers.Cut(name); {
		case !ok:
		case strings.HasPrefix(control, "Omit"), control == "Dry-Run":
			controls[name] = values
		case switches[control] != nil:
			if *switches[control] = slices.Equal(values, []string{"true"}); !*switches[control] {
				b.warn([]string{name + ": off, the only value that switches it on is true"})
			}
		default:
			b.warn([]string{name + ": ignored, send it as the span attribute " + association + name})
		}
	}
	b.controls = *control.Read(controls, headers, new(storage.Record))
	b.warn(b.controls.Warnings)
}

// spansHeader is the header of an answer that says what became of each span, so that the
// sender can account for all of them.
const spansHeader = "Service-Spans"

// count counts a span by what became of it.
func (b *batch) count(result metric.Label) {
	if !b.controls.DryRun {
		spans.With(result).Inc()
	}
	b.results[result]++
}

// ignore counts a span that is no call, by the reason and by the library that reports it.
func (b *batch) ignore(reason, reporter metric.Label) {
	b.count(ignored)
	if !b.controls.DryRun {
		ignoredSpans.With(reporter, reason).Inc()
	}
}

// reject counts a span that is not recorded. The answer has the first reason.
func (b *batch) reject(result metric.Label, reason string) {
	b.count(result)
	b.reason = cmp.Or(b.reason, reason)
}

// maxWarnings bounds the lines of Service-Warnings for a batch.
const maxWarnings = 20

// take records the calls among the spans. After an error the client should send the batch again:
// spans that were recorded are then known.
func (b *batch) take(resources []*tracepb.ResourceSpans) error {
	var calls []*call
	onTheWay := make(map[string][]byte) // the parents of spans that speak of no model
	for _, resource := range resources {
		common := make(attributes)
		common.add(resource.GetResource().GetAttributes())
		process := process(resource, common)
		for _, scope := range resource.GetScopeSpans() {
			reporter := library(scope.GetScope().GetName(), common.text("service.name"))
			for _, span := range scope.GetSpans() {
				c, reason := newCall(span, common, b.site.App.Catalog())
				if c != nil {
					c.scope, c.library, c.process = scope.GetScope().GetName(), reporter, process
					calls = append(calls, c)
					continue
				}
				if reason == unrelated && len(span.GetParentSpanId()) > 0 {
					onTheWay[string(span.TraceId)+string(span.SpanId)] = span.ParentSpanId
				}
				b.ignore(reason, reporter)
			}
		}
	}
	if len(calls) == 0 {
		return nil
	}
	for _, c := range calls {
		c.parent = c.span.GetParentSpanId()
		for range maxRelatives {
			above, ok := onTheWay[string(c.span.TraceId)+string(c.parent)]
			if !ok {
				break
			}
			c.parent = above
		}
	}
	// Those within come before those around them, as libraries send them.
	slices.SortStableFunc(calls, func(x, y *call) int {
		return cmp.Or(cmp.Compare(x.span.EndTimeUnixNano, y.span.EndTimeUnixNano), cmp.Compare(y.span.StartTimeUnixNano, x.span.StartTimeUnixNano))
	})
	return b.record(calls)
}

// turns are the organisations of which a batch is being recorded: two batches can have spans of
// one call. Each stripe has many organisations.
var turns [64]sync.Mutex

// lookAround is how far from a span the record of its call can begin.
const lookAround = storage.Timestamp(60 * 60 * 1000)

// openTimeout bounds how long the first batches after a start wait until the backend was tried to be opened.
const openTimeout = 5 * time.Second

// record records calls.
func (b *batch) record(calls []*call) error {
	opening, cancel := context.WithTimeout(b.ctx, openTimeout)
	defer cancel()
	_ = b.journal.Connected(opening) // else Spans says why

	org := b.key.Org()
	turn := &turns[crc32.ChecksumIEEE([]byte(b.site.Store+"\x00"+org))%uint32(len(turns))]
	turn.Lock()
	defer turn.Unlock()

	now := time.Now()
	all := make([]*report, 0, len(calls))
	storedKeys := make([]keys, 0, len(calls))
	var wanted []storage.SpanKey
	type minute struct {
		key string
		at  storage.Timestamp
	}
	known := make(map[minute]bool)
	accepted := calls[:0]
	for _, c := range calls {
		if err := check(c.span, now); err != nil {
			b.reject(rejected, err.Error())
			continue
		}
		r := &report{Record: &storage.Record{
			ID: recordID(org, c.span), Org: org,
			TraceID: hex.EncodeToString(c.span.TraceId), SpanID: hex.EncodeToString(c.span.SpanId),
		}}
		b.warn(c.caller(b.site.App.Headers(), &b.controls, r.Record))
		b.key.Stamp(r.Record)
		c.describe(r.Record, b.site.App.Catalog())
		c.answered(r.Record)
		r.content = c.content(r.Record)
		k := c.keys(r)
		accepted, all, storedKeys = append(accepted, c), append(all, r), append(storedKeys, k)
		for _, key := range k.wanted(r.empty()) {
			once := minute{key, r.CreatedAt / 60_000}
			if known[once] { // equal calls have equal keys
				continue
			}
			known[once] = true
			wanted = append(wanted, storage.SpanKey{Key: key, From: r.CreatedAt - lookAround, Until: max(r.CreatedAt, r.RespondedAt) + lookAround})
		}
	}
	// If the backend cannot tell what it has, the records are made again: a record of the same
	// span replaces the earlier one.
	found, err := b.journal.Spans(b.ctx, org, wanted)
	if err != nil {
		b.site.Logger.Warn("spans are recorded without a look at earlier ones", zap.String("store", b.site.Store), zap.Error(err))
	}
	rs := &reports{ctx: b.ctx, journal: b.journal, byKey: found, loaded: make(map[storage.RecordKey]*report)}
	for i, c := range accepted {
		if err := b.place(rs, c, all[i], &storedKeys[i], now); err != nil {
			return err
		}
	}
	if rs.failure != nil { // what is stored would be replaced by less
		b.site.Logger.Error("a batch of spans is sent back", zap.String("store", b.site.Store), zap.Error(rs.failure))
		return unavailable("the store cannot read what it has of these calls")
	}
	if b.controls.DryRun {
		return nil
	}
	for _, r := range rs.order {
		b.site.Stamp(r.Record, b.key)
		if err := b.write(r); err != nil {
			b.site.Logger.Error("a batch of spans is sent back", zap.String("store", b.site.Store), zap.Error(err))
			return unavailable("the journal takes nothing now")
		}
	}
	for _, s := range rs.scores {
		if err := b.journal.AppendAnnotation(s); err != nil {
			return unavailable("the journal takes nothing now")
		}
	}
	return nil
}

// place finds out to which call a span belongs.
func (b *batch) place(rs *reports, c *call, r *report, k *keys, now time.Time) error {
	if b.journal.Erased(r.Key()) > 0 {
		b.ignore(erased, c.library)
		return nil
	}
	result := recorded
	if again := rs.byKey[k.span]; len(again) > 0 {
		if !b.replace {
			b.count(duplicate)
			return nil
		}
		result, r.ID = replaced, again[0].ID
		r.Revision = uint32(now.Unix()) // above all of any node, without a look at them
	}
	begun := time.Unix(0, int64(c.span.StartTimeUnixNano))
	if retention := b.journal.Retention(); retention > 0 && now.Sub(begun) > retention && !b.keepOld {
		b.reject(expired, fmt.Sprintf("start_time_unix_nano: older than the %v for which the store keeps records", retention))
		return nil
	}
	if result == recorded {
		to, inner, reason := rs.place(c, r, k)
		switch {
		case reason != nil:
			b.ignore(*reason, c.library)
			return nil
		case to != nil:
			rs.merge(to, r, inner)
			r, result = to, ignored
			b.ignore(sameCall, c.library)
		}
	}
	rs.add(r, k.stored(r.empty()))
	scores, warnings := c.scores(r.Record)
	b.warn(warnings)
	if scores != nil {
		rs.scores = append(rs.scores, scores)
	}
	if result != ignored {
		b.count(result)
	}
	return nil
}

// write writes a record that is new or has changed.
func (b *batch) write(r *report) error {
	if r.stored {
		return b.site.Reimport(b.journal, r.Record, r.content)
	}
	return b.site.Import(b.journal, r.Record, &plugins.ResponseInfo{
		Model: r.ResponseModel, ResponseID: r.ResponseID, Finish: r.Finish, ErrorType: r.ErrorType, ErrorMessage: r.ErrorMessage, ServiceTier: r.ServiceTier, Usage: r.Usage,
	}, r.content)
}

func (b *batch) warn(warnings []string) {
	for _, w := range warnings {
		if len(b.warnings) < maxWarnings && !slices.Contains(b.warnings, w) {
			b.warnings = append(b.warnings, w)
		}
	}
}

func (b *batch) answer() *collector.ExportTraceServiceResponse {
	answer := new(collector.ExportTraceServiceResponse)
	if n := b.results[rejected] + b.results[expired]; n > 0 {
		answer.PartialSuccess = &collector.ExportTracePartialSuccess{RejectedSpans: n, ErrorMessage: b.reason}
	}
	return answer
}

// summary is the value of spansHeader.
func (b *batch) summary() string {
	var parts []string
	for _, result := range results {
		parts = append(parts, fmt.Sprintf("%v=%d", result, b.results[result]))
	}
	return strings.Join(parts, ", ")
}

// maxSkew is how far a client's clock may be ahead of ours.
const maxSkew = 24 * time.Hour

// earliest is the earliest time at which a span can begin, in Unix nanoseconds: 2000-01-01. An
// earlier time was given in another unit.
const earliest = 946_684_800_000_000_000

// check returns why a span cannot be recorded. A span without ids could not be recognized when
// it is sent again, and records need a time for their order.
func check(span *tracepb.Span, now time.Time) error {
	latest := uint64(now.Add(maxSkew).UnixNano())
	switch start, end := span.StartTimeUnixNano, span.EndTimeUnixNano; {
	case len(span.TraceId) != 16 || [16]byte(span.TraceId) == [16]byte{}:
		return errors.New("trace_id: 16 bytes are expected, not all zero")
	case len(span.SpanId) != 8 || [8]byte(span.SpanId) == [8]byte{}:
		return errors.New("span_id: 8 bytes are expected, not all zero")
	case start < earliest || start > latest:
		return errors.New("start_time_unix_nano: a time in nanoseconds since 1970 is expected, not before 2000 and not in the future")
	case end > latest:
		return errors.New("end_time_unix_nano: a time in nanoseconds since 1970 is expected, not in the future")
	}
	return nil
}

// recordID returns the id of a span's record, which is the same whenever the same organisation
// sends the span. It is a UUIDv8 that begins with the time as UUIDv7 does, so that ids sort by
// time.
func recordID(org string, span *tracepb.Span) uuid.UUID {
	sum := sha256.Sum256(slices.Concat([]byte(org), []byte{0}, span.TraceId, span.SpanId))
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:8], span.StartTimeUnixNano/1e6<<16)
	copy(id[6:], sum[:])
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id
}

// restoreIDs mends the ids of a request in JSON: OTLP writes them in hexadecimal, and protojson
// has read them as base64.
// https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
func restoreIDs(request *collector.ExportTraceServiceRequest) {
	restore := func(id []byte) []byte {
		restored, err := hex.DecodeString(base64.StdEncoding.EncodeToString(id))
		if err != nil {
			return id // an id that is not hexadecimal; its length is wrong, too
		}
		return restored
	}
	for _, resource := range request.ResourceSpans {
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				if span != nil {
					span.TraceId, span.SpanId, span.ParentSpanId = restore(span.TraceId), restore(span.SpanId), restore(span.ParentSpanId)
				}
			}
		}
	}
}

// spans lives as long as the process, so that it survives reloads.
var spans = metric.NewCounters("weir_otlp_spans_total", "Spans that came by OTLP, by what became of them.", "result")

// ignoredSpans lives as long, too.
var ignoredSpans = metric.NewCounters("weir_otlp_ignored_spans_total", "Spans that came by OTLP and made no record, by the library that reports them and by the reason.", "library", "reason")

// The reasons for which a span is ignored.
var (
	aggregate = metric.Constant("aggregate") // adds up what the calls within it used
	unrelated = metric.Constant("unrelated") // speaks of no model
	unknown   = metric.Constant("unknown")   // speaks of a model, but is not known to be a call
	sameCall  = metric.Constant("same_call") // reports a call that another span reports
	erased    = metric.Constant("erased")    // reports a call that was erased
)

// The results of a span.
var (
	recorded  = metric.Constant("recorded")
	ignored   = metric.Constant("ignored")   // is no call of a model
	duplicate = metric.Constant("duplicate") // came before
	replaced  = metric.Constant("replaced")  // came before; the record is this span's now
	expired   = metric.Constant("expired")   // is older than the store's retention
	rejected  = metric.Constant("rejected")

	results = []metric.Label{recorded, replaced, duplicate, expired, rejected, ignored}
)
