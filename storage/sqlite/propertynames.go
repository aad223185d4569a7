package sqlite

import (
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/storage"
)

// groupPropertyNames answers a query that counts by the names of properties, and
// perhaps by other dimensions separately.
func groupPropertyNames(q *storage.GroupQuery, x *rows, each func(*storage.GroupTotals) error) error {
	part := func(rows storage.Rows, sets []int) error {
		narrowed := *q
		narrowed.By = nil
		for _, set := range sets {
			narrowed.By = append(narrowed.By, q.By[set])
		}
		return storage.GroupRows(&narrowed, rows, func(g *storage.GroupTotals) error {
			whole := *g
			whole.Set = sets[g.Set]
			return each(&whole)
		})
	}
	var others []int
	for set, d := range q.By {
		if d.Name != storage.ByPropertyName {
			others = append(others, set)
		} else if err := part(newPropertyRows(x), []int{set}); err != nil {
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
	names  []string // by group from 1
	groups map[string]int
	// groupsOf are the groups of the requests that have the same properties, by the
	// number of propertyNames.
	groupsOf [][]int
}

func newPropertyRows(x *rows) *propertyRows {
	return &propertyRows{
		rows:   &rows{ctx: x.ctx, r: x.r, contents: x.contents, org: x.org, orgID: x.orgID, tail: x.tail, files: x.files},
		groups: make(map[string]int),
	}
}

// Scan gives each the chosen requests once for each of their properties.
func (x *propertyRows) Scan(f storage.Filter, w storage.Window, _ storage.RowParts, each func(*storage.Row) bool) error {
	sets := x.textDimension(propertyNamesColumn)
	x.dimensions = []dimension{sets}
	return x.rows.Scan(f, w, storage.CountParts, func(r *storage.Row) bool {
		set := r.Groups[0]
		for set >= len(x.groupsOf) {
			x.groupsOf = append(x.groupsOf, x.groupsIn(sets.key(len(x.groupsOf)).ID))
		}
		for _, group := range x.groupsOf[set] {
			r.Groups[0] = group
			if !each(r) {
				return false
			}
		}
		return true
	})
}

// groupsIn are the groups of the names in a text of propertyNames.
func (x *propertyRows) groupsIn(text string) (groups []int) {
	gjson.Parse(text).ForEach(func(_, name gjson.Result) bool {
		group := x.groups[name.Str]
		if group == 0 {
			x.names = append(x.names, name.Str)
			group = len(x.names)
			x.groups[name.Str] = group
		}
		groups = append(groups, group)
		return true
	})
	return groups
}

// Key is the name of a property.
func (x *propertyRows) Key(_, group int) storage.Key { return storage.Key{ID: x.names[group-1]} }
