package storage

import "iter"

// byGroup has the totals of each group. They stand in pages, so that growing
// copies none: groups are many, and mostly come one by one.
type byGroup struct{ pages []*[totalsPage]Totals }

const totalsPage = 1024

func (b *byGroup) at(group int) *Totals {
	page := group / totalsPage
	b.pages = grown(b.pages, page+1)
	if b.pages[page] == nil {
		b.pages[page] = new([totalsPage]Totals)
	}
	return &b.pages[page][group%totalsPage]
}

// all yields the groups with a request or an attempt.
func (b *byGroup) all() iter.Seq2[int, *Totals] {
	return func(yield func(int, *Totals) bool) {
		for i, page := range b.pages {
			for j := 0; page != nil && j < len(page); j++ {
				if t := &page[j]; !t.empty() && !yield(i*totalsPage+j, t) {
					return
				}
			}
		}
	}
}
