package journal

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"

	"github.com/weirhq/weir/storage"
)

// counterName is the file of the counter in the journal's directory.
const counterName = "exchanges"

// The file is one page: its magic, and three numbers behind it.
const (
	counterMagic = "weir.sum"
	counterSize  = 4096

	begunAt = 8  // exchanges that have begun
	sinceAt = 16 // when the first of those in flight began, in milliseconds
	lastAt  = 24 // when the last began
)

// exchangeCounter counts the exchanges that have begun, where the end of the process
// cannot reach: in a page of a file that is mapped into memory, so that an
// exchange costs no system call.
type exchangeCounter struct {
	mu   sync.Mutex
	file *os.File
	page []byte // nil when there is none: the count then ends with the process

	// begun and ended count the exchanges since the store began; those between
	// are in flight.
	begun, ended uint64
	since, last  moment
}

// counted is what an earlier process left in the file.
type counted struct {
	begun       uint64
	since, last moment
}

// open maps the file, which it makes if there is none.
func (t *exchangeCounter) open(dir string) (c counted, err error) {
	t.file, err = os.OpenFile(filepath.Join(dir, counterName), os.O_CREATE|os.O_RDWR, 0o600)
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
	return counted{order.Uint64(b[begunAt:]), moment(order.Uint64(b[sinceAt:])), moment(order.Uint64(b[lastAt:]))}, true
}

// linked tells whether the file, if there is one, is still in its directory.
func (t *exchangeCounter) linked() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.file == nil || linked(t.file, t.file.Name())
}

// reopen goes on counting in the file that now has the name, or in a new one.
func (t *exchangeCounter) reopen(dir string) error {
	var fresh exchangeCounter
	if _, err := fresh.open(dir); err != nil {
		fresh.close()
		return err
	}
	t.close()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.file, t.page = fresh.file, fresh.page
	t.keep()
	return nil
}

// start sets the count that this process goes on from.
func (t *exchangeCounter) start(begun uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun, t.ended = begun, begun
	t.keep()
}

// begin counts an exchange, and returns its number.
func (t *exchangeCounter) begin(at moment) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.begun == t.ended {
		t.since = at
	}
	t.last = at
	t.begun++
	t.keep()
	return t.begun
}

// keep writes the page. It needs the mutex.
//
// The page faults when somebody has cut the file short, or when a file system
// that copies on write finds the disk full. Traffic then goes on, and the count
// ends with the process.
func (t *exchangeCounter) keep() {
	if t.page == nil {
		return
	}
	defer func() {
		if recover() != nil {
			t.page = nil
		}
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	order.PutUint64(t.page[sinceAt:], uint64(t.since))
	order.PutUint64(t.page[lastAt:], uint64(t.last))
	order.PutUint64(t.page[begunAt:], t.begun)
	t.save()
}

// end takes an exchange out of those in flight: it has a record, or is lost.
func (t *exchangeCounter) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended++
}

// counts are the exchanges that have begun, and of them those in flight.
func (t *exchangeCounter) counts() (begun, flying int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return int64(t.begun), int64(t.begun - t.ended)
}

func (t *exchangeCounter) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.page != nil {
		unmapPage(t.page)
		t.page = nil
	}
	if t.file != nil {
		t.file.Close()
	}
}

// Begin counts an exchange as seen and numbers its record, whose CreatedAt is
// known. Append or Abandon must follow.
func (j *Journal) Begin(r *storage.Record) { r.Number = j.counter.begin(r.CreatedAt) }

// Abandon ends an exchange. It declares lost one whose record was not appended.
func (j *Journal) Abandon(r *storage.Record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, lives := j.live[r.Key()]; lives { // nothing followed: the drain must not wait for more
		delete(j.live, r.Key())
		j.released = true
		signal(j.wake)
	}
	if r.Number == 0 {
		return
	}
	r.Number = 0
	if !j.closed { // else the next start finds it
		j.countLost(storage.Loss{Reason: storage.LostInterrupted, Count: 1, Exchanges: 1, From: r.CreatedAt, To: r.CreatedAt})
		j.counter.end()
	}
}
