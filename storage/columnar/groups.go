package columnar

import "github.com/weirhq/weir/storage"

// groupTable numbers the values of a dimension from 1, in the order in which they come; 0 is of no
// value. It is for values of which few have the same lower 32 bits.
type groupTable struct {
	groups storage.Pages[uint32] // by the lower bits, of the first value that has them
	others map[uint64]uint32     // the groups of all other values
	values storage.Pages[uint64] // by group
	len    int                   // the last group
}

// groupBytes are what a group takes in a table.
const groupBytes = 12

// maxDirect bounds the lower bits that have an entry in pages.
const maxDirect = 1 << 28

// number is the group of a value.
func (t *groupTable) number(v uint64) int {
	low := uint32(v)
	if low < maxDirect {
		group := t.groups.At(int(low))
		if *group == 0 {
			*group = uint32(t.add(v))
		}
		if *t.values.At(int(*group)) == v {
			return int(*group)
		}
	}
	if t.others == nil {
		t.others = make(map[uint64]uint32)
	}
	group := t.others[v]
	if group == 0 {
		group = uint32(t.add(v))
		t.others[v] = group
	}
	return int(group)
}

func (t *groupTable) add(v uint64) (group int) {
	t.len++
	*t.values.At(t.len) = v
	return t.len
}

// list returns the values of all groups in order.
func (t *groupTable) list() []uint64 {
	values := make([]uint64, t.len)
	for i := range values {
		values[i] = *t.values.At(1 + i)
	}
	return values
}

// clear forgets all values.
func (t *groupTable) clear() {
	for group := 1; group <= t.len; group++ {
		if low := uint32(*t.values.At(group)); low < maxDirect {
			*t.groups.At(int(low)) = 0
		}
	}
	clear(t.others)
	t.len = 0
}
