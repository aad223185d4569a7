package columnar

import (
	"cmp"

	"github.com/weirhq/weir/storage"
)

// textGroups numbers the ids of names that a scan meets, from 1.
type textGroups struct {
	x      *rows
	groups storage.Pages[uint32] // by id
	ids    storage.Pages[uint32] // by group; the first is no text
	len    int
}

func newTextGroups(x *rows) *textGroups { return &textGroups{x: x, len: 1} }

// number is the group of an id, 0 of 0.
func (t *textGroups) number(id uint32) int {
	if id == 0 {
		return 0
	}
	group := t.groups.At(int(id))
	if *group == 0 {
		*group = uint32(t.add(id))
	}
	return int(*group)
}

// numbers sets the groups of rows by a column of ids, nil if no row has one.
func (t *textGroups) numbers(column []uint32, rows []int32, groups []int) {
	if column == nil {
		clear(groups)
		return
	}
	last, group := uint32(0), 0
	for i, row := range rows {
		if id := column[row]; id != last {
			last, group = id, t.number(id)
		}
		groups[i] = group
	}
}

// add makes the next group, of an id.
func (t *textGroups) add(id uint32) (group int) {
	group = t.len
	*t.ids.At(group) = id
	t.len++
	if err := t.x.turn.grow(group); t.x.failed == nil {
		t.x.failed = err
	}
	return group
}

// textsOf are the texts of groups.
func (t *textGroups) textsOf(groups []int) []string {
	ids := make([]uint32, len(groups))
	for i, group := range groups {
		ids[i] = *t.ids.At(group)
	}
	texts, err := t.x.source.Texts(ids)
	if err != nil {
		t.x.failed = cmp.Or(t.x.failed, err)
		texts = make([]string, len(groups))
	}
	return texts
}

// keys are the texts of groups as keys.
func (t *textGroups) keys(groups []int) []storage.Key {
	keys := make([]storage.Key, len(groups))
	for i, text := range t.textsOf(groups) {
		keys[i].ID = text
	}
	return keys
}
