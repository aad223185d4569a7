package sqlite

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"time"
)

// SQLite leaves copies of rows in the free parts of pages when it moves rows to other pages.
// secure_delete overwrites a deleted row where it stands, and nothing but VACUUM removes the
// copies, which keeps batches waiting for as long as the file is large. So Weir overwrites the free
// parts itself, some pages at a time. https://www.sqlite.org/pragma.html#pragma_secure_delete

// queriesEnd is how long a step waits for the queries that read the write-ahead log.
const queriesEnd = time.Minute

// zeroFree overwrites the free parts of all pages with zeros, from the last page to the first, because
// free pages are filled with what stands behind them.
func (b *Backend) zeroFree(ctx context.Context) error {
	began := time.Now()
	for last := int64(math.MaxInt64); last > 0; {
		err := b.withWriter(func(w *writer) (err error) {
			last, err = w.zeroFree(ctx, last)
			return err
		})
		switch {
		case err == nil:
			began = time.Now()
		case !errors.Is(err, errLogRead) || time.Since(began) > queriesEnd || ctx.Err() != nil:
			return err
		}
	}
	return b.withWriter(func(w *writer) error { return w.file.Sync() })
}

// zeroFree overwrites the free parts of some pages, of which last has the highest number, and returns the
// next, 0 if there is none. The write-ahead log is empty meanwhile, so that the file has all pages as
// they are, and SQLite reads the bytes of free parts from nowhere else.
func (w *writer) zeroFree(ctx context.Context, last int64) (next int64, err error) {
	if pointers, err := w.c.integer(ctx, "PRAGMA auto_vacuum"); err != nil || pointers == 0 {
		if err == nil { // a file of Weir 0.1.0 does not say what its pages are; this makes it say so
			err = w.vacuum(ctx)
		}
		return last, err
	}
	if err := w.emptyLog(ctx); err != nil {
		return last, err
	}
	err = w.c.transaction(ctx, func() error {
		log, err := os.Stat(w.file.Name() + "-wal")
		if err == nil && log.Size() > 0 {
			return errors.New("another process writes to the database")
		}
		count, err := w.c.integer(ctx, "PRAGMA page_count")
		if err != nil {
			return err
		}
		f, err := openPages(w.file, count)
		if err != nil {
			return err
		}
		last = min(last, count)
		next = max(0, last-w.bounds.zeroedPages)
		for page := last; page > next && ctx.Err() == nil; page-- {
			if err := f.zeroFree(page); err != nil {
				return fmt.Errorf("page %d: %w", page, err)
			}
		}
		return ctx.Err()
	})
	// What this connection has read before must not be written again.
	_, forgotten := w.c.exec("PRAGMA shrink_memory")
	return next, errors.Join(err, forgotten)
}

// pageFile is a database file with pointers to its pages.
type pageFile struct {
	file  *os.File
	count int64 // of pages
	size  int64 // of a page
	// usable is how much of a page SQLite uses.
	usable   int64
	page     []byte
	pointers []byte // the page of pointers with the number pointersAt
	// pointersAt is 0 before one is read.
	pointersAt int64
}

// The parts of a database file. https://www.sqlite.org/fileformat2.html
const (
	fileHeader   = 100     // bytes of the first page that come before its b-tree
	lockedBytes  = 1 << 30 // offset of the page that nothing is in
	pointerBytes = 5       // the kind of a page, and the number of another
	pointsToRoot = 1       // the root of a b-tree
	pointsToNode = 5       // another page of a b-tree
)

func openPages(file *os.File, count int64) (*pageFile, error) {
	var header [fileHeader]byte
	if _, err := file.ReadAt(header[:], 0); err != nil {
		return nil, err
	}
	f := &pageFile{file: file, count: count, size: int64(binary.BigEndian.Uint16(header[16:]))}
	if f.size == 1 {
		f.size = 1 << 16
	}
	f.usable = f.size - int64(header[20])
	f.page, f.pointers = make([]byte, f.size), make([]byte, f.size)
	return f, nil
}

func (f *pageFile) read(page int64, into []byte) error {
	_, err := f.file.ReadAt(into, (page-1)*f.size)
	return err
}

// inTree reports whether a page is one of a b-tree. Others are pages of pointers, free, or have the rest of
// a large row.
func (f *pageFile) inTree(page int64) (bool, error) {
	locked := lockedBytes/f.size + 1
	if page <= 1 || page == locked {
		return page == 1, nil
	}
	each := f.usable/pointerBytes + 1
	at := (page-2)/each*each + 2
	if at == locked {
		at++
	}
	if page == at {
		return false, nil
	}
	if at != f.pointersAt {
		if err := f.read(at, f.pointers); err != nil {
			return false, err
		}
		f.pointersAt = at
	}
	kind := f.pointers[(page-at-1)*pointerBytes]
	return kind == pointsToRoot || kind == pointsToNode, nil
}

// zeroFree overwrites the free part of a page, unless it is zeros: what lies between the list of a
// b-tree page's cells and the cells.
func (f *pageFile) zeroFree(page int64) error {
	tree, err := f.inTree(page)
	if err != nil || !tree {
		return err
	}
	if err := f.read(page, f.page); err != nil {
		return err
	}
	header := f.page
	at := 0
	if page == 1 {
		at = fileHeader
		header = f.page[at:]
	}
	list := at + 8
	switch header[0] {
	case 2, 5: // inner pages
		list += 4
	case 10, 13: // leaves
	default:
		return errDamaged
	}
	from := list + 2*int(binary.BigEndian.Uint16(header[3:]))
	to := int(binary.BigEndian.Uint16(header[5:]))
	if to == 0 {
		to = 1 << 16
	}
	if from > to || to > int(f.usable) {
		return errDamaged
	}
	free := f.page[from:to]
	if len(bytes.Trim(free, "\x00")) == 0 {
		return nil
	}
	clear(free)
	_, err = f.file.WriteAt(free, (page-1)*f.size+int64(from))
	return err
}
