package columnar

import (
	"slices"
	"testing"
)

// propertySource has one property, and counts the keys that are read.
type propertySource struct {
	Source
	values map[int64]uint32
	read   int
}

func (s *propertySource) Properties(_ string, from, to int64, each func(key int64, value uint32)) error {
	for n := from; n <= to; n++ {
		if v, found := s.values[n]; found {
			s.read++
			each(n, v)
		}
	}
	return nil
}

// The values of a row of the tail are read once. A copy that was made before a row was deleted has
// its value all the same.
func TestTailProperties(t *testing.T) {
	tail := New("").NewTail(0)
	source := &propertySource{values: make(map[int64]uint32)}
	begin := func(n int64, value uint32) {
		tail.chunk().Begin(n, 1)
		source.values[n] = value
	}
	check := func(at *Tail, want ...uint32) {
		t.Helper()
		c := &at.chunks[0]
		got, err := c.tail.column(c, "Tenant", source)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, %v; want %v", got, err, want)
		}
	}
	begin(1, 11)
	begin(2, 12)
	older := tail.Copy()
	check(older, 11, 12)
	begin(3, 13)
	old := tail.Copy()
	check(old, 11, 12, 13)
	check(older, 11, 12)
	if source.read != 3 {
		t.Errorf("%d values were read, want 3", source.read)
	}
	begin(4, 14)
	beforeDeletion := tail.Copy()
	tail.remove(4)
	delete(source.values, 4)
	begin(5, 15)
	check(tail.Copy(), 11, 12, 13, 0, 15)
	source.values[4] = 14 // as the copy's transaction sees it
	check(beforeDeletion, 11, 12, 13, 14)
	check(tail.Copy(), 11, 12, 13, 0, 15)
}
