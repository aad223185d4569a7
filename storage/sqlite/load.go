package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"math"
	"runtime"
	"strings"
)

// loader reads requests into chunks.
type loader struct {
	ctx context.Context
	r   reader
}

// query looks at the context now and then, not at each row as the driver does,
// which would cost a tenth. The rows lie one behind the other, and each is wanted.
func (l loader) query(query string, args []driver.Value, each func(row []driver.Value) error) error {
	if err := l.ctx.Err(); err != nil {
		return err
	}
	rows := 0
	return l.r.c.query(context.WithoutCancel(l.ctx), query, args, func(row []driver.Value) error {
		if rows++; rows%loadedBetweenChecks == 0 {
			if err := l.ctx.Err(); err != nil {
				return err
			}
			runtime.Gosched()
		}
		return each(row)
	})
}

// loadedBetweenChecks is the number of rows that are read between two looks at the
// context: a few milliseconds.
const loadedBetweenChecks = 2 << 10

var (
	loadColumns = "SELECT n, org, " + strings.Join(cachedNames[:], ", ") + " FROM requests WHERE "
	loadRange   = loadColumns + "n > ? AND n <= ? ORDER BY n LIMIT ?"
	loadKeys    = loadColumns + "n IN (SELECT value FROM json_each(?)) ORDER BY n"
)

// between gives room the requests from behind a key to another one, at most so many.
func (l loader) between(after, to int64, limit int, room func() *chunk) (rows int, err error) {
	return l.rows(loadRange, []driver.Value{after, to, int64(limit)}, room)
}

// keys gives room those of the requests that exist.
func (l loader) keys(keys []int64, room func() *chunk) error {
	_, err := l.rows(loadKeys, []driver.Value{compactJSON(keys)}, room)
	return err
}

func (l loader) rows(query string, args []driver.Value, room func() *chunk) (rows int, err error) {
	err = l.query(query, args, func(row []driver.Value) error {
		c := room()
		c.begin(row[0].(int64), uint32(row[1].(int64)))
		for i, v := range row[2:] {
			if id, ok := v.(int64); ok && cachedColumns[i].names != "" && id > math.MaxUint32 {
				return fmt.Errorf("the name %d is one too many for analytics: export the records to a new store", id)
			}
			c.keep(i, v)
		}
		rows++
		return nil
	})
	return rows, err
}
