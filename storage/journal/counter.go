package journal

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/weirhq/weir/storage"
)

// counterName is the file of the counter in the journal's directory.
const counterName = "exchanges"

// The file is one page: its magic, and numbers of 8 bytes after it.
const (
	counterMagic = "weir.sum"
	counterSize  = 4096

	begunAt = 8  // counted.begun
	sinceAt = 16 // counted.since
	lastAt  = 24 // counted.last
	lostAt  = 32 // for each reason of unwritten: count, exchanges, from and to
)

// unwritten are the reasons of losses that no segment may have room for.
var unwritten = [...]string{storage.LostJournalFailed, storage.LostJournalFull}

// counted is what must survive the end of the process at any moment.
type counted struct {
	begun uint64 // exchanges since the store began
	// since is when the oldest exchange in flight began, last when the last exchange began,
	// in milliseconds; 0 if no exchange has begun.
	since, last moment
	// lost are the sums of all losses by the reasons of unwritten, with the times of the
	// last incident.
	lost [len(unwritten)]storage.Loss
}

// exchangeCounter keeps numbers in a page of a file that is mapped into memory, so that an
// exchange costs no system call, and a loss needs no room on the disk.
type exchangeCounter struct {
	file *os.File
	page []byte // nil if the file is not mapped: the numbers then end with the process
}

// open maps the file, and makes the file if there is none.
func (t *exchangeCounter) open(dir string) (c counted, err error) {
	t.file, err = OpenFile(filepath.Join(dir, counterName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return c, err
	}
	b := make([]byte, counterSize)
	n, err := t.file.ReadAt(b, 0)
	c, found := readCounter(b[:n])
	if !found && (err == nil || errors.Is(err, io.EOF)) {
		clear(b)
		copy(b, counterMagic)
		// Written, not only made longer: a page without a place on the disk
		// would fault when the disk is full.
		_, err = t.file.WriteAt(b, 0)
	}
	if err == nil {
		t.page, err = mapPage(t.file)
	}
	return c, err
}

// readCounter reads the page of the file.
func readCounter(b []byte) (c counted, found bool) {
	if len(b) < counterSize || string(b[:begunAt]) != counterMagic {
		return c, false
	}
	number := func(at int) int64 { return int64(order.Uint64(b[at:])) }
	c.begun, c.since, c.last = uint64(number(begunAt)), moment(number(sinceAt)), moment(number(lastAt))
	for i, reason := range unwritten {
		at := lostAt + 32*i
		c.lost[i] = storage.Loss{Reason: reason, Count: number(at), Exchanges: number(at + 8), From: moment(number(at + 16)), To: moment(number(at + 24))}
	}
	return c, true
}

// keep writes the page.
//
// The page faults when somebody has cut the file short, or when a file system
// that copies on write finds the disk full. Traffic then goes on, and the count
// ends with the process.
func (t *exchangeCounter) keep(c *counted) {
	if t.page == nil {
		return
	}
	defer func() {
		if recover() != nil {
			t.page = nil
		}
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	put := func(at int, n int64) { order.PutUint64(t.page[at:], uint64(n)) }
	put(sinceAt, int64(c.since))
	put(lastAt, int64(c.last))
	put(begunAt, int64(c.begun))
	for i, l := range c.lost {
		at := lostAt + 32*i
		put(at, l.Count)
		put(at+8, l.Exchanges)
		put(at+16, int64(l.From))
		put(at+24, int64(l.To))
	}
	t.save()
}

func (t *exchangeCounter) close() {
	if t.page != nil {
		unmapPage(t.page)
		t.page = nil
	}
	if t.file != nil {
		t.file.Close()
	}
}
