// Package sqlite keeps records in an SQLite database.
package sqlite

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// Backend is a storage.Backend on one database file.
type Backend struct {
	path string
}

// New returns a backend on the database file at path, not yet open.
func New(path string) *Backend { return &Backend{path: path} }

var errNotYet = errors.New("sqlite: not implemented")

func (b *Backend) Open(ctx context.Context, contents storage.Contents) (storage.Position, error) {
	return storage.Position{}, errNotYet
}
func (b *Backend) Write(ctx context.Context, batch *storage.Batch) error { return errNotYet }
func (b *Backend) Requests(ctx context.Context, q *storage.RequestQuery) ([]*storage.Record, error) {
	return nil, errNotYet
}
func (b *Backend) Request(ctx context.Context, org string, id uuid.UUID) (*storage.Record, error) {
	return nil, errNotYet
}
func (b *Backend) Exists(ctx context.Context, id uuid.UUID) (bool, error) { return false, errNotYet }
func (b *Backend) Prune(ctx context.Context, before storage.Timestamp) (bool, error) {
	return false, errNotYet
}
func (b *Backend) Close() error { return nil }

var _ storage.Backend = (*Backend)(nil)
