package journal

import (
	"cmp"
	"slices"
)

// relocations are where bytes of a raw segment stand in its sealed one: what requests
// share in the one they share in the other, so that sealing need not cut them again.
// They are in the order of from, and do not overlap.
type relocations []relocation

// relocation says that size bytes at an address in the raw segment stand at another in
// the sealed one.
type relocation struct{ from, size, to uint64 }

// piece is a part of a request, at an address in the raw segment.
type piece struct {
	relocation
	there bool // in the sealed segment
}

// after returns the index of the first relocation behind an address.
func (all relocations) after(address uint64) int {
	i, found := slices.BinarySearchFunc(all, address, func(r relocation, a uint64) int { return cmp.Compare(r.from, a) })
	if found {
		i++
	}
	return i
}

// appendPieces appends the pieces of some bytes of the raw segment.
func (all relocations) appendPieces(pieces []piece, from, size uint64) []piece {
	for size > 0 {
		i := all.after(from)
		p := piece{relocation: relocation{from: from, size: size}}
		if i > 0 && from-all[i-1].from < all[i-1].size {
			before := all[i-1]
			p.there, p.to = true, before.to+from-before.from
			p.size = min(size, before.from+before.size-from)
		} else if i < len(all) {
			p.size = min(size, all[i].from-from)
		}
		pieces = append(pieces, p)
		from, size = from+p.size, size-p.size
	}
	return pieces
}

// add adds what of r is not known, up to the first bytes that are.
func (all relocations) add(r relocation) relocations {
	i := all.after(r.from)
	if i > 0 {
		if before := all[i-1]; r.from-before.from < before.size {
			known := min(r.size, before.from+before.size-r.from)
			r = relocation{r.from + known, r.size - known, r.to + known}
		}
	}
	if i < len(all) {
		r.size = min(r.size, max(all[i].from, r.from)-r.from)
	}
	if r.size == 0 {
		return all
	}
	return slices.Insert(all, i, r)
}

// rawRequest is a request that shares bytes with others in its raw segment.
type rawRequest struct {
	extents []byte
	own     []byte
	at      uint64                 // where own stands
	whole   func() ([]byte, error) // puts the request together, and checks it
}

// relocate appends to the frame of a block what the sealed segment has not of a request.
func (w *sealedWriter) relocate(raw []byte, block int, r *rawRequest) ([]byte, error) {
	x, err := readExtents(r.extents)
	if err != nil {
		return nil, err
	}
	w.pieces = w.pieces[:0]
	at, end := r.at, r.at+uint64(len(r.own))
	for len(x.rest) > 0 {
		e, err := x.next()
		if err != nil || e.literal > end-at {
			return nil, errDamaged
		}
		w.pieces = w.moved.appendPieces(w.pieces, at, e.literal)
		w.pieces = w.moved.appendPieces(w.pieces, e.at, e.shared)
		at += e.literal
	}
	w.extents = w.extents[:0]
	literal, foreign := uint64(0), false // bytes of an entry that is not sealed, or not yet
	for _, p := range w.pieces {
		if p.there {
			w.extents.share(p.to, p.size)
			continue
		}
		w.extents.own(p.size)
		literal += p.size
		foreign = foreign || p.from < r.at || p.from >= end
	}
	bytes := r.own
	if foreign {
		if bytes, err = r.whole(); err != nil {
			return nil, err
		}
	}
	raw = appendShared(raw, w.extents, x.sum, x.size, literal)
	position := uint64(0) // in the request
	for _, p := range w.pieces {
		if !p.there {
			start := p.from - r.at
			if foreign {
				start = position
			}
			p.to = uint64(block)<<32 | uint64(len(raw))
			raw = append(raw, bytes[start:start+p.size]...)
			w.moved = w.moved.add(p.relocation)
		}
		position += p.size
	}
	return raw, nil
}
