package embedded

import (
	"database/sql"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/weirhq/weir/storage/control"
)

// Each object has a checksum, because SQLite does not detect a flipped bit: it would read a budget of
// 10 dollars as one of 90. An object has no checksum if an earlier version of Weir wrote it, or if somebody
// edited it with SQL.

var errChecksum = errors.New("is damaged: an object is not as it was written")

// checksumTrigger removes the checksum of an object that is edited without a new one.
const checksumTrigger = `
CREATE TRIGGER IF NOT EXISTS objects_edited AFTER UPDATE OF id, org, kind, value ON objects WHEN NEW.sum IS OLD.sum
	BEGIN UPDATE objects SET sum = NULL WHERE n = NEW.n; END;`

// checksumOf returns the CRC-32 of an object. It tells damage, not an attack.
func checksumOf(id, org, kind string, value []byte) int64 {
	return int64(crc32.ChecksumIEEE(fmt.Appendf(nil, "%q %q %q %s", id, org, kind, value)))
}

// hasChecksums reports whether a database has the column of the checksums.
func hasChecksums(from interface{ QueryRow(string, ...any) *sql.Row }) (has bool, err error) {
	err = from.QueryRow("SELECT count(*) FROM pragma_table_info('objects') WHERE name = 'sum'").Scan(&has)
	return has, err
}

// addChecksums adds the column and the trigger. Existing objects stay without a checksum.
func addChecksums(tx *sql.Tx) error {
	has, err := hasChecksums(tx)
	if err == nil && !has {
		_, err = tx.Exec("ALTER TABLE objects ADD COLUMN sum INTEGER")
	}
	if err == nil {
		_, err = tx.Exec(checksumTrigger)
	}
	return err
}

// verifyChecksums verifies all objects that have a checksum.
func verifyChecksums(db *sql.DB) error {
	if has, err := hasChecksums(db); err != nil || !has {
		return err
	}
	rows, err := db.Query("SELECT id, org, kind, value, sum FROM objects WHERE sum IS NOT NULL")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id, org, kind string
		var value []byte
		var sum int64
		if err := rows.Scan(&id, &org, &kind, &value, &sum); err != nil {
			return err
		}
		if sum != checksumOf(id, org, kind, value) {
			return fmt.Errorf("%s %w", id, errChecksum)
		}
	}
	return rows.Err()
}

// verifyChecksum verifies an object that was read. written is its checksum, NULL if it has none. If they
// differ, the journal is told of the damage.
func (l *Log) verifyChecksum(o *control.Object, org string, written sql.NullInt64) error {
	if !written.Valid || written.Int64 == checksumOf(o.ID, org, string(o.Kind), o.Value) {
		return nil
	}
	return l.refuse(l.path, fmt.Errorf("%s %w", o.ID, errChecksum))
}
