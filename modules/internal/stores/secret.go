package stores

import (
	"crypto/rand"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"

	"github.com/weirhq/weir/internal/disk"
	"github.com/weirhq/weir/storage/journal"
)

// secretName is the file of the secret in the journal's directory.
const secretName = "secret"

// Secret returns the secret of the store, which signs and hashes what outlives a process. The first call
// creates it in a file beside the journal, and so does the first after the file was lost, cut or emptied:
// what the earlier secret has encrypted is lost then, and the journal tells of it.
func (s *Store) Secret() ([]byte, error) {
	j, err := s.Journal() // its directory
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	path := filepath.Join(s.storage.Dir(), secretName)
	secret, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if fresh := rand.Text(); len(secret) < len(fresh) { // a shorter one can be guessed
		secret = []byte(fresh)
		if err := disk.Replace(path, secret, 0o600); err != nil {
			return nil, err
		}
	}
	is, was := journal.Reach{Size: 1, ID: crc32.ChecksumIEEE(secret)}, j.Witness().Reached(secretName)
	if was != (journal.Reach{}) && is != was {
		j.Witness().Damaged(secretName, "is not as it was: what clients carry of reasoning, and what the cache has, cannot be read any more")
	}
	j.Witness().Note(secretName, is)
	return secret, nil
}
