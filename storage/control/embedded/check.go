package embedded

import (
	"database/sql"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/weirhq/weir/internal/libsqlite"
	"github.com/weirhq/weir/storage/journal"
)

// reach is how far a file reaches: events are never deleted.
func reach(db *sql.DB) (is journal.Reach, err error) {
	var events int
	if err := db.QueryRow("SELECT count(*) FROM sqlite_master WHERE name = 'events'").Scan(&events); err != nil {
		return is, err
	}
	is.Size = 1
	if events == 0 { // empty, or of version 1
		return is, nil
	}
	var first string
	err = db.QueryRow("SELECT 1 + coalesce(max(n), 0), coalesce((SELECT id FROM events ORDER BY n LIMIT 1), '') FROM events").Scan(&is.Size, &first)
	is.ID = crc32.ChecksumIEEE([]byte(first)) // 0 of ""
	return is, err
}

// compare compares the file with what the journal knows of it.
func (l *Log) compare() error {
	if l.journal == nil {
		return nil
	}
	is, err := reach(l.db)
	if err != nil {
		return err
	}
	return l.journal.Witness().Compare(FileName, is)
}

// refuse returns why the file cannot be used, and tells the journal if an operator has to decide.
func (l *Log) refuse(path string, err error) error {
	if !damaged(err) {
		return fmt.Errorf("%s: %w", path, err)
	}
	refused := &journal.RefusedFileError{Path: path, Found: "is damaged"}
	if l.journal != nil {
		l.journal.Witness().Damaged(FileName, refused.Found+": what depends on it is refused")
	}
	return fmt.Errorf("%w: %w", refused, err)
}

// damaged reports whether an error says that a file is no database, or a broken one.
func damaged(err error) bool {
	code := libsqlite.Code(err)
	return code == libsqlite.NotADB || code == libsqlite.Corrupt || errors.Is(err, errChecksum)
}

// Forget moves a damaged file of a directory that no process uses aside, so that the next start
// begins a new one. It reports whether the file was damaged.
func Forget(dir string) (bool, error) {
	path := filepath.Join(dir, FileName)
	if !damaged(Check(dir, journal.Reach{})) {
		return false, nil
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Rename(path+suffix, path+".damaged"+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return true, err
		}
	}
	return true, os.Rename(path, path+".damaged")
}

// note tells the journal how far the file reaches.
func (l *Log) note() {
	if l.journal == nil {
		return
	}
	if is, err := reach(l.db); err == nil { // else the next change tells
		l.journal.Witness().Note(FileName, is)
	}
}

// Check reads the file of a directory that no process uses, and changes nothing. was is how far
// the file must reach, zero if it need not be there.
func Check(dir string, was journal.Reach) error {
	path := filepath.Join(dir, FileName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return journal.CompareReach(dir, FileName, journal.Reach{}, was)
	}
	db, err := sql.Open(libsqlite.Name, libsqlite.URI(path, libsqlite.ReadOnly(path)))
	if err != nil {
		return err
	}
	defer db.Close()
	var found string
	if err := db.QueryRow("PRAGMA integrity_check(1)").Scan(&found); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if found != "ok" {
		return fmt.Errorf("%s: the integrity check says: %s", path, found)
	}
	is, err := reach(db)
	if err == nil && is.Size > 1 {
		err = verifyChecksums(db)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return journal.CompareReach(dir, FileName, is, was)
}
