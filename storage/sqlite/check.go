package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// CheckFile implements storage.Checker.
func (*Storage) CheckFile(ctx context.Context, path string, journal uuid.UUID, match func(*storage.Record)) (p storage.Position, err error) {
	if errDriver != nil {
		return p, errDriver
	}
	if _, err := os.Stat(path); err != nil {
		return p, err
	}
	parameters := url.Values{"mode": {"ro"}}
	if log, err := os.Stat(path + "-wal"); err != nil || log.Size() == 0 {
		parameters.Set("immutable", "1") // SQLite needs no file beside it then, which a read-only directory would refuse
	}
	c, err := open(path, parameters, "PRAGMA query_only = ON", "PRAGMA temp_store = MEMORY")
	if err == nil {
		p, err = checkAll(ctx, c, journal, match)
		err = errors.Join(err, c.Close())
	}
	if err != nil {
		return p, fmt.Errorf("%s: %w", path, explain(err))
	}
	return p, nil
}

func checkAll(ctx context.Context, c *conn, journal uuid.UUID, match func(*storage.Record)) (p storage.Position, err error) {
	err = c.query(ctx, "PRAGMA integrity_check(1)", nil, func(row []driver.Value) error {
		if found := fmt.Sprint(row[0]); found != "ok" {
			return fmt.Errorf("the integrity check says: %s; `sqlite3 <file> .recover` can save what is readable", found)
		}
		return nil
	})
	if err != nil {
		return p, err
	}
	err = c.query(ctx, `SELECT r.request_id, r.n, d.content_segment, d.content_ordinal FROM requests r LEFT JOIN details d ON d.n = r.n`, nil, func(row []driver.Value) error {
		r := &storage.Record{CreatedAt: createdAt(row[1].(int64))}
		copy(r.ID[:], row[0].([]byte))
		if segment, there := row[2].(int64); there {
			ordinal, _ := row[3].(int64)
			r.Content = storage.ContentRef{Segment: uint64(segment), Ordinal: uint32(ordinal)}
		}
		match(r)
		return nil
	})
	if err != nil {
		return p, err
	}
	return c.position(ctx, journal)
}

// position is how far a journal has been written to the database.
func (c *conn) position(ctx context.Context, journal uuid.UUID) (p storage.Position, err error) {
	err = c.query(ctx, "SELECT segment, ordinal FROM journals WHERE journal = ?", []driver.Value{journal[:]}, func(row []driver.Value) error {
		p = storage.Position{Segment: uint64(row[0].(int64)), Ordinal: uint32(row[1].(int64))}
		return nil
	})
	return p, err
}

var _ storage.Checker = (*Storage)(nil)
