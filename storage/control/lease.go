package control

import (
	"context"
	"errors"
	"time"

	"github.com/weirhq/weir/storage"
)

// lease says which node does for a time what one node shall do.
type lease struct {
	ID    string            `json:"id"`
	Node  string            `json:"node"`
	Until storage.Timestamp `json:"until"`
}

func (l *lease) object() Object { return Object{ID: l.ID, Kind: KindLease, Name: l.ID} }

// errLeased means that another node has the lease.
var errLeased = errors.New("another node has the lease")

// Lease takes a lease of the organisation for a node, or makes it longer. It reports false while
// another node has the lease. Nothing ends a lease early: if its node dies, others wait until its end.
func (o *Organisation) Lease(ctx context.Context, name, node string, life time.Duration) (bool, error) {
	id, until := "lease_"+o.Name+"_"+name, storage.Millis(time.Now().Add(life))
	err := o.retry(ctx, func() error {
		_, err := Amend(ctx, o, id, func(l *lease) error {
			if l.Node != node && l.Until > now() {
				return errLeased
			}
			l.Node, l.Until = node, until
			return nil
		})
		if !errors.Is(err, ErrNotFound) {
			return err
		}
		e, err := created(o, &lease{id, node, until})
		if err != nil {
			return err
		}
		e.ID = "" // no administrator has done it
		if err = o.Log.Commit(ctx, o.Name, []Event{e}); errors.Is(err, ErrTaken) {
			err = ErrChanged // by another node
		}
		return err
	})
	if errors.Is(err, errLeased) {
		return false, nil
	}
	return err == nil, err
}
