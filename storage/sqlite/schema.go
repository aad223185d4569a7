package sqlite

import (
	"context"
	"database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/weirhq/weir/storage"
)

// migrations lead from one version of the schema to the next: the first from an
// empty database to version 1, and so on. The version is SQLite's user_version. They
// never change. addColumns adds columns for values of records that came later, and
// addIndexes adds indexes for details that filters look up.
//
//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the schema up to date, each version in a transaction of its own, and the
// columns in the last.
func (c *conn) migrate(ctx context.Context) error {
	steps, err := migrations.ReadDir("migrations")
	if err != nil {
		return err
	}
	version, err := c.integer(ctx, "PRAGMA user_version")
	if err != nil {
		return err
	}
	if version < 0 {
		return fmt.Errorf("the schema has version %d: %w", version, errDamaged)
	}
	if version > int64(len(steps)) {
		return fmt.Errorf("the schema has version %d, and this Weir knows versions up to %d: use a newer Weir: %w", version, len(steps), storage.ErrRejected)
	}
	if version > 0 {
		journals, err := c.integer(ctx, "SELECT count(*) FROM sqlite_master WHERE name = 'journals'")
		if err != nil {
			return err
		}
		if journals == 0 {
			return fmt.Errorf("the database was made by a Weir from before 0.1.0, whose tables were others: move it away, with its directory, and start with a new one: %w", storage.ErrRejected)
		}
	}
	for i := int(version); i < len(steps); i++ {
		step, err := migrations.ReadFile("migrations/" + steps[i].Name())
		if err != nil {
			return err
		}
		err = c.transaction(ctx, func() error {
			if _, err := c.ExecContext(ctx, string(step), nil); err != nil {
				return err
			}
			// A pragma takes no parameters.
			_, err := c.exec(fmt.Sprintf("PRAGMA user_version = %d", i+1))
			return err
		})
		if err != nil {
			return fmt.Errorf("migrating the schema to version %d: %w", i+1, err)
		}
	}
	return c.transaction(ctx, func() error {
		_, err := c.exec(spanKeys)
		if err == nil {
			_, err = c.exec(logStarts)
		}
		for table, columns := range summedTables {
			err = errors.Join(err, c.addColumns(ctx, table, columns))
		}
		return errors.Join(err, c.addIndexes(), c.addTrigger("requests"), c.addTrigger("details"), c.addColumnTriggers())
	})
}

// addTrigger has a row lose its sum when somebody changes the row by hand. Weir itself only
// inserts and deletes rows of these tables.
func (c *conn) addTrigger(table string) error {
	_, err := c.exec("CREATE TRIGGER IF NOT EXISTS " + table + "_edited AFTER UPDATE ON " + table +
		" WHEN NEW." + sumColumn + " IS OLD." + sumColumn + " BEGIN UPDATE " + table + " SET " + sumColumn + " = NULL WHERE n = NEW.n; END")
	if err != nil {
		return fmt.Errorf("adding the trigger of %s: %w", table, err)
	}
	return nil
}

// addColumnTriggers has the column files know of new requests and of scores. The first trigger of new requests
// said OR IGNORE, which could abort: SQLite copied each page that an insert changed, to undo the one insert.
// These cannot abort, nor can insertRequest (https://sqlite.org/lang_conflict.html).
func (c *conn) addColumnTriggers() error {
	_, err := c.exec("DROP TRIGGER IF EXISTS requests_inserted")
	for _, x := range [...]struct{ name, event, table, row string }{
		{"requests_added", "INSERT", "requests", "NEW"},
		{"scores_INSERT", "INSERT", "scores", "NEW"}, {"scores_DELETE", "DELETE", "scores", "OLD"}, {"scores_UPDATE", "UPDATE", "scores", "NEW"},
	} {
		if err == nil {
			_, err = c.exec("CREATE TRIGGER IF NOT EXISTS " + x.name + " AFTER " + x.event + " ON " + x.table +
				" WHEN " + x.row + ".n > (SELECT after FROM column_chunks WHERE last >= " + x.row + ".n ORDER BY last LIMIT 1)" +
				" BEGIN INSERT INTO column_changes VALUES (" + x.row + ".n) ON CONFLICT DO NOTHING; END")
		}
	}
	if err != nil {
		return fmt.Errorf("adding the triggers of column files: %w", err)
	}
	return nil
}

// addColumns adds the columns that a table lacks, as the schema of records has more of
// them than the migrations. Older versions of Weir write rows without these.
func (c *conn) addColumns(ctx context.Context, table string, columns []column) error {
	missing, err := c.missing(ctx, table, columns)
	for _, x := range missing {
		if err == nil {
			_, err = c.exec("ALTER TABLE " + table + " ADD COLUMN " + x.name + " " + x.definition)
		}
	}
	if err != nil {
		return fmt.Errorf("adding columns to %s: %w", table, err)
	}
	return nil
}

// missing are the columns that a table lacks. A table that has one under a name that differs by a
// bit is damaged.
func (c *conn) missing(ctx context.Context, table string, columns []column) ([]column, error) {
	existing := make(map[string]bool)
	err := c.query(ctx, "SELECT name FROM pragma_table_info(?)", []driver.Value{table}, func(row []driver.Value) error {
		existing[row[0].(string)] = true
		return nil
	})
	missing := slices.DeleteFunc(slices.Clone(columns), func(x column) bool { return existing[x.name] })
	for _, x := range missing {
		for name := range existing {
			if err == nil && differByBit(name, x.name) {
				err = fmt.Errorf("the column %s of %s is named %q: %w", x.name, table, name, errDamaged)
			}
		}
	}
	return missing, err
}

func differByBit(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	n := 0
	for i := range len(a) {
		n += bits.OnesCount8(a[i] ^ b[i])
	}
	return n == 1
}

// hasColumns reports whether the tables have all columns. Those of an earlier version of Weir have
// fewer, until this version opens the database.
func (c *conn) hasColumns(ctx context.Context) (bool, error) {
	var all int
	for table, columns := range summedTables {
		missing, err := c.missing(ctx, table, columns)
		if err != nil {
			return false, err
		}
		all += len(missing)
	}
	return all == 0, nil
}

// isRun is the condition of the details of what runs in the background. The ids of these have
// an index of their own, because the index of responses and batches is the index of 0.1.0.
const isRun = "dialect IN ('runs', 'interactions')"

// withContent is the index of the records that have content, by the segment of the content and in
// the order of time. A search rules out content by it, and reads the details of the rest.
const withContent = "details_segment"

// addIndexes adds the index of runs, the index of content, the index of the records that have added
// items to conversations, and the indexes of the details that filters look up. The
// values of these details are random: with buckets of time in the index, a batch writes only to
// the few pages of the newest bucket.
func (c *conn) addIndexes() error {
	if _, err := c.exec("CREATE INDEX IF NOT EXISTS details_run ON details (response_id) WHERE " + isRun); err != nil {
		return fmt.Errorf("adding the index of runs: %w", err)
	}
	if _, err := c.exec("DROP INDEX IF EXISTS details_content"); err != nil { // of an earlier version, by time alone
		return fmt.Errorf("removing the former index of content: %w", err)
	}
	if _, err := c.exec("CREATE INDEX IF NOT EXISTS " + withContent + " ON details (content_segment, n, content_ordinal) WHERE content_segment IS NOT NULL"); err != nil {
		return fmt.Errorf("adding the index of content: %w", err)
	}
	if _, err := c.exec("CREATE INDEX IF NOT EXISTS conversation_items_record ON conversation_items (record) WHERE record IS NOT NULL"); err != nil {
		return fmt.Errorf("adding the index of the items of records: %w", err)
	}
	for _, x := range storage.DetailColumns {
		if !x.Filter {
			continue
		}
		if _, err := c.exec("CREATE INDEX IF NOT EXISTS details_" + x.Name + " ON details (n >> 43, " + x.Name + ") WHERE " + x.Name + " IS NOT NULL"); err != nil {
			return fmt.Errorf("adding the index of %s: %w", x.Name, err)
		}
	}
	return nil
}
