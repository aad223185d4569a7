package stores

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
	"github.com/weirhq/weir/storage/journal"
)

const (
	// settleTimeout bounds how long one try waits for the records of calls that killed
	// processes left.
	settleTimeout = 10 * time.Second
	// settleInterval is the pause between two tries.
	settleInterval = 2 * time.Second
)

// settler ends the calls that killed processes of this node left in a ledger. The provider may
// have worked on, so that each has cost the most that it can have cost: the call's record says
// so, too. A call whose record is whole was charged before the record was written.
type settler struct {
	ledger  credits.Ledger
	journal *journal.Journal
	logger  *zap.Logger
	began   storage.Timestamp // of this process's use of the ledger
}

// settler needs the mutex, and an open journal.
func (s *Store) settler(ledger credits.Ledger) *settler {
	return &settler{ledger, s.journal, s.options.Logger, storage.Millis(time.Now())}
}

// run tries until nothing is left. stop ends it.
func (s *settler) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for logged := false; ; {
			settled, err := s.settle(ctx)
			if settled || ctx.Err() != nil {
				return
			}
			if err != nil && !errors.Is(err, credits.ErrUnavailable) && !logged { // the ledger tells that it is away
				logged = true
				s.logger.Error("calls that a killed process left stay without their cost until they can be settled", zap.Error(err))
			}
			select {
			case <-ctx.Done():
			case <-time.After(settleInterval):
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

func (s *settler) settle(ctx context.Context) (settled bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	return s.ledger.Settle(ctx, func(r credits.Reservation, charged plugins.Nanodollars) (plugins.Nanodollars, error) {
		record, isFree, err := s.recordOf(ctx, r)
		switch {
		case err != nil:
			return 0, err
		case record != nil && record.EndState != storage.Interrupted:
			return charged, nil
		}
		total := max(r.Lost, charged)
		if strings.Contains(r.Holds[0].Budget, credits.QuantityMark) { // no dollars
			return total, nil
		}
		if record != nil {
			record.Revision++ // another node may have changed it
		} else {
			if record, err = s.newRecord(ctx, r, isFree); err != nil {
				return 0, err
			}
			defer s.journal.Release(record.Key())
			s.journal.Begin(record)
		}
		defer s.journal.Abandon(record)
		record.Cost, record.CostCounted = plugins.KnownCost(max(record.Cost.N, r.Call.Spent+total)), true // a later round may have been settled
		s.logger.Warn("a call that was cut off by a kill counts as the most that it can have cost",
			zap.String("org", r.Org), zap.Stringer("id", record.ID), zap.Stringer("cost", record.Cost.N))
		return total, s.journal.Append(record, nil)
	})
}

// recordOf returns the record of a call, nil if there is none. isFree reports whether no other call has
// its id: what the client has called with the same id before, or since, is another call.
func (s *settler) recordOf(ctx context.Context, r credits.Reservation) (record *storage.Record, isFree bool, err error) {
	for _, id := range []uuid.UUID{r.ID, r.Call.ID} { // newRecord has given it the first one
		record, err := s.journal.Request(ctx, storage.RecordKey{Org: r.Org, ID: id})
		isFree = errors.Is(err, storage.ErrNotFound)
		switch {
		case isFree:
		case err != nil:
			return nil, false, err
		case record.CreatedAt >= r.Call.CreatedAt && record.CreatedAt <= s.began: // that of another attempt begins later than the call
			return record, false, nil
		}
	}
	return nil, isFree, nil
}

// newRecord returns the record of a call that has none, and claims its key. It has the id of the call, or that
// of the reservation if another call has, had or takes the first one. So a settlement that is repeated, because the
// ledger was away, finds it.
func (s *settler) newRecord(ctx context.Context, r credits.Reservation, isFree bool) (*storage.Record, error) {
	record := unrecorded(r)
	if isFree && s.journal.Claim(ctx, record.Key()) {
		return record, nil
	}
	if _, err := s.journal.Known(ctx, record.Key()); err != nil { // a backend that is away says nothing of who has the id
		return nil, err
	}
	if record.ID = r.ID; !s.journal.Claim(ctx, record.Key()) {
		return nil, fmt.Errorf("the record %s of a call that was cut off cannot be claimed", r.ID)
	}
	return record, nil
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
