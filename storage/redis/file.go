package redis

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage/credits"
)

// file has a line for each charge that Redis did not take, and another line when Redis has taken
// the charge. A reservation that Redis does not have is in the file before its call is made. The
// file is emptied when Redis has taken all charges.
type file struct {
	path string
	*os.File
}

// line is a charge: what a call has cost so far.
type line struct {
	ID    uuid.UUID           `json:"id"`
	Org   string              `json:"org"`
	Total plugins.Nanodollars `json:"total"`
	// Paid says that Redis has taken the charge.
	Paid bool `json:"paid,omitempty"`
	// Accounts are the accounts that are charged; nil means the credits of Org.
	Accounts []credits.Account `json:"accounts,omitempty"`
	// Node is the process that has made the reservation, "" in a line of an earlier version.
	Node string `json:"node,omitempty"`
	// Lost and Call are the reservation's, if Redis does not have the reservation; else zero.
	Lost plugins.Nanodollars `json:"lost,omitempty"`
	Call credits.Call        `json:"call,omitzero"`
}

// open returns the charges that earlier processes left. The last line may be cut
// short: then its charge was not acknowledged. Settle ends the reservations.
func (f *file) open() (waiting []*reservation, err error) {
	text, err := os.ReadFile(f.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	by := make(map[uuid.UUID]*reservation)
	for text := range bytes.Lines(text) {
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			break
		}
		r := by[l.ID]
		if r == nil {
			if l.Accounts == nil { // a line of an earlier version
				l.Accounts = []credits.Account{{Org: l.Org}}
			}
			r = &reservation{Reservation: credits.Reservation{ID: l.ID, Org: l.Org, Lost: l.Lost, Call: l.Call}, node: l.Node, lent: l.Lost > 0, released: l.Node == ""}
			for _, of := range l.Accounts {
				r.Holds = append(r.Holds, credits.Hold{Account: of})
			}
			by[l.ID] = r
			waiting = append(waiting, r)
		}
		r.charged, r.unpaid, r.filed = l.Total, !l.Paid, !l.Paid
	}
	f.File, err = os.OpenFile(f.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	return waiting, err
}

func (f *file) add(r *reservation) error {
	l := line{ID: r.ID, Org: r.Org, Total: r.charged, Paid: !r.unpaid, Accounts: r.Accounts(), Node: r.node}
	if r.lent {
		l.Lost, l.Call = r.Lost, r.Call
	}
	text, err := json.Marshal(l)
	if err == nil {
		_, err = f.Write(append(text, '\n'))
	}
	return err
}

func (f *file) clear() error { return f.Truncate(0) }
