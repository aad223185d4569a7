package stores

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
	"github.com/weirhq/weir/storage/journal"
)

// holds are the holds of a store's organisations, as they were read at a version of the control
// objects.
type holds struct {
	mu      sync.Mutex // guards all fields
	log     control.Log
	version uint64
	byOrg   map[string][]journal.Hold
}

// errNoControl: the control objects, among which are the holds, are not open.
var errNoControl = errors.New("the control objects of the store are not open")

// Holds returns the holds of an organisation. It never opens the control objects, because the
// journal asks also while the store closes: Config.Start opens them.
func (s *Store) Holds(ctx context.Context, org string) ([]journal.Hold, error) {
	log, none := s.control.opened()
	switch {
	case none:
		return nil, nil
	case log == nil:
		return nil, errNoControl
	case !log.Trusted():
		return nil, errors.New("the server of the control objects does not answer")
	}
	h := &s.holds
	h.mu.Lock()
	defer h.mu.Unlock()
	if version := log.Version(); h.byOrg == nil || h.log != log || h.version != version {
		h.log, h.version, h.byOrg = log, version, make(map[string][]journal.Hold)
	}
	if all, known := h.byOrg[org]; known {
		return all, nil
	}
	list, err := control.All[control.Hold](ctx, &control.Organisation{Log: log, Name: org}, control.Page{})
	if err != nil {
		return nil, err
	}
	var all []journal.Hold
	for _, one := range list {
		f, err := storage.ParseFilter(one.Object.Filter, storage.RequestResponse)
		if err != nil {
			return nil, fmt.Errorf("the filter of %s: %w", one.Object.ID, err)
		}
		all = append(all, journal.Hold{ID: one.Object.ID, Org: org, Filter: f})
	}
	h.byOrg[org] = all
	return all, nil
}
