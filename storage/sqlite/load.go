package sqlite

import (
	"context"
	"database/sql/driver"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/weirhq/weir/storage/columnar"
)

// loader reads requests into chunks.
type loader struct {
	ctx context.Context
	r   reader
}

// query looks at the context now and then, not at each row as the driver does,
// which would cost a tenth. The rows lie one after the other, and each is wanted.
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
	loadColumns = "SELECT n, org, " + strings.Join(columnar.Columns[:], ", ") + " FROM requests WHERE "
	loadRange   = loadColumns + "n > ? AND n <= ? ORDER BY n LIMIT ?"
	loadKeys    = loadColumns + "n IN (SELECT value FROM json_each(?)) ORDER BY n"
)

// Between implements columnar.Requests.
func (l loader) Between(after, to int64, limit int, chunk func() *columnar.Chunk) (rows int, err error) {
	return l.rows(loadRange, []driver.Value{after, to, int64(limit)}, chunk)
}

// Keys implements columnar.Requests.
func (l loader) Keys(keys []int64, chunk func() *columnar.Chunk) error {
	_, err := l.rows(loadKeys, []driver.Value{compactJSON(keys)}, chunk)
	return err
}

func (l loader) rows(query string, args []driver.Value, chunk func() *columnar.Chunk) (rows int, err error) {
	err = l.query(query, args, func(row []driver.Value) error {
		c := chunk()
		c.Begin(row[0].(int64), uint32(row[1].(int64)))
		for i, v := range row[2:] {
			if err := c.Keep(i, v); err != nil {
				return err
			}
		}
		rows++
		return nil
	})
	return rows, err
}

// scores calls each with the scores of requests between two keys.
func (l loader) scores(from, to int64, each func(columnar.Score)) error {
	return l.query("SELECT n, name, value FROM scores WHERE name IN (SELECT id FROM names WHERE kind = ?) AND n BETWEEN ? AND ?",
		[]driver.Value{scoreKind, from, to}, func(row []driver.Value) error {
			each(columnar.Score{Key: row[0].(int64), Name: uint32(row[1].(int64)), Value: row[2].(float64)})
			return nil
		})
}

// annotations gives a chunk the columns of at most limit of its properties, and of as many scores.
func (l loader) annotations(c *columnar.Chunk, limit int) error {
	if err := l.properties(c, limit); err != nil {
		return err
	}
	var scores []columnar.Score
	low, high := c.Bounds()
	err := l.scores(low, high, func(s columnar.Score) { scores = append(scores, s) })
	c.SetScores(scores, limit)
	return err
}

// properties gives a chunk the columns of at most limit of its properties.
func (l loader) properties(c *columnar.Chunk, limit int) error {
	var labels []columnar.Property
	kinds := make(map[int64]string)
	low, high := c.Bounds()
	err := l.query("SELECT n, label FROM labels WHERE "+inBuckets+" AND n BETWEEN ? AND ?",
		[]driver.Value{bucketOf(low), bucketOf(high), low, high}, func(row []driver.Value) error {
			id := row[1].(int64)
			labels = append(labels, columnar.Property{Key: row[0].(int64), Value: uint32(id)})
			kinds[id] = ""
			return nil
		})
	if err != nil {
		return err
	}
	ids := slices.Collect(maps.Keys(kinds))
	err = l.query("SELECT id, kind FROM names WHERE id IN (SELECT value FROM json_each(?))", []driver.Value{compactJSON(ids)}, func(row []driver.Value) error {
		kinds[row[0].(int64)] = row[1].(string)
		return nil
	})
	properties := labels[:0]
	for _, p := range labels {
		var isProperty bool // or an asset
		if p.Name, isProperty = strings.CutPrefix(kinds[int64(p.Value)], propertyKind("")); isProperty {
			properties = append(properties, p)
		}
	}
	c.SetProperties(properties, limit)
	return err
}
