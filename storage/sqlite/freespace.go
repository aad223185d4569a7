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

// When SQLite moves rows to other pages, it leaves copies in the free parts of pages. secure_delete
// overwrites only a row that is deleted. VACUUM removes the copies, but batches wait meanwhile, the
// longer the larger the file is. So Weir overwrites the free parts itself, some pages at a time. https://www.sqlite.org/pragma.html#pragma_secure_delete

// maxLogWait bounds how long zeroFree waits for queries that read the write-ahead log. It counts from
// the last step that succeeded.
const maxLogWait = time.Minute

// zeroFree overwrites the free parts of all pages with zeros. It begins with the last page, because
// SQLite moves pages from the end of the file into free ones meanwhile.
func (b *Backend) zeroFree(ctx context.Context) error {
	lastStep := time.Now()
	for last := int64(math.MaxInt64); last > 0; {
		err := b.withWriter(func(w *writer) (err error) {
			last, err = w.zeroFree(ctx, last)
			return err
		})
		switch {
		case err == nil:
			lastStep = time.Now()
		case !errors.Is(err, errLogRead) || time.Since(lastStep) > maxLogWait || ctx.Err() != nil:
			return err
		}
	}
	return b.withWriter(func(w *writer) error { return w.file.Sync() })
}

// zeroFree overwrites the free parts of at most bounds.zeroedPages pages, from the page last downwards.
// It returns the page to go on with, 0 if there is none. The write-ahead log is empty meanwhile, so that
// the file has the current version of each page.
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
		f, err := openPages(w.file)
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
	// This connection must not write pages again that it read before they changed.
	_, shrinkErr := w.c.exec("PRAGMA shrink_memory")
	return next, errors.Join(err, shrinkErr)
}

// pageFile is a database file with pointer maps, which say of what kind each page is.
// https://www.sqlite.org/fileformat2.html#pointer_map_or_ptrmap_pages
type pageFile struct {
	file   *os.File
	size   int64  // of a page, in bytes
	usable int64  // the bytes of a page that SQLite uses; the rest is reserved
	page   []byte // the page that zeroFree reads
	// pointers is the pointer map on the page pointersAt, which is 0 before the first is read.
	pointers   []byte
	pointersAt int64
}

// The parts of a database file. https://www.sqlite.org/fileformat2.html
const (
	fileHeader   = 100     // bytes before the b-tree of the first page
	lockByte     = 1 << 30 // an offset in the lock-byte page, which has no content
	pointerBytes = 5       // an entry of a pointer map: the kind of a page, and the number of its parent
	kindRoot     = 1       // the root of a b-tree
	kindNode     = 5       // another page of a b-tree
)

// openPages reads the sizes from the header of a database file.
func openPages(file *os.File) (*pageFile, error) {
	var header [fileHeader]byte
	if _, err := file.ReadAt(header[:], 0); err != nil {
		return nil, err
	}
	f := &pageFile{file: file, size: int64(binary.BigEndian.Uint16(header[16:]))}
	if f.size == 1 { // 65,536 does not fit into 16 bits
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

// inTree reports whether a page belongs to a b-tree. Other pages are free, or have a pointer map or the
// rest of a large row. Each pointer map comes before the pages that it describes.
func (f *pageFile) inTree(page int64) (bool, error) {
	lockPage := lockByte/f.size + 1
	if page <= 1 || page == lockPage {
		return page == 1, nil
	}
	span := f.usable/pointerBytes + 1 // a pointer map and the pages that it describes
	at := (page-2)/span*span + 2
	if at == lockPage {
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
	return kind == kindRoot || kind == kindNode, nil
}

// zeroFree overwrites the free part of a page of a b-tree, which lies between the pointers to the
// page's cells and the cells, unless it is zeros already.
func (f *pageFile) zeroFree(page int64) error {
	tree, err := f.inTree(page)
	if err != nil || !tree {
		return err
	}
	if err := f.read(page, f.page); err != nil {
		return err
	}
	start := 0
	if page == 1 {
		start = fileHeader
	}
	header := f.page[start:]
	cellPointers := start + 8
	switch header[0] {
	case 2, 5: // inner pages, whose header is longer
		cellPointers += 4
	case 10, 13: // leaves
	default:
		return errDamaged
	}
	from := cellPointers + 2*int(binary.BigEndian.Uint16(header[3:]))
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
