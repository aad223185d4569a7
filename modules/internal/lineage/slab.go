package lineage

import "iter"

// slab keeps values that hold no pointers, and names each by a number from 1. The garbage
// collector does not look into a slab: a process with 100,000 calls has as little to mark
// as an idle one.
type slab[T any] struct {
	chunks  []*[slabChunk]T
	free    []uint32
	created uint32
}

// slabChunk is how many values a slab allocates at a time.
const slabChunk = 256

// take returns the number of a zero value.
func (s *slab[T]) take() uint32 {
	if last := len(s.free) - 1; last >= 0 {
		n := s.free[last]
		s.free = s.free[:last]
		return n
	}
	if s.created%slabChunk == 0 {
		s.chunks = append(s.chunks, new([slabChunk]T))
	}
	s.created++
	return s.created
}

// at returns the value of a number that take has returned.
func (s *slab[T]) at(n uint32) *T { return &s.chunks[(n-1)/slabChunk][(n-1)%slabChunk] }

// give makes the number free for another value.
func (s *slab[T]) give(n uint32) {
	var zero T
	*s.at(n) = zero
	s.free = append(s.free, n)
}

// stack is a stack of words in a slab of blocks: the number of its top block, 0 if the
// stack is empty.
type stack uint32

// block is a part of a stack, as long as a cache line.
type block struct {
	words [7]uint64
	used  uint32
	below stack
}

const blockSize = 64 // bytes

// push puts a word on top of a stack, and returns how many bytes that took.
func push(s *slab[block], to *stack, word uint64) (bytes int) {
	if *to == 0 || s.at(uint32(*to)).used == uint32(len(block{}.words)) {
		top := stack(s.take())
		s.at(uint32(top)).below = *to
		*to, bytes = top, blockSize
	}
	b := s.at(uint32(*to))
	b.words[b.used] = word
	b.used++
	return bytes
}

// words iterates over a stack from its top.
func words(s *slab[block], of stack) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for of != 0 {
			b := s.at(uint32(of))
			for i := int(b.used) - 1; i >= 0; i-- {
				if !yield(b.words[i]) {
					return
				}
			}
			of = b.below
		}
	}
}

// drop empties a stack, and returns how many bytes that gave back.
func drop(s *slab[block], of *stack) (bytes int) {
	for *of != 0 {
		top := *of
		*of = s.at(uint32(top)).below
		s.give(uint32(top))
		bytes += blockSize
	}
	return bytes
}
