package journal

import (
	"hash/crc32"

	"google.golang.org/protobuf/encoding/protowire"
)

// A request that shares bytes with others in its file is kept in two fields of its
// entry's content: the bytes that are its own, and its extents. These begin with its
// checksum (CRC-32C), which covers what it shares too, and its size (all further numbers
// are varints); each has the number of own bytes, and the number of shared bytes behind
// them and their address.
//
// An address is an offset in a raw segment. In a sealed one it is the number of a block
// (upper 32 bits) and an offset in the decoded frame of what was asked (lower 32 bits).
type extent struct{ literal, shared, at uint64 }

// extentList are the extents of a request from its beginning to some place in it.
type extentList []extent

// own adds bytes that are the request's own.
func (l *extentList) own(size uint64) {
	if n := len(*l); n > 0 && (*l)[n-1].shared == 0 {
		(*l)[n-1].literal += size
		return
	}
	*l = append(*l, extent{literal: size})
}

// share adds bytes that stand at an address.
func (l *extentList) share(at, size uint64) {
	if n := len(*l); n > 0 {
		last := &(*l)[n-1]
		if last.shared == 0 {
			last.at = at
		}
		if last.at+last.shared == at {
			last.shared += size
			return
		}
	}
	*l = append(*l, extent{shared: size, at: at})
}

// layout is what a content has beside that of storage.Content.
type layout struct{ extents []byte }

// extentsField is the number of the extents among the fields of contentWire.
const extentsField = requestData + 2

var layoutWire = message[layout]{extentsField: data[layout](func(l *layout) *[]byte { return &l.extents })}

// appendShared appends the extents of a request of some checksum and size, and the head of
// the field of so many bytes of its own, which follow.
func appendShared(b []byte, extents extentList, sum uint32, size, own uint64) []byte {
	length := 4 + protowire.SizeVarint(size)
	for _, e := range extents {
		length += protowire.SizeVarint(e.literal) + protowire.SizeVarint(e.shared) + protowire.SizeVarint(e.at)
	}
	b = appendField(b, extentsField, length)
	b = order.AppendUint32(b, sum)
	b = protowire.AppendVarint(b, size)
	for _, e := range extents {
		b = protowire.AppendVarint(protowire.AppendVarint(b, e.literal), e.shared)
		b = protowire.AppendVarint(b, e.at)
	}
	return appendField(b, requestData, int(own))
}

// appendField appends the head of a field of so many bytes.
func appendField(b []byte, n protowire.Number, size int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.BytesType), uint64(size))
}

// extentReader reads extents.
type extentReader struct {
	sum  uint32
	size uint64
	rest []byte
}

func readExtents(b []byte) (x extentReader, err error) {
	if len(b) < 4 {
		return x, errDamaged
	}
	x = extentReader{sum: order.Uint32(b), rest: b[4:]}
	x.size, err = x.number()
	return x, err
}

func (x *extentReader) number() (uint64, error) {
	n, size := protowire.ConsumeVarint(x.rest)
	if size < 0 {
		return 0, errDamaged
	}
	x.rest = x.rest[size:]
	return n, nil
}

// next returns the next extent. It is only called while there is a rest.
func (x *extentReader) next() (e extent, err error) {
	for _, n := range []*uint64{&e.literal, &e.shared, &e.at} {
		if *n, err = x.number(); err != nil {
			return e, err
		}
	}
	return e, nil
}

// assemble appends to b, which is empty, the request that has these extents and own
// bytes. shared appends what stands at an address.
func assemble(b, extents, own []byte, shared func(b []byte, at, size uint64) ([]byte, error)) ([]byte, error) {
	x, err := readExtents(extents)
	if err != nil {
		return b, err
	}
	for len(x.rest) > 0 {
		e, err := x.next()
		if err != nil {
			return b, err
		}
		if e.literal > uint64(len(own)) {
			return b, errDamaged
		}
		b = append(b, own[:e.literal]...)
		own = own[e.literal:]
		if e.shared == 0 {
			continue
		}
		if b, err = shared(b, e.at, e.shared); err != nil {
			return b, err
		}
	}
	if uint64(len(b)) != x.size || crc32.Checksum(b, castagnoli) != x.sum {
		return b, errDamaged
	}
	return b, nil
}
