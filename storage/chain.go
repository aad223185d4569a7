package storage

import "iter"

// chains keep a few values for each group, each under a number. The values of a
// group are linked, newest first: requests come mostly in the order of time, so
// that the first link is mostly the one that is looked for.
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

// of yields the values of a group with their numbers.
func (c *chains[T]) of(group int) iter.Seq2[int, *T] {
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
