package columnar

import (
	"fmt"
	"testing"

	"github.com/weirhq/weir/storage"
)

// TestMemory holds that the answers that were used last are remembered, that files are forgotten
// with all their answers, and that no answer takes the place of all others.
func TestMemory(t *testing.T) {
	const size = 1000
	m := newMemory(256 * (size + rememberedBytes + len("499")))
	for i := range 1000 {
		if !m.put(fmt.Sprint(i/2), question{byte(i % 2)}, i, size) {
			t.Fatalf("answer %d is too large", i)
		}
		if m.get("0", question{0}) != 0 {
			t.Fatalf("the answer that is used most is forgotten for answer %d", i)
		}
		if m.size > m.limit || m.recent.Len() > 257 { // names of files are short at first
			t.Fatalf("%d answers of %d bytes are remembered", m.recent.Len(), m.size)
		}
	}
	if got := m.get("499", question{1}); got != 999 {
		t.Errorf("the last answer is %v", got)
	}
	if m.get("1", question{0}) != nil {
		t.Error("an answer that nobody used is remembered")
	}
	m.put("499", question{1}, "changed", 1)
	if got := m.get("499", question{1}); got != "changed" {
		t.Errorf("the answer that took another's place is %v", got)
	}
	if m.put("a", question{}, 1, size+len("499")) || m.get("a", question{}) != nil {
		t.Error("an answer is remembered that is too large")
	}
	for i := range 500 {
		m.forget(fmt.Sprint(i))
	}
	if m.size != 0 || m.recent.Len() != 0 || len(m.byFile) != 0 {
		t.Errorf("%d bytes are left of files that are forgotten", m.size)
	}
}

// TestGroupTable holds that each value has its own number, whatever its lower bits, and that a cleared
// table begins anew.
func TestGroupTable(t *testing.T) {
	var table groupTable
	values := []uint64{0, 7, 7 | 1<<32, 1<<63 | 7, maxDirect - 1, maxDirect, 1<<64 - 1, 1 << 32}
	for range 2 {
		for range 2 {
			for i, v := range values {
				if got := table.number(v); got != 1+i {
					t.Errorf("value %d of %x has the number %d", i, v, got)
				}
			}
		}
		if got := table.list(); fmt.Sprint(got) != fmt.Sprint(values) {
			t.Errorf("the values are %x", got)
		}
		table.clear()
		values = append(values[3:], values[:3]...)
	}
}

// sized are sums of a size.
type sized int

func (sized) Add(*storage.RowBatch) bool { return true }
func (s sized) Size() int                { return int(s) }
func (s sized) End() int                 { return int(s) }

// TestLargePartsAreFinished holds that a goroutine adds up a part no further once it is large, by its
// groups or by what it has of few groups.
func TestLargePartsAreFinished(t *testing.T) {
	for _, test := range []struct {
		sums     sized
		groups   int
		finished bool
	}{
		{largePart / 2, 1, false},
		{largePart + 1, 1, true},
		{0, largePart/groupBytes + 1, true},
	} {
		merged := false
		s := &scan{
			sharedScan: &sharedScan{rows: &rows{}, Scan: &storage.Scan{Merge: func(storage.PartialSums, [][]int) bool { merged = true; return true }, Among: [][]int{}}},
			sums:       test.sums, tables: []groupTable{{len: test.groups}},
		}
		s.finishLarge()
		if merged != test.finished {
			t.Errorf("a part of %d groups and %d bytes is finished: %v", test.groups, test.sums, merged)
		}
	}
}
