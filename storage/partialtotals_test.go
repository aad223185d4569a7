package storage

import (
	"testing"

	"github.com/weirhq/weir/plugins"
)

// TestSizeOfTotals holds that totals tell that they grow, also when all rows are of one group.
func TestSizeOfTotals(t *testing.T) {
	const rows = BatchRows
	hours := Buckets{Width: hour, Len: 1000 * rows}
	for name, q := range map[string]*GroupQuery{
		"buckets": {Buckets: hours},
		"details": {Buckets: hours, Details: true},
		"days":    {ActiveDays: true},
		"values":  {Details: true},
	} {
		b := &RowBatch{
			Len: rows, Attempt: make([]bool, rows), Status: make([]plugins.Count, rows), CreatedAt: make([]Timestamp, rows), RespondedAt: make([]Timestamp, rows),
			Cost: make([]plugins.Cost, rows), Input: make([]plugins.Count, rows), Output: make([]plugins.Count, rows), Latency: make([]plugins.Duration, rows),
			EndState: make([]EndState, rows), Cached: make([]bool, rows),
		}
		grid, _ := q.Buckets.grid()
		p := newPartialTotals(q, grid, nil)
		for range 2 {
			for batch := range 4 {
				for i := range b.CreatedAt {
					b.CreatedAt[i] = Timestamp(batch*rows+i) * 100 * day
				}
				before := p.Size()
				if p.Add(b); p.Size() < before+8*rows {
					t.Errorf("%s: %d bytes after %d", name, p.Size(), before)
				}
			}
			p.End()
			if p = newPartialTotals(q, grid, p); p.Size() != 0 {
				t.Errorf("%s: no rows take %d bytes", name, p.Size())
			}
		}
	}
}
