package columnar

import (
	"fmt"
	"testing"
)

// TestMemory holds that the answers that were used last are remembered, that files are forgotten
// with all their answers, and that no answer takes the place of all others.
func TestMemory(t *testing.T) {
	const size = 1000
	m := newMemory(256 * (size + rememberedBytes))
	for i := range 1000 {
		if !m.put(fmt.Sprint(i/2), fmt.Sprint(i%2), i, size) {
			t.Fatalf("answer %d is too large", i)
		}
		if m.get("0", "0") != 0 {
			t.Fatalf("the answer that is used most is forgotten for answer %d", i)
		}
		if m.size > m.limit || m.recent.Len() > 256 {
			t.Fatalf("%d answers of %d bytes are remembered", m.recent.Len(), m.size)
		}
	}
	if got := m.get("499", "1"); got != 999 {
		t.Errorf("the last answer is %v", got)
	}
	if m.get("1", "0") != nil {
		t.Error("an answer that nobody used is remembered")
	}
	m.put("499", "1", "changed", 1)
	if got := m.get("499", "1"); got != "changed" {
		t.Errorf("the answer that took another's place is %v", got)
	}
	if m.put("a", "large", 1, size+1) || m.get("a", "large") != nil {
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
