package clickhouse

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/sqlfilter"
)

// Requests returns one page of records.
func (b *Backend) Requests(ctx context.Context, q *storage.RequestQuery) (page []*storage.Record, err error) {
	err = b.reading(ctx, q.Org, "querying ClickHouse", func(r *reader) (err error) {
		page, err = r.requests(ctx, q)
		return err
	})
	return page, err
}

// reading gives do a reader of an organisation. doing begins its error.
func (b *Backend) reading(ctx context.Context, org, doing string, do func(*reader) error) error {
	r, err := b.reader(org)
	if err != nil {
		return err
	}
	if err := do(r); err != nil {
		return fmt.Errorf("%s: %w", doing, explain(ctx, err))
	}
	return nil
}

func (b *Backend) reader(org string) (*reader, error) {
	conn, _, err := b.opened()
	if err != nil {
		return nil, err
	}
	return &reader{conn, b.trace, b.sortable, newParams(org)}, nil
}

func (r *reader) requests(ctx context.Context, q *storage.RequestQuery) ([]*storage.Record, error) {
	if q.Limit == 0 {
		return nil, ctx.Err()
	}
	where := r.where(q.Filter, r.chosen(q)...)
	desc, byTime := q.ByTime()
	if !byTime && where.exact && !q.SortsByContent() {
		if order, ok, err := r.order(ctx, q); ok || err != nil {
			if err != nil {
				return nil, err
			}
			return r.sorted(ctx, q, where, order)
		}
	}
	if q.SortsByProperty() {
		if err := r.checkSort(ctx, where.sql); err != nil {
			return nil, err
		}
	}
	return r.match(ctx, q, where, byTime, desc)
}

// checkSort counts the requests that would be sorted here no further than to the bound.
func (r *reader) checkSort(ctx context.Context, condition string) error {
	var n uint64
	err := r.query(ctx, fmt.Sprintf("SELECT count() FROM (SELECT 1 FROM records WHERE %s LIMIT %d)", condition, r.sortable+1), func(rows driver.Rows) error {
		return rows.Scan(&n)
	})
	if err == nil && n > uint64(r.sortable) {
		err = storage.ErrSortWork(r.sortable)
	}
	return err
}

// key identifies a record within an organisation, in the order of the table.
type key struct {
	createdAt storage.Timestamp
	id        uuid.UUID
}

// sorted answers what the server decides on and sorts.
func (r *reader) sorted(ctx context.Context, q *storage.RequestQuery, where *condition, order string) ([]*storage.Record, error) {
	condition := where.sql
	if q.After != nil {
		condition = all(condition, sqlfilter.After(r.params, q, idOrder).SQL)
	}
	var keys []key
	err := r.query(ctx, "SELECT created_at, request_id FROM records FINAL WHERE "+condition+
		" ORDER BY "+order+" LIMIT "+r.integer(int64(q.Limit))+" OFFSET "+r.integer(int64(q.Offset)), keyTo(&keys))
	if err != nil {
		return nil, err
	}
	return r.load(ctx, keys)
}

// keyTo appends the key of each row.
func keyTo(keys *[]key) func(driver.Rows) error {
	return func(rows driver.Rows) error {
		var at time.Time
		var id uuid.UUID
		err := rows.Scan(&at, &id)
		*keys = append(*keys, key{storage.Millis(at), id})
		return err
	}
}

// load reads the newest versions of records, with their annotations, in the order of
// their keys.
func (r *reader) load(ctx context.Context, keys []key) ([]*storage.Record, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	p := r.withOwnParams()
	condition := p.keysCondition(keys)
	found, err := r.readAnnotated(ctx, keys, func(ctx context.Context) ([]*storage.Record, error) {
		return p.versions(ctx, condition, " LIMIT 1 BY created_at, request_id")
	})
	if err != nil {
		return nil, err
	}
	byKey := make(map[key]*storage.Record, len(keys))
	for _, rec := range found {
		byKey[key{rec.CreatedAt, rec.ID}] = rec
	}
	records := make([]*storage.Record, 0, len(keys))
	for _, k := range keys {
		if rec, ok := byKey[k]; ok {
			records = append(records, rec)
		}
	}
	return records, nil
}

// versions reads the versions of records, the newest first, as far as limit goes. It
// takes few rows. For few rows, threads cost more than they gain, and so does the server's
// own choice of what to read before the other columns.
func (r *reader) versions(ctx context.Context, condition, limit string) (records []*storage.Record, err error) {
	s := newScanner()
	err = r.query(ctx, "SELECT "+columnNames+" FROM records PREWHERE "+all(ofOrg, condition)+
		" ORDER BY created_at DESC, version DESC"+limit+" SETTINGS max_threads = 1", func(rows driver.Rows) error {
		err := rows.Scan(s.to...)
		records = append(records, s.record())
		return err
	})
	return records, err
}

// keysCondition selects keys: by a range of the primary key, and within it.
func (p *params) keysCondition(keys []key) string {
	first, last := keys[0].createdAt, keys[0].createdAt
	for _, k := range keys {
		first, last = min(first, k.createdAt), max(last, k.createdAt)
	}
	return all("created_at BETWEEN "+p.time(first)+" AND "+p.time(last), p.idsCondition(keys))
}

// idsCondition selects the ids of keys, at any time.
func (p *params) idsCondition(keys []key) string {
	ids := make([]string, len(keys))
	for i, k := range keys {
		ids[i] = k.id.String()
	}
	return "request_id IN " + p.bind(ids, "Array(UUID)")
}

// walk calls each with chunks of the records after a key that match where, in the order of time.
// It first looks back as far as each of spans, and then at all records. where may match a version
// that was replaced: each gets the newest version, and must match it again.
func (r *reader) walk(ctx context.Context, where string, after *key, desc bool, spans []storage.Timestamp, chunk int, each func([]*storage.Record) (more bool, err error)) error {
	direction, beyond := "ASC", ">"
	if desc {
		direction, beyond = "DESC", "<"
	}
	newest := storage.Millis(time.Now())
	if after != nil {
		newest = after.createdAt
	}
	for {
		condition, bound := where, &reader{r.conn, r.trace, r.sortable, &params{slices.Clone(r.args)}}
		if len(spans) > 0 {
			condition = all(condition, "created_at >= "+bound.time(newest-spans[0]))
		}
		if after != nil {
			at := bound.time(after.createdAt)
			condition = all(condition, "created_at "+beyond+"= "+at,
				"(created_at "+beyond+" "+at+" OR UUIDToNum(request_id) "+beyond+" UUIDToNum("+bound.bind(after.id.String(), "UUID")+"))")
		}
		var keys []key
		read := func(order string) error {
			keys = nil
			return bound.query(ctx, fmt.Sprintf("SELECT created_at, request_id FROM records WHERE %s ORDER BY created_at %s%s LIMIT %d",
				condition, direction, order, chunk), keyTo(&keys))
		}
		// The server reads in the order of times, and sorts all for one of ids. So a
		// millisecond that the chunk may cut is left to the next one.
		if err := read(""); err != nil {
			return err
		}
		short, last := len(keys) < chunk, len(spans) == 0
		if !short {
			cut := keys[len(keys)-1].createdAt
			if keys[0].createdAt != cut {
				keys = slices.DeleteFunc(keys, func(k key) bool { return k.createdAt == cut })
			} else if err := read(", UUIDToNum(request_id) " + direction); err != nil {
				return err
			}
		}
		slices.SortFunc(keys, func(a, b key) int {
			if desc {
				a, b = b, a
			}
			return cmp.Or(cmp.Compare(a.createdAt, b.createdAt), bytes.Compare(a.id[:], b.id[:]))
		})
		if keys = slices.Compact(keys); len(keys) > 0 {
			records, err := r.load(ctx, keys)
			if err != nil {
				return err
			}
			if more, err := each(records); err != nil || !more {
				return err
			}
			after = &keys[len(keys)-1]
		}
		switch {
		case !short:
			chunk = min(2*chunk, maxChunk)
		case last:
			return nil
		default:
			spans = spans[1:]
		}
	}
}

// recentSpans are the times, in milliseconds, in which the newest records are looked for
// before all others. Older records have partitions of their own, which then need not be opened.
var recentSpans = []storage.Timestamp{24 * 3600 * 1000, 32 * 24 * 3600 * 1000}

// ofOneSession reports whether a filter chooses one session. An index finds its few records
// faster at once than in one span after the other.
func ofOneSession(f storage.Filter) bool {
	for part := range storage.Conjuncts(f) {
		if l, ok := part.(*storage.Leaf); ok && l.Field.Name == "session_id" && l.Op == storage.Equals {
			return true
		}
	}
	return false
}

// The number of records that a walk reads at a time.
const (
	firstChunk = 64
	maxChunk   = 4096
)

// match answers a query that the server alone cannot decide, or sort: records come by
// time, and the best records are kept.
func (r *reader) match(ctx context.Context, q *storage.RequestQuery, where *condition, byTime, desc bool) ([]*storage.Record, error) {
	var after *key
	if byTime && q.After != nil {
		ms, _ := q.After.Values[0].Any().(int64)
		after = &key{storage.Timestamp(ms), uuid.UUID([]byte(q.After.Tie[0]))}
	}
	cancel := storage.NewCancelCheck(ctx.Err)
	// The whole filter is matched: walk may have come upon a version that was replaced.
	m := r.matching(ctx, q.Filter, cancel)
	page := storage.NewPage[*storage.Record](q, cancel)
	// More than are wanted: walk leaves records of the last millisecond to another chunk.
	chunk := firstChunk + min(q.Offset, maxChunk) + min(q.Limit, maxChunk)
	if !byTime || chunk > maxChunk {
		chunk = maxChunk
	}
	spans := recentSpans
	if byTime && !desc || ofOneSession(q.Filter) {
		spans = nil
	}
	err := r.walk(ctx, where.sql, after, desc || !byTime, spans, chunk, func(records []*storage.Record) (bool, error) {
		m.contents.Prefetch(records)
		for _, rec := range records {
			if !q.Selects(rec) || !m.match(rec) {
				continue
			}
			var content *storage.Content
			if q.SortsByContent() {
				content = m.load(rec)
			}
			page.Add(rec, content, rec)
		}
		if m.failed != nil {
			return false, m.failed
		}
		return !byTime || !page.Full(), ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	return page.Items(), ctx.Err()
}

// Request returns one record, or storage.ErrNotFound.
func (b *Backend) Request(ctx context.Context, key storage.RecordKey) (rec *storage.Record, err error) {
	err = b.reading(ctx, key.Org, "reading record "+key.ID.String()+" from ClickHouse", func(r *reader) (err error) {
		rec, err = r.request(ctx, key.ID)
		return err
	})
	if err == nil && rec == nil {
		err = storage.ErrNotFound
	}
	return rec, err
}

// isPolled is the condition of the dialects in storage.Polled.
const isPolled = "dialect IN ('responses', 'batches', 'runs', 'interactions')"

// Response implements storage.ResponseFinder.
func (b *Backend) Response(ctx context.Context, org, responseID string) (*storage.Record, error) {
	var found []*storage.Record
	err := b.reading(ctx, org, "reading response "+responseID+" from ClickHouse", func(r *reader) (err error) {
		found, err = r.versions(ctx, all("response_id = "+r.text(responseID), isPolled), " LIMIT 1")
		if err != nil || len(found) == 0 {
			return err
		}
		annotations, err := r.withOwnParams().annotations(ctx, []key{{id: found[0].ID}})
		annotate(found, annotations)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, storage.ErrNotFound
	}
	return found[0], nil
}

// idMargin is how far from its record's time the time of an id is, where Weir made it.
const idMargin = time.Minute

// request looks about the time of the id first, if that tells one: a table of many
// days has few ids there.
func (r *reader) request(ctx context.Context, id uuid.UUID) (*storage.Record, error) {
	found := "request_id = " + r.bind(id.String(), "UUID")
	places := []string{found}
	if v := id.Version(); v == 7 || v == 8 { // those of reported calls begin with the time, too
		t, margin := storage.Timestamp(binary.BigEndian.Uint64(id[:8])>>16), storage.Timestamp(idMargin.Milliseconds())
		places = []string{all("created_at BETWEEN "+r.time(t-margin)+" AND "+r.time(t+margin), found), found}
	}
	records, err := r.readAnnotated(ctx, []key{{id: id}}, func(ctx context.Context) ([]*storage.Record, error) {
		for _, place := range places {
			// Of the few versions the first is taken here: for a LIMIT the server reads twice.
			if records, err := r.versions(ctx, place, ""); err != nil || len(records) > 0 {
				return records, err
			}
		}
		return nil, nil
	})
	if err != nil || len(records) == 0 {
		return nil, cmp.Or(err, ctx.Err())
	}
	return records[0], nil
}
