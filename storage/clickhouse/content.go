package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/weirhq/weir/storage"
)

// contentsOf reads the bodies of records. It skips a row that belongs to another version
// of the record.
func (r *reader) contentsOf(ctx context.Context, records []*storage.Record) (map[key]*storage.Content, error) {
	contents := make(map[key]*storage.Content)
	var keys []key
	refs := make(map[key]storage.ContentRef)
	for _, rec := range records {
		if rec.Content != (storage.ContentRef{}) {
			k := key{rec.CreatedAt, rec.ID}
			keys = append(keys, k)
			refs[k] = rec.Content
		}
	}
	if len(keys) == 0 {
		return contents, ctx.Err()
	}
	p := r.withOwnParams()
	const columns = "created_at, request_id, segment, ordinal, request_type, request, response_type, response, inputs, media"
	return contents, p.query(ctx, "SELECT "+columns+" FROM content WHERE "+all(ofOrg, p.keysCondition(keys))+
		" ORDER BY version DESC LIMIT 1 BY created_at, request_id", func(rows driver.Rows) error {
		var (
			k                = new(key)
			c                = new(storage.Content)
			at               = time.Time{}
			segment, ordinal int64
		)
		err := rows.Scan(&at, &k.id, &segment, &ordinal, &c.Request.Type, &c.Request.Data, &c.Response.Type, &c.Response.Data, &c.Inputs, &c.Media)
		k.createdAt = storage.Millis(at)
		if refs[*k] == (storage.ContentRef{Segment: uint64(segment), Ordinal: uint32(ordinal)}) {
			contents[*k] = c
		}
		return err
	})
}

// Content reads the bodies of a record.
func (b *Backend) Content(ctx context.Context, rec *storage.Record) (*storage.Content, error) {
	return (&contentReader{readerOf: b.reader}).Content(ctx, rec)
}

// Reader reads the bodies of one record after the other.
func (b *Backend) Reader(storage.ContentPart) storage.ContentReader {
	return &contentReader{readerOf: b.reader}
}

// contentReader asks for the bodies of several records at once, where it knows which
// come next.
type contentReader struct {
	readerOf func(org string) (*reader, error)
	next     []*storage.Record // not asked for yet
	asked    map[*storage.Record]*storage.Content
}

// What is asked for at once. The bytes are counted on the wire.
const (
	prefetchedRecords = 1000
	prefetchedBytes   = 8 << 20
)

// Prefetch implements storage.Prefetcher.
func (r *contentReader) Prefetch(records []*storage.Record) { r.next, r.asked = records, nil }

// Content implements storage.ContentReader.
func (r *contentReader) Content(ctx context.Context, rec *storage.Record) (*storage.Content, error) {
	if c, ok := r.asked[rec]; ok {
		return c, nil
	}
	i := slices.Index(r.next, rec)
	if i < 0 {
		contents, err := r.read(ctx, []*storage.Record{rec})
		return contents[rec], err
	}
	end, size := i, int64(0)
	for end < len(r.next) && end-i < prefetchedRecords && r.next[end].Org == rec.Org && (end == i || size < prefetchedBytes) {
		size += r.next[end].RequestBytes + r.next[end].ResponseBytes
		end++
	}
	asked, err := r.read(ctx, r.next[i:end])
	if err != nil {
		return nil, err
	}
	r.next, r.asked = r.next[end:], asked
	return asked[rec], nil
}

// read reads the bodies of records of one organisation, nil for a record without bodies.
func (r *contentReader) read(ctx context.Context, records []*storage.Record) (map[*storage.Record]*storage.Content, error) {
	reader, err := r.readerOf(records[0].Org)
	if err != nil {
		return nil, err
	}
	found, err := reader.contentsOf(ctx, records)
	if err != nil {
		return nil, fmt.Errorf("reading the content of %d records from ClickHouse, the first of them %s: %w", len(records), records[0].ID, explain(ctx, err))
	}
	contents := make(map[*storage.Record]*storage.Content, len(records))
	for _, rec := range records {
		contents[rec] = found[key{rec.CreatedAt, rec.ID}]
	}
	return contents, nil
}

// Close gives up nothing.
func (*contentReader) Close() {}
