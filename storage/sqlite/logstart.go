package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// The write-ahead log has only the pages that changed since it was begun. Over an older copy of the
// file it makes a mixture that SQLite takes for a database: what was merged into the file between the
// copy and the log is gone, and the position of the journal, which is in the log, does not show it.
// The log therefore says at which position it was begun, and the position of the file alone never
// goes back while the file is open.

// logStarts is the table of the positions that the file alone had when the write-ahead log was begun.
const logStarts = `CREATE TABLE IF NOT EXISTS log_starts (
	journal BLOB PRIMARY KEY, -- as in journals
	segment INTEGER NOT NULL,
	ordinal INTEGER NOT NULL
) STRICT, WITHOUT ROWID`

var (
	// errOlderFile is storage.ErrUnavailable, so that records wait in the journal, and are not written to a mixture.
	errOlderFile = fmt.Errorf("an older copy was written over the file while it was open: the next start takes the copy as it is, and fills it from the journal, so start Weir again: %w", storage.ErrUnavailable)
	errOtherLog  = errors.New("the file and its write-ahead log are not of one time, as if an older copy of one of them was put back")
)

// mergedPosition is how far a journal has been written to the file alone, without its write-ahead log.
func mergedPosition(ctx context.Context, path string, journal uuid.UUID) (p storage.Position, err error) {
	c, err := open(path, url.Values{"mode": {"ro"}, "immutable": {"1"}})
	if err != nil {
		return p, err
	}
	tables, err := c.integer(ctx, "SELECT count(*) FROM sqlite_schema WHERE name = 'journals'")
	if err == nil && tables > 0 { // else all tables are in the log
		p, err = c.position(ctx, journal)
	}
	return p, errors.Join(err, c.Close())
}

// logStart is the position that the file alone must have for the log that the connection reads.
func (c *conn) logStart(ctx context.Context, journal uuid.UUID) (p storage.Position, err error) {
	tables, err := c.integer(ctx, "SELECT count(*) FROM sqlite_schema WHERE name = 'log_starts'")
	if err != nil || tables == 0 {
		return p, err
	}
	err = c.query(ctx, "SELECT segment, ordinal FROM log_starts WHERE journal = ?", []driver.Value{journal[:]}, func(row []driver.Value) error {
		p = storage.Position{Segment: uint64(row[0].(int64)), Ordinal: uint32(row[1].(int64))}
		return nil
	})
	return p, err
}

// compareLog returns errOtherLog if the log that a connection reads was not begun on the file that is
// there. What cannot be read is left to whoever reads all.
func (c *conn) compareLog(ctx context.Context, path string, journal uuid.UUID) error {
	start, unreadable := c.logStart(ctx, journal)
	position, err := c.position(ctx, journal)
	unreadable = errors.Join(unreadable, err)
	merged, err := mergedPosition(ctx, path, journal)
	if errors.Join(unreadable, err) == nil && (merged.Before(start) || position.Before(merged)) {
		return errOtherLog
	}
	return nil
}

// dropOtherLog removes a log that was not begun on the file, before anything merges it, and reports
// whether there was one. The connection cannot write, and so does not merge the log when it closes.
func dropOtherLog(ctx context.Context, path string, journal uuid.UUID) (dropped bool, err error) {
	if log, err := os.Stat(path + "-wal"); errors.Is(err, fs.ErrNotExist) || err == nil && log.Size() == 0 {
		return false, nil
	}
	c, err := openReader(path)
	if err != nil {
		return false, err
	}
	other := c.compareLog(ctx, path, journal)
	if err := c.Close(); err != nil || other == nil {
		return false, err
	}
	return true, errors.Join(remove(path+"-wal"), remove(path+"-shm"))
}

// logBegin is what a writer knows of the file and of its log.
type logBegin struct {
	journal uuid.UUID
	// merged is the position of the file alone when file was as it is in seen.
	merged storage.Position
	seen   os.FileInfo
	// mayBegin is true if the file has changed since the log was begun: SQLite does not begin it anew before.
	mayBegin bool
	salt     [8]byte // of the log
	// unnoted is the position of the file alone before the log was begun, 0 once log_starts has it.
	unnoted storage.Position
}

// guard calls do between two looks at the file.
func (w *writer) guard(do func(*writer) error) error {
	if err := w.checkFile(); err != nil {
		return err
	}
	before := w.log.merged
	err := do(w)
	if older := w.checkFile(); older != nil {
		return cmp.Or(err, older)
	}
	if w.log.mayBegin {
		if salt, ok := readSalt(w.file.Name()); ok && salt != w.log.salt {
			w.log.salt, w.log.mayBegin, w.log.unnoted = salt, false, before
		}
	}
	return cmp.Or(err, w.noteLogStart())
}

// readSalt reads the salt of a log, which changes when it is begun anew. SQLite does so only once the file has all of
// the log, also after a power cut; a reader can stop a merge halfway (https://sqlite.org/walformat.html#checkpoints).
func readSalt(path string) (salt [8]byte, ok bool) {
	f, err := os.Open(path + "-wal")
	if err != nil {
		return salt, false
	}
	defer f.Close()
	_, err = f.ReadAt(salt[:], 16)
	return salt, err == nil
}

// checkFile returns errOlderFile if somebody has written an older copy over the file: its position goes
// back. SQLite itself, in this process or another one, only writes later pages.
func (w *writer) checkFile() error {
	is, err := w.file.Stat()
	if err != nil {
		return err
	}
	if s := w.log.seen; s != nil && is.ModTime().Equal(s.ModTime()) && is.Size() == s.Size() {
		return nil
	}
	merged, err := mergedPosition(context.Background(), w.file.Name(), w.log.journal)
	if err == nil && merged.Before(w.log.merged) {
		return errOlderFile
	}
	if err == nil { // else it is damaged, or being written: whoever reads it says so
		w.log.merged, w.log.seen, w.log.mayBegin = merged, is, true
	}
	return nil
}

// noteLogStart says in the log at which position it was begun.
func (w *writer) noteLogStart() error {
	p := w.log.unnoted
	if p == (storage.Position{}) {
		return nil
	}
	_, err := w.c.exec("INSERT OR REPLACE INTO log_starts (journal, segment, ordinal) VALUES (?, ?, ?)", w.log.journal[:], int64(p.Segment), int64(p.Ordinal))
	if err == nil {
		w.log.unnoted = storage.Position{}
	}
	return err
}
