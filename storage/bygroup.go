package storage

import (
	"iter"
	"math/bits"
	"slices"
	"unsafe"
)

// Pages are values by number. Growing copies no values: there are many, and they mostly come
// one by one.
type Pages[T any] []*[pageLength]T

const pageLength = 1024

// At is the value of a number, which begins as the zero value.
func (p *Pages[T]) At(i int) *T {
	page := i / pageLength
	*p = grown(*p, page+1)
	if (*p)[page] == nil {
		(*p)[page] = new([pageLength]T)
	}
	return &(*p)[page][i%pageLength]
}

// list is a list in pages.
type list[T any] struct {
	Pages[T]
	len int
}

func (l *list[T]) add(v T) {
	*l.At(l.len) = v
	l.len++
}

// all yields the values in order.
func (l *list[T]) all() iter.Seq2[int, *T] {
	return func(yield func(int, *T) bool) {
		for i := range l.len {
			if !yield(i, l.At(i)) {
				return
			}
		}
	}
}

// byGroup has the totals of each group.
type byGroup struct{ Pages[Totals] }

func (b *byGroup) clear() {
	for _, page := range b.Pages {
		if page != nil {
			clear(page[:])
		}
	}
}

// all yields the groups with a request or an attempt, the last first: they are mostly
// the newest, which most queries want first.
func (b *byGroup) all() iter.Seq2[int, *Totals] {
	return func(yield func(int, *Totals) bool) {
		for i, page := range slices.Backward(b.Pages) {
			if page == nil {
				continue
			}
			for j := range slices.Backward(page[:]) {
				if t := &page[j]; !t.empty() && !yield(i*pageLength+j, t) {
					return
				}
			}
		}
	}
}

// chains keep a few values for each group, each under a number. The values of a
// group are linked, newest first: requests come mostly in the order of time, so
// that the first link is mostly the wanted link.
type chains[T any] struct {
	heads []int32 // by group, the place of its first link in links plus one
	links []link[T]
}

type link[T any] struct {
	number int32
	next   int32 // as heads
	value  T
}

// at is the value of a group under a number, until the next call.
func (c *chains[T]) at(group int, number int32) *T {
	c.heads = grown(c.heads, group+1)
	for i := c.heads[group]; i > 0; i = c.links[i-1].next {
		if l := &c.links[i-1]; l.number == number {
			return &l.value
		}
	}
	c.links = append(c.links, link[T]{number: number, next: c.heads[group]})
	c.heads[group] = int32(len(c.links))
	return &c.links[len(c.links)-1].value
}

func (c *chains[T]) clear() {
	clear(c.links)
	c.heads, c.links = c.heads[:0], c.links[:0]
}

// used is how many bytes the values take, besides what they refer to.
func (c *chains[T]) used() int {
	return 4*len(c.heads) + len(c.links)*int(unsafe.Sizeof(link[T]{}))
}

// size is used, with the memory that is not used.
func (c *chains[T]) size() int {
	return 4*cap(c.heads) + cap(c.links)*int(unsafe.Sizeof(link[T]{}))
}

// values yields the values of a group with their numbers.
func (c *chains[T]) values(group int) iter.Seq2[int, *T] {
	return func(yield func(int, *T) bool) {
		if group >= len(c.heads) {
			return
		}
		for i := c.heads[group]; i > 0; i = c.links[i-1].next {
			if l := &c.links[i-1]; !yield(int(l.number), &l.value) {
				return
			}
		}
	}
}

// activeDays are sets of days, a bit for each.
type activeDays struct{ sets chains[uint64] }

func (a *activeDays) add(group, day int) {
	*a.sets.at(group, int32(day>>6)) |= 1 << (day & 63)
}

func (a *activeDays) count(group int) (days int64) {
	for _, set := range a.sets.values(group) {
		days += int64(bits.OnesCount64(*set))
	}
	return days
}

// grown is s with at least n elements.
func grown[T any](s []T, n int) []T {
	if n > len(s) {
		s = append(s, make([]T, n-len(s))...)
	}
	return s
}
