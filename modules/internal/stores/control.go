package stores

import (
	"context"
	"sync"
	"time"

	"github.com/weirhq/weir/storage/control"
	"github.com/weirhq/weir/storage/control/embedded"
)

// controlFile opens the control objects of a store.
type controlFile struct {
	mu   sync.RWMutex  // guards all fields
	file *embedded.Log // nil until it is needed, and when closed
	log  control.Log   // the file, or what nodes share; nil when closed
	none bool          // there was no file; log may have made one since
}

// Control returns the control objects of the organisations that live in the store: those that
// nodes share, or a file beside the journal, which is made if there is none.
func (s *Store) Control() (control.Log, error) {
	j, err := s.Journal() // which owns the directory
	if err != nil {
		return nil, err
	}
	nodes, err := s.sharedNodes()
	if err != nil {
		return nil, err
	}
	c := &s.control
	c.mu.Lock()
	defer c.mu.Unlock()
	if nodes != nil {
		c.log = (*nodes).Control()
		return c.log, nil
	}
	if c.file == nil {
		if c.file, err = embedded.Open(s.Dir(), j, s.options.Logger); err != nil {
			return nil, err
		}
	}
	c.log = c.file
	return c.log, nil
}

// forget makes the next call ask where the control objects are now.
func (c *controlFile) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log, c.none = nil, false
}

// ControlFile returns the file of control objects, nil if there is none or if nodes share them.
func (s *Store) ControlFile() (*embedded.Log, error) {
	if s.SharesControl() || !embedded.Exists(s.Dir()) {
		return nil, nil
	}
	log, err := s.Control()
	file, _ := log.(*embedded.Log)
	return file, err
}

// HasControl reports whether there may be control objects. Each call asks: the disk is asked
// only before the journal is open.
func (s *Store) HasControl() bool {
	log, none := s.control.opened()
	return log != nil || !none && (s.SharesControl() || embedded.Exists(s.Dir()))
}

// OpenedControl returns the control objects if they are open, else nil.
func (s *Store) OpenedControl() control.Log {
	log, _ := s.control.opened()
	return log
}

// opened returns the control objects that are open, or reports that there are none.
func (c *controlFile) opened() (log control.Log, none bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.log, c.log == nil && c.none
}

// SharesControl reports whether control objects are where nodes share them.
func (s *Store) SharesControl() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shares()
}

// shares is SharesControl for who has the mutex.
func (s *Store) shares() bool { return len(s.configs) > 0 && s.configs[0].shared != nil }

// ControlIfAny is Control, but nil for a store that has no control objects.
func (s *Store) ControlIfAny() (control.Log, error) {
	if log, none := s.control.opened(); log != nil || none {
		return log, nil
	}
	if s.HasControl() {
		return s.Control()
	}
	return s.control.knowNone(), nil
}

// knowNone notes that there are no control objects, or returns those that were made meanwhile.
func (c *controlFile) knowNone() control.Log {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.none = c.log == nil
	return c.log
}

// close needs no mutex of the store.
func (c *controlFile) close(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	file := c.file
	c.file, c.log, c.none = nil, nil, false
	if file == nil {
		return nil
	}
	return file.Close(ctx)
}

// Lease reports whether this node does for a time what one of the nodes shall do that read the same
// records of an organisation. A node that shares no records, or nothing besides, is alone.
func (s *Store) Lease(ctx context.Context, org, name string, life time.Duration) (bool, error) {
	j, err := s.Journal()
	if err != nil {
		return false, err
	}
	if !j.Shared() || !s.SharesControl() {
		return true, nil
	}
	log, err := s.Control()
	if err != nil {
		return false, err
	}
	return (&control.Organisation{Log: log, Name: org}).Lease(ctx, name, j.Identity().String(), life)
}
