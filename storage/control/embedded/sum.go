package embedded

import (
	"database/sql"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/weirhq/weir/storage/control"
)

// SQLite reads a flipped bit as another value: a budget of 90 dollars for one of 10. Each object
// therefore has a sum. One that an earlier version of Weir wrote has none, and a trigger takes the sum
// from one that such a version, or a person, has changed since.

var errSum = errors.New("is damaged: an object is not as it was written")

const sumTrigger = `
CREATE TRIGGER IF NOT EXISTS objects_edited AFTER UPDATE OF id, org, kind, value ON objects WHEN NEW.sum IS OLD.sum
	BEGIN UPDATE objects SET sum = NULL WHERE n = NEW.n; END;`

// sumOf returns the sum of an object.
func sumOf(id, org, kind string, value []byte) int64 {
	return int64(crc32.ChecksumIEEE(fmt.Appendf(nil, "%q %q %q %s", id, org, kind, value)))
}

// hasSums reports whether a file has the column of the sums.
func hasSums(from interface{ QueryRow(string, ...any) *sql.Row }) (has bool, err error) {
	err = from.QueryRow("SELECT count(*) FROM pragma_table_info('objects') WHERE name = 'sum'").Scan(&has)
	return has, err
}

// addSums makes the column of the sums.
func addSums(tx *sql.Tx) error {
	has, err := hasSums(tx)
	if err == nil && !has {
		_, err = tx.Exec("ALTER TABLE objects ADD COLUMN sum INTEGER")
	}
	if err == nil {
		_, err = tx.Exec(sumTrigger)
	}
	return err
}

// checkSums compares the sums of all objects. A file of an earlier version has none.
func checkSums(db *sql.DB) error {
	if has, err := hasSums(db); err != nil || !has {
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
		if sum != sumOf(id, org, kind, value) {
			return fmt.Errorf("%s %w", id, errSum)
		}
	}
	return rows.Err()
}

// compareSum compares the sum of an object that was read with the one that was written, if there is one,
// and tells the journal if they differ.
func (l *Log) compareSum(o *control.Object, org string, written sql.NullInt64) error {
	if !written.Valid || written.Int64 == sumOf(o.ID, org, string(o.Kind), o.Value) {
		return nil
	}
	return l.refuse(l.path, fmt.Errorf("%s %w", o.ID, errSum))
}
