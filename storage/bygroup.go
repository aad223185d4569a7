package storage

import "iter"

// byGroup has the totals of each group. They stand in pages, so that growing
// copies none: groups are many, and mostly come one by one.
type byGroup struct{ pages []*[totalsPage]totals }

const totalsPage = 1024

func (b *byGroup) at(group int) *totals {
	page := group / totalsPage
	b.pages = grown(b.pages, page+1)
	if b.pages[page] == nil {
		b.pages[page] = new([totalsPage]totals)
	}
	return &b.pages[page][group%totalsPage]
}

// all yields the groups with a request.
func (b *byGroup) all() iter.Seq2[int, *totals] {
	return func(yield func(int, *totals) bool) {
		for i, page := range b.pages {
			for j := 0; page != nil && j < len(page); j++ {
				if t := &page[j]; t.requests > 0 && !yield(i*totalsPage+j, t) {
					return
				}
			}
		}
	}
}

// empty is true when no group has a request.
func (b *byGroup) empty() bool {
	for range b.all() {
		return false
	}
	return true
}
