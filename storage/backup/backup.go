// Package backup copies open stores, restores copies, and checks that a store is
// complete.
//
// A backup is a directory named by its time. For each store it has a directory with the
// files as Weir keeps them, and SHA256SUMS, which `sha256sum --check` reads, with the sum
// of each file. Segments never change once they are closed: segments that the previous backup
// has are hard links to its files, so that each backup is complete and takes only the
// space of its new files.
package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control/embedded"
	"github.com/weirhq/weir/storage/journal"
)

// Store is an open store.
type Store struct {
	Name    string
	Dir     string // of its journal
	Journal *journal.Journal
	Control *embedded.Log // nil if it has no control objects
}

// Summary is what Write has done.
type Summary struct {
	Directory string         `json:"directory"`
	Stores    []StoreSummary `json:"stores"`
}

// StoreSummary is the part of one store. Sizes are in bytes.
type StoreSummary struct {
	Store string `json:"store"`
	// At is the moment that the backup has.
	At    time.Time `json:"at"`
	Files int       `json:"files"`
	Bytes int64     `json:"bytes"`
	// Copied counts the bytes of files that the backup before does not have.
	Copied int64 `json:"copied_bytes"`
	// Database is false where the backend keeps no files: this is the journal alone, and
	// the backend is backed up by its own means.
	Database bool `json:"database"`
}

const (
	nameFormat = "20060102T150405.000Z"
	unfinished = ".unfinished"
)

// Write makes a backup in dir, and creates dir if it does not exist. It removes the files
// that an interrupted backup left.
func Write(ctx context.Context, dir string, stores []Store) (*Summary, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	leftovers, err := filepath.Glob(filepath.Join(dir, "*"+unfinished))
	for _, path := range leftovers {
		err = errors.Join(err, os.RemoveAll(path))
	}
	if err != nil {
		return nil, err
	}
	w := &writer{}
	if w.before, err = newest(dir); err != nil && !errors.Is(err, errNone) {
		return nil, err
	}
	s := &Summary{Directory: filepath.Join(dir, time.Now().UTC().Format(nameFormat))}
	w.root = s.Directory + unfinished
	for _, store := range stores {
		one := StoreSummary{Store: store.Name}
		if err := w.store(ctx, store, &one); err != nil {
			return nil, errors.Join(fmt.Errorf("store %s: %w", store.Name, err), os.RemoveAll(w.root))
		}
		s.Stores = append(s.Stores, one)
	}
	err = w.sum(ctx, s.Stores)
	if err == nil {
		err = os.Rename(w.root, s.Directory)
	}
	if err == nil {
		err = journal.SyncDir(dir)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(w.root))
	}
	return s, nil
}

// errNone: a directory has no backup.
var errNone = errors.New("there is no backup")

// newest is the newest backup in a directory.
func newest(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	for _, e := range slices.Backward(entries) {
		if _, err := time.Parse(nameFormat, e.Name()); err == nil {
			return filepath.Join(dir, e.Name()), nil
		}
	}
	return "", fmt.Errorf("%w in %s", errNone, dir)
}

// writer writes a backup to root.
type writer struct {
	root   string
	before string // the backup before, "" without one
}

func (w *writer) store(ctx context.Context, s Store, summary *StoreSummary) error {
	if !filepath.IsLocal(s.Name) || strings.ContainsAny(s.Name, `/\`) {
		return errors.New("its name would be that of a directory; rename it")
	}
	segments := filepath.Join(s.Name, filepath.Base(s.Dir))
	if err := os.MkdirAll(filepath.Join(w.root, segments), 0o700); err != nil {
		return err
	}
	var database storage.Snapshot
	frozen := map[string][]byte{}
	freeze := func(names []string) (err error) {
		if backend, ok := s.Journal.Backend().(storage.Snapshotter); ok {
			if database, err = backend.Snapshot(ctx); err != nil {
				return err
			}
		}
		summary.At = time.Now()
		// The last first: the state of the credits may be older than they are, and must not
		// be newer.
		for _, name := range slices.Backward(names) {
			if frozen[name], err = os.ReadFile(filepath.Join(s.Dir, name)); err != nil {
				return err
			}
		}
		return nil
	}
	err := s.Journal.Backup(ctx, freeze, func(names []string) error {
		for _, name := range names {
			if err := w.segment(ctx, filepath.Join(segments, name), filepath.Join(s.Dir, name)); err != nil {
				return err
			}
		}
		return nil
	})
	if database != nil {
		defer database.Close()
	}
	if err != nil {
		return err
	}
	for name, text := range frozen {
		if err := os.WriteFile(filepath.Join(w.root, segments, name), text, 0o600); err != nil {
			return err
		}
	}
	if s.Control != nil {
		if err := s.Control.CopyTo(ctx, filepath.Join(w.root, segments)); err != nil {
			return err
		}
	}
	if database == nil {
		return nil
	}
	summary.Database = true
	return database.CopyTo(ctx, filepath.Join(w.root, s.Name))
}

// segment links a segment to the segment in the backup before, or copies it.
func (w *writer) segment(ctx context.Context, name, from string) error {
	to := filepath.Join(w.root, name)
	if w.before != "" {
		// Where files cannot be linked, each backup is a copy.
		if earlier := filepath.Join(w.before, name); same(from, earlier) && os.Link(earlier, to) == nil {
			return nil
		}
	}
	return copyFile(ctx, to, from)
}

// same reports whether two files are the same segment: a segment that was written after an
// older backup was restored may have the number of another segment. A raw segment begins with
// a random number, a sealed segment ends with a sum of all its sums.
func same(a, b string) bool {
	first, firstSize, err := ends(a)
	if err != nil {
		return false
	}
	second, secondSize, err := ends(b)
	return err == nil && firstSize == secondSize && bytes.Equal(first, second)
}

// ends are the first and the last bytes of a file.
func ends(path string) (b []byte, size int64, err error) {
	const part = 4 << 10
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	size = info.Size()
	for _, from := range []int64{0, max(0, size-part)} {
		piece, err := io.ReadAll(io.NewSectionReader(f, from, part))
		if err != nil {
			return nil, 0, err
		}
		b = append(b, piece...)
	}
	return b, size, nil
}

// copyFile makes a file that is a copy of another one.
func copyFile(ctx context.Context, to, from string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, cancellable{ctx, source})
	return errors.Join(err, f.Close())
}

// cancellable reads until its context ends.
type cancellable struct {
	ctx context.Context
	r   io.Reader
}

func (c cancellable) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(b)
}
