package parquet

import "encoding/binary"

// The types of Thrift's compact protocol.
// https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
const (
	typeI32    = 5
	typeI64    = 6
	typeBinary = 8
	typeList   = 9
	typeStruct = 12
)

// thrift writes a struct in the compact protocol. Fields come in the order of their ids.
type thrift struct {
	b    []byte
	last int16   // the id of the field before
	open []int16 // of the structs around
}

func (t *thrift) field(id int16, kind byte) {
	t.b = append(t.b, byte(id-t.last)<<4|kind) // ids are at most 15 apart
	t.last = id
}

func (t *thrift) i32(id int16, n int32) {
	t.field(id, typeI32)
	t.b = binary.AppendVarint(t.b, int64(n))
}

func (t *thrift) i64(id int16, n int64) {
	t.field(id, typeI64)
	t.b = binary.AppendVarint(t.b, n)
}

func (t *thrift) text(id int16, s string) {
	t.field(id, typeBinary)
	t.element(s)
}

// element is a text of a list.
func (t *thrift) element(s string) {
	t.b = binary.AppendUvarint(t.b, uint64(len(s)))
	t.b = append(t.b, s...)
}

// list begins a list of some elements, which follow.
func (t *thrift) list(id int16, kind byte, n int) {
	t.field(id, typeList)
	if n < 15 {
		t.b = append(t.b, byte(n)<<4|kind)
		return
	}
	t.b = append(t.b, 0xf0|kind)
	t.b = binary.AppendUvarint(t.b, uint64(n))
}

// begin begins a struct of a field, or of a list.
func (t *thrift) begin(id int16) {
	t.field(id, typeStruct)
	t.beginElement()
}

func (t *thrift) beginElement() {
	t.open = append(t.open, t.last)
	t.last = 0
}

func (t *thrift) end() {
	t.b = append(t.b, 0)
	if n := len(t.open); n > 0 {
		t.last, t.open = t.open[n-1], t.open[:n-1]
	}
}
