package storagetest

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// A backend that keeps content returns it, until it is erased or pruned, even if the journal does not have
// it, as on another node.
func testKeptContent(t *testing.T, open opener) {
	b := open.new(t)
	keeper, ok := b.(storage.ContentKeeper)
	if !ok {
		t.Skip("the journal keeps the content")
	}
	records, contents := Records(random(18), 100)
	s := start(t, open, b, contents)
	s.write(Batch(records, storage.Position{Segment: 1}))
	s.contents = reader(func(context.Context, *storage.Record) (*storage.Content, error) {
		return nil, errors.New("the content of another node was asked for")
	})
	s.reopen(storage.Position{Segment: 1})
	check := func(from storage.Timestamp) {
		t.Helper()
		parts, expected := keeper.Reader(storage.WholeContent), keeper.Reader(storage.WholeContent)
		defer parts.Close()
		defer expected.Close()
		if p, ok := expected.(storage.Prefetcher); ok {
			p.Prefetch(slices.Clone(records))
		}
		for _, r := range records {
			if at := r.CreatedAt + storage.Timestamp(s.PruneGranularity.Milliseconds()); r.CreatedAt < from && at >= from {
				continue
			}
			var want *storage.Content
			if r.CreatedAt >= from {
				want = contents.Of(r)
			}
			for name, read := range map[string]func(context.Context, *storage.Record) (*storage.Content, error){
				"Content": keeper.Content, "Reader": parts.Content, "Prefetch": expected.Content,
			} {
				if got, err := read(t.Context(), r); err != nil || !sameContent(got, want) {
					t.Fatalf("%s of %s is %+v, %v, want %+v", name, r.ID, got, err, want)
				}
			}
		}
	}
	check(0)
	if eraser, ok := b.(storage.RecordEraser); ok {
		var ids []uuid.UUID
		for i, r := range records {
			if i%10 == 0 && r.Org == records[0].Org && r.Content != (storage.ContentRef{}) {
				ids, records[i] = append(ids, r.ID), r.Erased(storage.EraseContent)
			}
		}
		if err := eraser.EraseRecords(t.Context(), records[0].Org, ids, storage.EraseContent); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			got, err := b.Request(t.Context(), storage.RecordKey{Org: records[0].Org, ID: id})
			if err != nil {
				t.Fatal(err)
			}
			if c, err := keeper.Content(t.Context(), got); c != nil || err != nil {
				t.Fatalf("the erased content is %+v, %v", c, err)
			}
		}
		s.holds(records)
	}
	check(0)
	before := epoch + 10*24*3600*1000
	for more := true; more; {
		var err error
		if more, err = keeper.PruneContent(t.Context(), before); err != nil {
			t.Fatal(err)
		}
	}
	check(before)
	s.holds(records)
}

func sameContent(a, b *storage.Content) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	for _, c := range []*storage.Content{&x, &y} {
		if len(c.Inputs) == 0 {
			c.Inputs = nil
		}
		for _, body := range []*storage.Body{&c.Request, &c.Response} {
			if len(body.Data) == 0 {
				body.Data = nil
			}
		}
	}
	return reflect.DeepEqual(x, y)
}
