package embedded

import (
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage/credits"
)

type reservation struct {
	credits.Reservation
	charged plugins.Nanodollars
	// generation is that of the latest charge of this process.
	generation uint64
	// released is true until Recover if the call has ended, and its record may be lost.
	released bool
}

// entry returns an entry of the reservation. All accounts share the entry, so that a crash
// leaves it in all accounts or in no account.
func (r *reservation) entry() entry {
	e := entry{Org: r.Org, ID: r.ID}
	if len(r.Holds) > 1 || r.Holds[0].Budget != "" {
		e.Accounts = r.Accounts()
	}
	return e
}

// reserved is what is reserved and not charged.
func (r *reservation) reserved() plugins.Nanodollars { return max(r.Amount-r.charged, 0) }

// line is the entry of a reservation that is open.
func (r *reservation) line() entry {
	e := r.entry()
	e.Lost, e.Charged, e.Call, e.Until = r.Lost, r.charged, &r.Call, r.Until
	return e
}
