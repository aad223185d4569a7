package money

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
)

// BatchLife is how long a provider has the results of a batch, 29 days at Anthropic and 30 at
// OpenAI. If nobody has asked for them by then, the batch has cost the most that was set aside.
const BatchLife = 30 * 24 * time.Hour

// batchUntil returns when the reservation of a batch ends that was created at a time. It is the end of a
// day, so that a ledger has few such times.
func batchUntil(created storage.Timestamp) storage.Timestamp {
	const day = 24 * time.Hour
	return storage.Millis(created.Time().Add(BatchLife + day).UTC().Truncate(day))
}

// batchShare is the id of a share of a batch, which any node finds by what the record of the
// batch has: Bill.Batch. Batches of 0.1.0 had a second share, whose id ended in " true".
func batchShare(batch uuid.UUID, q *quantity) uuid.UUID {
	return uuid.NewSHA1(batch, []byte(q.name+" false"))
}

// surplusShare is the id of the share that has the same batch in the surplus of budgets.
func surplusShare(batch uuid.UUID, q *quantity) uuid.UUID {
	return uuid.NewSHA1(batch, []byte(q.name+" surplus"))
}

// Batch names what is set aside for a batch until EndBatch, the zero UUID if nothing is.
func (t *Bill) Batch() uuid.UUID { return t.batch }

// EndBatch charges what the calls of a batch have used, and frees the rest of what was set aside for
// it. A quantity that is unknown in used stays set aside. A second EndBatch does nothing.
func (m *Budgets) EndBatch(ctx context.Context, org string, batch uuid.UUID, used bound.Used) (failed error) {
	ledger, err := m.Ledger(org)
	if err != nil {
		return err
	}
	budgets, err := m.Of(org)
	if err != nil {
		return err
	}
	for _, q := range quantities {
		if !q.metered() || !q.of(used).Valid {
			continue
		}
		total := plugins.Nanodollars(q.of(used).N)
		accounts, err := ledger.End(ctx, batchShare(batch, q), total)
		if _, e := ledger.End(ctx, surplusShare(batch, q), total); e != nil && !errors.Is(e, credits.ErrNoReservation) {
			failed = errors.Join(failed, e)
		}
		if err != nil {
			if !errors.Is(err, credits.ErrNoReservation) {
				failed = errors.Join(failed, err)
			}
			continue
		}
		t := &Bill{budgets: m, ledger: ledger}
		for _, b := range budgets {
			for _, of := range accounts {
				if of.Budget == b.account() {
					t.bounding = append(t.bounding, budgetHold{budget: b, hold: credits.Hold{Account: of, Limit: b.limit, Rolling: b.rolling}})
				}
			}
		}
		part := &share{quantity: q}
		part.Amount = total
		t.count(part, total)
		t.alert(ctx, part)
	}
	return failed
}
