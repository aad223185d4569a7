package sqlite

import (
	"database/sql/driver"
	"slices"
	"strings"

	"github.com/weirhq/weir/storage"
)

// groupPropertyNames answers a query that counts by the names of properties, and
// maybe by other dimensions apart.
func groupPropertyNames(q *storage.GroupQuery, x *rows, each func(*storage.GroupTotals) error) error {
	part := func(rows storage.Rows, sets []int) error {
		apart := *q
		apart.By = nil
		for _, set := range sets {
			apart.By = append(apart.By, q.By[set])
		}
		return storage.GroupRows(&apart, rows, func(g *storage.GroupTotals) error {
			whole := *g
			whole.Set = sets[g.Set]
			return each(&whole)
		})
	}
	var others []int
	for set, d := range q.By {
		if d.Name != storage.ByPropertyName {
			others = append(others, set)
		} else if err := part(&propertyRows{rows: &rows{ctx: x.ctx, r: x.r, contents: x.contents, org: x.org, table: x.table, loader: x.loader}}, []int{set}); err != nil {
			return err
		}
	}
	if len(others) == 0 {
		return nil
	}
	return part(x, others)
}

// propertyRows are storage.Rows of which a request has one for each of its
// properties, grouped by their names. They have CountParts alone.
type propertyRows struct {
	*rows
	kinds []string // of names, by group from 1
}

// Scan looks for the chosen requests among those of each property.
func (x *propertyRows) Scan(f storage.Filter, w storage.Window, _ storage.RowParts, each func(*storage.Row) bool) error {
	chosen := new(keySet)
	x.dimensions = []dimension{{number: func(c *chunk, row int) int {
		chosen.keys = append(chosen.keys, c.n[row])
		return 0
	}}}
	err := x.rows.Scan(f, w, storage.CountParts, func(*storage.Row) bool { return true })
	if err != nil || len(chosen.keys) == 0 {
		return err
	}
	slices.Sort(chosen.keys)
	first, last := chosen.keys[0], chosen.keys[len(chosen.keys)-1]
	if x.kinds == nil {
		const query = "SELECT DISTINCT kind FROM names WHERE kind >= ? AND kind < ?"
		err := x.r.c.query(x.ctx, query, []driver.Value{propertyKind(""), propertyKind("\U0010FFFF")}, func(row []driver.Value) error {
			x.kinds = append(x.kinds, row[0].(string))
			return nil
		})
		if err != nil {
			return err
		}
	}
	r := &storage.Row{Groups: []int{0}}
	for i, kind := range x.kinds {
		r.Groups[0] = i + 1
		const query = "SELECT n FROM labels WHERE label IN (SELECT id FROM names WHERE kind = ?) AND n BETWEEN ? AND ?"
		err := x.r.c.query(x.ctx, query, []driver.Value{kind, first, last}, func(row []driver.Value) error {
			if n := row[0].(int64); chosen.has(n) {
				r.CreatedAt = createdAt(n)
				if !each(r) {
					return errStop
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Key is the name of a property.
func (x *propertyRows) Key(_, group int) storage.Key {
	return storage.Key{ID: strings.TrimPrefix(x.kinds[group-1], propertyKind(""))}
}
