package llmcommand

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/question"
	"github.com/weirhq/weir/storage"
)

// pageSize is small, because records may come with their bodies. Without bodies, pages have
// metricsPageSize.
const (
	pageSize        = 100
	metricsPageSize = 1000
)

// order is a way to go through records in time.
type order struct {
	// sort is the API's key for this order.
	sort storage.SortKey
	// since chooses the records from a time on.
	since func(storage.Timestamp) storage.Filter
	// field is where a record has its time, else it is request_created_at.
	field string
}

// byStart goes by the start of requests.
var byStart = order{
	sort:  storage.SortCreatedAt,
	since: func(t storage.Timestamp) storage.Filter { return bound("request_created_at", t) },
	field: "request_created_at",
}

// longestCall bounds how far before its end a request may have begun for byEnd
// to find it: stores find requests by their start.
const longestCall = storage.Timestamp(time.Hour / time.Millisecond)

// byEnd goes by the end of answers. Requests without an answer count by their start.
var byEnd = order{
	sort: storage.SortLastActive,
	since: func(t storage.Timestamp) storage.Filter {
		return question.And(bound("request_created_at", t-longestCall), &storage.Branch{
			Or:    true,
			Left:  bound("response_created_at", t),
			Right: bound("request_created_at", t),
		})
	},
	field: "response_created_at",
}

func bound(name string, t storage.Timestamp) storage.Filter {
	return &storage.Leaf{Field: question.Field(name), Op: storage.GTE, Time: max(t, 0)}
}

func (o *order) time(record gjson.Result) (storage.Timestamp, error) {
	text := record.Get(o.field)
	if text.Type == gjson.Null {
		text = record.Get("request_created_at")
	}
	t, err := storage.ParseTimestamp(text.String())
	if err != nil {
		return 0, fmt.Errorf("the record %s has no time: %w", record.Get("request_id"), err)
	}
	return t, nil
}

// cursor reads the records that a filter matches, each once, while others come
// in: it asks from the time of the last one on, and knows which it has seen
// there. Offsets alone would skip and repeat records.
type cursor struct {
	client *client
	filter storage.Filter
	order  order
	inputs bool // with the inputs of prompts
	// metrics is true for records without their bodies.
	metrics bool
	// columns are the fields that are needed of records, beside their ids and times; nil for all.
	columns []string

	// overlap is how long before a record another may still turn up.
	overlap storage.Timestamp
	seen    map[string]storage.Timestamp
	// newest is the time of the last record, unless that is still to come by the
	// server's clock: who reports spans may have another.
	newest storage.Timestamp
}

func newCursor(c *client, f storage.Filter, o order, overlap storage.Timestamp) *cursor {
	return &cursor{client: c, filter: f, order: o, overlap: overlap, seen: make(map[string]storage.Timestamp)}
}

// read calls emit with the records since a time, oldest first, without records
// seen before. A page that breaks off or takes too long is asked for again from
// where it ended, with fewer records.
func (c *cursor) read(ctx context.Context, since storage.Timestamp, emit func(gjson.Result) error) error {
	if c.columns != nil {
		err := c.readColumns(ctx, since, emit)
		if e, ok := errors.AsType[*statusError](err); !ok || e.status != http.StatusBadRequest || !strings.Contains(e.message, "columns: ") || len(c.seen) > 0 {
			return err
		}
		c.metrics = true // the server is older, and knows no columns of lines
	}
	limit := pageSize
	if c.metrics {
		limit = metricsPageSize
	}
	for offset := 0; ; {
		last, n, err := c.page(ctx, since, offset, limit, emit)
		switch {
		case err != nil && (n == 0 && limit == 1 || !fewerMayPass(err)):
			return err
		case err != nil:
			limit = max(1, limit/2)
		case n < limit:
			return nil
		}
		// A page that lies within one millisecond gets us on by its length alone.
		if last > since {
			since, offset = last, 0
			c.forget(min(since, c.newest) - c.overlap)
		} else {
			offset += n
		}
	}
}

// readColumns is read of some fields, by start. An answer that breaks off is asked for again from where it
// ended.
func (c *cursor) readColumns(ctx context.Context, since storage.Timestamp, emit func(gjson.Result) error) error {
	q := &exportQuery{Columns: slices.Compact(slices.Sorted(slices.Values(append([]string{"request_id", "request_created_at"}, c.columns...))))}
	for {
		q.Filter = storage.AppendJSON(nil, question.And(c.filter, c.order.since(since)))
		begun, broke := since, false
		for record, err := range c.client.export(ctx, q) {
			at := since
			if err == nil {
				at, err = c.take(record, emit)
			}
			switch {
			case err == nil && at > since:
				since = at
				c.forget(since)
			case errors.Is(err, errBroken) && since > begun:
				broke = true
			case err != nil:
				return err
			}
		}
		if !broke {
			return nil
		}
	}
}

// page reads one page, and returns the time of its last record and their number.
func (c *cursor) page(ctx context.Context, since storage.Timestamp, offset, limit int, emit func(gjson.Result) error) (last storage.Timestamp, n int, err error) {
	q := &requestQuery{
		Filter:        storage.AppendJSON(nil, question.And(c.filter, c.order.since(since))),
		Sort:          []byte(`{"` + c.order.sort + `":"asc"}`),
		Offset:        offset,
		Limit:         limit,
		IncludeInputs: c.inputs,
	}
	if c.metrics {
		q.IncludeContent = new(false)
	}
	for record, err := range c.client.requests(ctx, q) {
		if err == nil {
			last, err = c.take(record, emit)
		}
		if err != nil {
			return last, n, err
		}
		n++
	}
	return last, n, nil
}

// take emits a record unless it was seen, and returns its time.
func (c *cursor) take(record gjson.Result, emit func(gjson.Result) error) (storage.Timestamp, error) {
	t, err := c.order.time(record)
	if err != nil {
		return 0, err
	}
	id := strings.Clone(record.Get("request_id").String()) // not with the rest of the record
	if _, ok := c.seen[id]; ok {
		return t, nil
	}
	if err := emit(record); err != nil {
		return 0, err
	}
	c.seen[id], c.newest = t, max(c.newest, min(t, storage.Millis(c.client.date)))
	return t, nil
}

func (c *cursor) forget(before storage.Timestamp) {
	for id, t := range c.seen {
		if t < before {
			delete(c.seen, id)
		}
	}
}

// fewerMayPass reports whether a page with fewer records may succeed.
func fewerMayPass(err error) bool {
	var e *statusError
	return errors.Is(err, errBroken) || errors.As(err, &e) && e.status == http.StatusGatewayTimeout
}

var (
	// errNoEnvelope is an answer that is not the query API's.
	errNoEnvelope = errors.New("the answer is no envelope with an array of data")
	// errBroken is an answer that broke off.
	errBroken = errors.New("the answer broke off")
)

// eachRecord reads an answer, {"data": [...], "error": null} or several of them, and
// calls record with the elements of data as they come, until it returns false.
func eachRecord(answer io.Reader, record func(gjson.Result) bool) error {
	d := json.NewDecoder(answer)
	for {
		more, err := eachInEnvelope(d, record)
		if err != nil || !more {
			return err
		}
		if !d.More() { // at its end, or broken off
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				return nil
			}
			return broken(err)
		}
	}
}

// eachInEnvelope reads one {"data": [...], "error": null}. more is false when record wants no more.
func eachInEnvelope(d *json.Decoder, record func(gjson.Result) bool) (more bool, err error) {
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return false, errNoEnvelope
	}
	found := false
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return false, broken(err)
		}
		var value json.RawMessage
		if name != "data" {
			if err := d.Decode(&value); err != nil {
				return false, broken(err)
			}
			continue
		}
		if t, err := d.Token(); err != nil || t != json.Delim('[') {
			return false, errNoEnvelope
		}
		found = true
		for d.More() {
			if err := d.Decode(&value); err != nil {
				return false, broken(err)
			}
			if !record(gjson.ParseBytes(value)) {
				return false, nil
			}
		}
		if _, err := d.Token(); err != nil {
			return false, broken(err)
		}
	}
	if _, err := d.Token(); err != nil {
		return false, broken(err)
	}
	if !found {
		return false, errNoEnvelope
	}
	return true, nil
}

func broken(err error) error { return fmt.Errorf("%w: %w", errBroken, err) }
