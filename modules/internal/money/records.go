package money

import (
	"context"

	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/journal"
)

// recordPage is how many records a query reads for a budget.
const recordPage = 1000

// scan is a method of a journal that reads all records of a query, a page at a time.
type scan = func(*journal.Journal, context.Context, *storage.RequestQuery, func([]*storage.Record) error) error

// eachRecord calls f for the records in [from, to) that a budget counts, the oldest first. As when a call
// is admitted, a key that somebody created as their own counts as its creator (see [Creators]).
func (m *Budgets) eachRecord(ctx context.Context, b *Budget, from, to storage.Timestamp, scan scan, f func(*storage.Record) error) error {
	store, err := m.store(b.org)
	if err != nil {
		return err
	}
	j, err := store.Journal()
	if err == nil {
		err = j.Flush(ctx)
	}
	if err != nil {
		return err
	}
	creators, err := m.Creators(b.org)
	if err != nil {
		return err
	}
	createdAt := storage.LookupField(storage.RequestResponse, "request_created_at")
	filter := dropConditions(b.filter, "key_id") // which may name the key or its creator
	filter = storage.And(filter, &storage.Leaf{Field: createdAt, Op: storage.GTE, Time: from})
	filter = storage.And(filter, &storage.Leaf{Field: createdAt, Op: storage.LT, Time: to})
	query := &storage.RequestQuery{Org: b.org, Filter: filter, Sort: []storage.Sort{{Key: storage.SortCreatedAt}}, Limit: recordPage}
	return scan(j, ctx, query, func(records []*storage.Record) error {
		for _, r := range records {
			if r.Arm == routing.ShadowArm { // no budget counts a shadow call
				continue
			}
			byCreator, err := creators.AsCaller(ctx, r)
			if err != nil {
				return err
			}
			if r = countedRecord(b.program, byCreator, r); r == nil {
				continue
			}
			if err := f(r); err != nil {
				return err
			}
		}
		return nil
	})
}
