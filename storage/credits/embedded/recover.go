package embedded

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
)

// load applies a line of the file.
func (l *Ledger) load(e entry) {
	stored := l.reservations[e.ID]
	if e.Lost == 0 && (!e.Released || e.Charge != 0) {
		l.accounts.apply(e)
	}
	switch {
	case e.ID == uuid.Nil:
	case e.Charged != 0:
		l.charged[e.ID] = e.Charged
	default:
		l.charged[e.ID] += e.Charge
	}
	switch {
	case e.Lost > 0:
		stored = &reservation{Reservation: credits.Reservation{ID: e.ID, Org: e.Org, Amount: e.Lost, Lost: e.Lost, Until: e.Until}, charged: e.Charged}
		for _, of := range e.accounts() {
			stored.Holds = append(stored.Holds, credits.Hold{Account: of})
		}
		if e.Call != nil {
			stored.Call = *e.Call
		}
		l.reservations[e.ID] = stored
		l.unsettled = append(l.unsettled, stored)
	case stored != nil && e.Released && stored.charged > 0 && l.file.size >= l.file.certain:
		stored.Amount, stored.Lost, stored.released = stored.charged, stored.charged, true
	case stored != nil && e.Released:
		delete(l.reservations, e.ID)
	case stored != nil:
		stored.charged += e.Charge
	}
}

// Recover implements credits.Recoverer.
func (l *Ledger) Recover(context.Context) error {
	charged := l.charged
	l.charged = nil
	if l.file.journal == nil {
		return nil
	}
	recorded, err := l.file.recordedCharges()
	if err != nil {
		return unavailable(err)
	}
	l.mu.Lock()
	again := 0
	for id, c := range recorded {
		e := entry{Org: c.Org, ID: id, Accounts: c.Accounts, Charge: c.Total - charged[id]}
		if e.Charge <= 0 || c.Generation < l.file.state.Generation { // the balances have it
			continue
		}
		again++
		l.accounts.apply(e)
		if stored := l.reservations[id]; stored != nil {
			reserved := stored.reserved()
			stored.charged = c.Total
			l.accounts.reserve(stored, stored.reserved()-reserved)
		}
		l.lines = appendLine(l.lines, e)
	}
	for id, stored := range l.reservations {
		if !stored.released {
			continue
		}
		stored.released = false
		if c, there := recorded[id]; there && c.end != storage.Interrupted {
			delete(l.reservations, id)
		} else {
			l.lines = appendLine(l.lines, stored.line()) // Settle looks for its record
		}
	}
	l.mu.Unlock()
	if again > 0 {
		l.file.logger.Warn("calls are charged again, because a power cut has taken their charges", zap.Int("calls", again))
	}
	return l.flush()
}

// recordedCharge is what the last version of a record says of the charge of a reservation.
type recordedCharge struct {
	credits.Charge
	end storage.EndState
}

// recordedCharges returns the charges in the journal that the ledger's file may lack, by the
// reservation.
func (f *file) recordedCharges() (map[uuid.UUID]recordedCharge, error) {
	recorded := make(map[uuid.UUID]recordedCharge)
	err := f.journal.Charges(f.state.Counted, func(end storage.EndState, charges map[string]string) {
		for name, text := range charges {
			var c credits.Charge
			id, err := uuid.Parse(name)
			if err == nil {
				err = json.Unmarshal([]byte(text), &c)
			}
			if err != nil {
				f.logger.Error("a charge in the journal cannot be read", zap.String("reservation", name), zap.Error(err))
				continue
			}
			recorded[id] = recordedCharge{c, end}
		}
	})
	return recorded, err
}

// Charged implements credits.Recoverer.
func (l *Ledger) Charged(id uuid.UUID) (c credits.Charge, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	stored := l.reservations[id]
	if stored == nil || stored.charged == 0 {
		return credits.Charge{}, false
	}
	return credits.Charge{Org: stored.Org, Accounts: stored.Accounts(), Total: stored.charged, Generation: stored.generation}, true
}

// Settle implements credits.Ledger. What the process before has reserved stays set aside until
// Settle.
func (l *Ledger) Settle(ctx context.Context, total func(r credits.Reservation, charged plugins.Nanodollars) (plugins.Nanodollars, error)) (settled bool, failed error) {
	unsettled := l.unsettled
	l.unsettled = nil
	for _, stored := range unsettled {
		l.mu.Lock()
		open, charged := l.reservations[stored.ID] == stored, stored.charged
		l.mu.Unlock()
		if !open || stored.Until > 0 {
			continue
		}
		n, err := total(stored.Reservation, charged)
		if err == nil {
			err = l.Charge(ctx, stored.Reservation, n)
		}
		if err == nil { // else the next try charges it
			err = l.Release(ctx, stored.Reservation)
		}
		if err != nil {
			l.unsettled, failed = append(l.unsettled, stored), errors.Join(failed, err)
		}
	}
	return len(l.unsettled) == 0, failed
}
