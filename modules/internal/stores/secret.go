package stores

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"

	"github.com/weirhq/weir/internal/disk"
)

// Secret returns the secret of the store, which signs and hashes what outlives a process. The first call
// creates it in a file beside the journal.
func (s *Store) Secret() ([]byte, error) {
	if _, err := s.Journal(); err != nil { // its directory
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	path := filepath.Join(s.storage.Dir(), "secret")
	secret, err := os.ReadFile(path)
	if !errors.Is(err, os.ErrNotExist) {
		return secret, err
	}
	secret = []byte(rand.Text())
	return secret, disk.Replace(path, secret, 0o600)
}
