package llmapp

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
	"github.com/weirhq/weir/storage/credits/embedded"
)

// settleTimeout bounds how long the first use of a ledger waits for the records of calls that
// a killed process left.
const settleTimeout = 10 * time.Second

// settle ends the calls that a killed process left in a ledger. The provider may have worked
// on, so that each has cost the most that it can have cost: the call's record says so, too. A
// call whose record is whole was charged before the record was written. It needs the mutex.
func (s *Store) settle(ledger *embedded.Ledger) error {
	ctx, cancel := context.WithTimeout(context.Background(), settleTimeout)
	defer cancel()
	return ledger.Settle(ctx, func(r credits.Reservation, charged plugins.Nanodollars) (plugins.Nanodollars, error) {
		record, err := s.journal.Request(ctx, storage.RecordKey{Org: r.Org, ID: r.Call.ID})
		switch {
		case errors.Is(err, storage.ErrNotFound):
			record = unrecorded(r)
			s.journal.Begin(record)
		case err != nil:
			return 0, err
		case record.EndState != storage.Interrupted:
			return charged, nil
		}
		defer s.journal.Abandon(record)
		total := max(r.Lost, charged)
		if strings.Contains(r.Holds[0].Budget, quantityMark) { // no dollars
			return total, nil
		}
		record.Cost, record.CostCounted = plugins.KnownCost(r.Call.Spent+total), true
		s.options.Logger.Warn("a call that was cut off by a kill counts as the most that it can have cost",
			zap.String("org", r.Org), zap.Stringer("id", record.ID), zap.Stringer("cost", record.Cost.N))
		return total, s.journal.Append(record, nil)
	})
}

// unrecorded is the record of a call of which a killed process left nothing but a reservation.
func unrecorded(r credits.Reservation) *storage.Record {
	c, now := r.Call, storage.Millis(time.Now())
	node, _ := os.Hostname()
	return &storage.Record{
		Org: r.Org, ID: c.ID, CreatedAt: c.CreatedAt, UpdatedAt: now, EndState: storage.Interrupted, GatewayNode: node,
		AuthHash: c.AuthHash, KeyID: c.KeyID, Project: c.Project, UserID: c.UserID, SessionID: c.SessionID,
		Provider: c.Provider, Model: c.Model, RequestModel: c.Model,
	}
}
