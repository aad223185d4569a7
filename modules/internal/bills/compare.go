package bills

import (
	"context"
	"time"

	"github.com/weirhq/weir/internal/reconcile"
	"github.com/weirhq/weir/modules/internal/question"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/journal"
)

// UnreadableError is the error of a bill that cannot be read. It has no key.
type UnreadableError struct {
	Bill string
	Err  error
}

func (u *UnreadableError) Error() string { return "bill " + u.Bill + ": " + u.Err.Error() }
func (u *UnreadableError) Unwrap() error { return u.Err }

// readTimeout bounds how long a provider takes to say what it billed.
const readTimeout = 10 * time.Minute

// Compare compares the bill with the records of an organisation. lost are the calls whose records were
// lost, nil if nobody can say which of them are the organisation's. Other comparisons of the same bill
// wait, because a provider bounds how often it says what it billed.
func (b *Bill) Compare(ctx context.Context, j *journal.Journal, org string, prices *catalog.Catalog, window reconcile.Window, lost []reconcile.Loss) (*reconcile.Report, error) {
	select {
	case b.running <- struct{}{}:
		defer func() { <-b.running }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	bill, err := b.read(ctx, window)
	if err != nil {
		return nil, &UnreadableError{b.Name, err}
	}
	options := reconcile.Options{Window: window, Keys: b.Keys, Models: b.Models, Losses: lost}
	records := reconcile.NewRecords(prices, bill, options.ByAccount())
	filter, err := question.ParseFilter(Calls(bill.Providers, window.Padded()), time.Now())
	if err != nil {
		return nil, err
	}
	if err := j.Flush(ctx); err != nil {
		return nil, err
	}
	err = j.EachPage(ctx, org, filter, func(page []*storage.Record) error {
		for _, r := range page {
			records.Add(reconcile.CallOf(r))
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	report, err := reconcile.Compare(ctx, bill, records, options)
	if err != nil {
		return nil, err
	}
	return report, Link(report)
}

func (b *Bill) read(ctx context.Context, window reconcile.Window) (*reconcile.Bill, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	source := b.Source()
	if len(b.Files) == 0 {
		var err error
		if source.API.Key, err = AdminKey(b.AdminKey); err != nil {
			return nil, err
		}
	}
	return source.Read(ctx, window)
}

// Losses are the calls of all organisations whose records the store lost, nil if there may be
// others: a node knows its own losses alone.
func Losses(j *journal.Journal) []reconcile.Loss {
	found := []reconcile.Loss{}
	for _, l := range j.Integrity().Losses {
		if l.Exchanges > 0 {
			found = append(found, reconcile.Loss{From: l.From.Time(), To: l.To.Time(), Calls: l.Exchanges})
		}
	}
	if len(found) == 0 && j.Shared() {
		return nil
	}
	return found
}
