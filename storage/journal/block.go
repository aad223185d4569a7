package journal

import (
	"bufio"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/s2"

	"github.com/weirhq/weir/storage"
)

// A sealed segment is blocks, their index, and a trailer (index.go). A block is
// the content of some entries in two frames, so that a search reads no more than
// it needs: one of what was asked, one of what was answered. A frame is S2 of
// items, each an ordinal (4), a length (4), and a part of an entry's content. Large
// requests share bytes with those before them in the file (extents.go).
const (
	itemHead = 4 + 4

	// A block ends with the entry that brings it to this many bytes.
	blockBytes = 256 << 10
)

// part is one of the parts that content is sealed in.
type part struct {
	is   storage.ContentPart
	wire message[content]
}

// requestFrame is the index of the frame of what was asked.
const requestFrame = 0

var parts = [...]part{
	{storage.RequestPart, message[content]{1: contentWire[1], 3: contentWire[3], 4: contentWire[4], requestData: contentWire[requestData]}},
	{storage.ResponsePart, message[content]{2: contentWire[2], requestData + 1: contentWire[requestData+1]}},
}

// sealedWriter writes sealed segments, one after the other.
type sealedWriter struct {
	w      *bufio.Writer
	offset int64
	index  []block
	begun  bool               // a block, which is the last of index
	raw    [len(parts)][]byte // of that block
	frame  []byte
	blocks []uint32 // by ordinal: the number of the block that an entry is in

	// moved is where requests of the raw segment stand in the sealed one.
	moved   relocations
	pieces  []piece
	extents extentList
}

// reset begins a segment, of which nothing is written yet.
func (w *sealedWriter) reset(to io.Writer) {
	if w.w == nil {
		w.w = bufio.NewWriter(nil)
	}
	w.w.Reset(to)
	w.offset, w.index, w.blocks, w.moved = 0, w.index[:0], w.blocks[:0], w.moved[:0]
	w.begin()
}

// begin makes room for the next block.
func (w *sealedWriter) begin() {
	w.begun = false
	for i := range w.raw {
		w.raw[i] = w.raw[i][:0]
	}
}

// add appends the content of an entry. shared is its request if that shares bytes with
// others. What is damaged is left out.
func (w *sealedWriter) add(ordinal uint32, c *content, shared *rawRequest) (err error) {
	number := len(w.index) // of the block
	if w.begun {
		number--
	}
	size := 0
	for i, p := range parts {
		start := len(w.raw[i])
		raw := append(order.AppendUint32(w.raw[i], ordinal), 0, 0, 0, 0)
		if i == requestFrame && shared != nil {
			if raw, err = w.relocate(p.wire[:requestData].append(raw, c), number, shared); err != nil {
				return err
			}
		} else {
			raw = p.wire.append(raw, c)
		}
		if len(raw) == start+itemHead {
			raw = raw[:start] // the entry has nothing of this part
		} else {
			order.PutUint32(raw[start+4:], uint32(len(raw)-start-itemHead))
		}
		w.raw[i] = raw
		size += len(raw)
	}
	if !w.begun {
		w.begun = true
		w.index = append(w.index, block{first: ordinal, offset: w.offset})
	}
	w.index[number].entries++
	for int64(len(w.blocks)) <= int64(ordinal) {
		w.blocks = append(w.blocks, noBlock)
	}
	w.blocks[ordinal] = uint32(number)
	if size >= blockBytes {
		return w.flush()
	}
	return nil
}

// flush writes the block that has begun.
func (w *sealedWriter) flush() error {
	if !w.begun {
		return nil
	}
	b := &w.index[len(w.index)-1]
	for i, raw := range w.raw {
		if len(raw) == 0 {
			continue
		}
		w.frame = s2.Encode(w.frame[:cap(w.frame)], raw)
		b.frames[i] = frame{uint32(len(w.frame)), crc32.Checksum(w.frame, castagnoli)}
		w.offset += int64(len(w.frame))
		if _, err := w.w.Write(w.frame); err != nil {
			return err
		}
	}
	w.begin()
	return nil
}

// finish writes the index. newest is when the newest record was created.
func (w *sealedWriter) finish(newest moment) error {
	if err := w.flush(); err != nil {
		return err
	}
	if _, err := w.w.Write(appendIndex(nil, w.index, w.blocks, newest)); err != nil {
		return err
	}
	return w.w.Flush()
}
