package journal

import (
	"errors"
	"math"

	"github.com/google/uuid"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weirhq/weir/plugins"
)

// A message is encoded as protobuf does it, by a table whose index is the
// field's number. Numbers stay taken for ever. Fields that a version does not
// know are skipped, so versions read each other.
type message[M any] []field[M]

// field moves one field of an M, or a few, to the wire and back. What has its
// zero value is left out.
type field[M any] interface {
	append(b []byte, n protowire.Number, m *M) []byte
	parse(m *M, v value)
}

// value is one field as read: number for varints and fixed64, bytes for the rest.
type value struct {
	kind   protowire.Type
	number uint64
	bytes  []byte
}

var errWire = errors.New("malformed metadata")

func (f message[M]) append(b []byte, m *M) []byte {
	for n, field := range f {
		if field != nil {
			b = field.append(b, protowire.Number(n), m)
		}
	}
	return b
}

func (f message[M]) parse(b []byte, m *M) error {
	for len(b) > 0 {
		n, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return errWire
		}
		b = b[size:]
		v := value{kind: kind}
		switch kind {
		case protowire.VarintType:
			v.number, size = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			v.number, size = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			v.bytes, size = protowire.ConsumeBytes(b)
		default:
			size = protowire.ConsumeFieldValue(n, kind, b)
		}
		if size < 0 {
			return errWire
		}
		b = b[size:]
		if int(n) < len(f) && f[n] != nil {
			f[n].parse(m, v)
		}
	}
	return nil
}

// varint are the types that a varint holds.
type varint interface {
	~int | ~int64 | ~uint8 | ~uint32 | ~uint64
}

// The codecs are named by what they move; each is the way from a message to its
// field.
type (
	text[M any]                     func(*M) *string
	optional[M any]                 func(*M) **string
	texts[M any]                    func(*M) *[]string
	data[M any]                     func(*M) *[]byte
	integer[M any, T varint]        func(*M) *T
	quantity[M any, T plugins.Unit] func(*M) *plugins.Quantity[T]
	double[M any]                   func(*M) *float64
	flag[M any]                     func(*M) *bool
	id[M any]                       func(*M) *uuid.UUID
	labels[M any]                   func(*M) *map[string]string
	numbers[M any]                  func(*M) *map[string]float64
)

func (f text[M]) append(b []byte, n protowire.Number, m *M) []byte {
	s := *f(m)
	if s == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), s)
}

func (f text[M]) parse(m *M, v value) {
	if v.kind == protowire.BytesType {
		*f(m) = string(v.bytes)
	}
}

func (f optional[M]) append(b []byte, n protowire.Number, m *M) []byte {
	s := *f(m)
	if s == nil {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), *s)
}

func (f optional[M]) parse(m *M, v value) {
	if v.kind == protowire.BytesType {
		s := string(v.bytes)
		*f(m) = &s
	}
}

func (f texts[M]) append(b []byte, n protowire.Number, m *M) []byte {
	for _, s := range *f(m) {
		b = protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), s)
	}
	return b
}

func (f texts[M]) parse(m *M, v value) {
	if v.kind == protowire.BytesType {
		*f(m) = append(*f(m), string(v.bytes))
	}
}

func (f data[M]) append(b []byte, n protowire.Number, m *M) []byte {
	p := *f(m)
	if len(p) == 0 {
		return b
	}
	return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), p)
}

// parse keeps the bytes, which are the reader's own.
func (f data[M]) parse(m *M, v value) {
	if v.kind == protowire.BytesType && len(v.bytes) > 0 {
		*f(m) = v.bytes[:len(v.bytes):len(v.bytes)]
	}
}

func (f integer[M, T]) append(b []byte, n protowire.Number, m *M) []byte {
	return appendVarint(b, n, uint64(*f(m)))
}

// parse leaves out what T has no room for.
func (f integer[M, T]) parse(m *M, v value) {
	if v.kind == protowire.VarintType && uint64(T(v.number)) == v.number {
		*f(m) = T(v.number)
	}
}

// A quantity that is there is known, also when it is 0.
func (f quantity[M, T]) append(b []byte, n protowire.Number, m *M) []byte {
	c := f(m)
	if !c.Valid {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), uint64(c.N))
}

func (f quantity[M, T]) parse(m *M, v value) {
	if v.kind == protowire.VarintType {
		*f(m) = plugins.Quantity[T]{N: T(v.number), Valid: true}
	}
}

func (f double[M]) append(b []byte, n protowire.Number, m *M) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, n, protowire.Fixed64Type), math.Float64bits(*f(m)))
}

func (f double[M]) parse(m *M, v value) {
	if v.kind == protowire.Fixed64Type {
		*f(m) = math.Float64frombits(v.number)
	}
}

func (f flag[M]) append(b []byte, n protowire.Number, m *M) []byte {
	if !*f(m) {
		return b
	}
	return appendVarint(b, n, 1)
}

func (f flag[M]) parse(m *M, v value) {
	if v.kind == protowire.VarintType {
		*f(m) = v.number != 0
	}
}

func (f id[M]) append(b []byte, n protowire.Number, m *M) []byte {
	u := f(m)
	if *u == uuid.Nil {
		return b
	}
	return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), u[:])
}

func (f id[M]) parse(m *M, v value) {
	if len(v.bytes) == len(uuid.UUID{}) {
		*f(m) = uuid.UUID(v.bytes)
	}
}

// Maps are repeated messages of a name (1) and a value (2), as protobuf's are.
func (f labels[M]) append(b []byte, n protowire.Number, m *M) []byte {
	for name, value := range *f(m) {
		b = protowire.AppendTag(b, n, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(2+protowire.SizeBytes(len(name))+protowire.SizeBytes(len(value))))
		b = protowire.AppendString(protowire.AppendTag(b, 1, protowire.BytesType), name)
		b = protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), value)
	}
	return b
}

type label struct{ name, value string }

var labelWire = message[label]{
	1: text[label](func(l *label) *string { return &l.name }),
	2: text[label](func(l *label) *string { return &l.value }),
}

func (f labels[M]) parse(m *M, v value) {
	var l label
	if labelWire.parse(v.bytes, &l) != nil {
		return
	}
	if *f(m) == nil {
		*f(m) = map[string]string{}
	}
	(*f(m))[l.name] = l.value
}

func (f numbers[M]) append(b []byte, n protowire.Number, m *M) []byte {
	for name, value := range *f(m) {
		b = protowire.AppendTag(b, n, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(1+protowire.SizeBytes(len(name))+1+protowire.SizeFixed64()))
		b = protowire.AppendString(protowire.AppendTag(b, 1, protowire.BytesType), name)
		b = protowire.AppendFixed64(protowire.AppendTag(b, 2, protowire.Fixed64Type), math.Float64bits(value))
	}
	return b
}

type number struct {
	name  string
	value float64
}

var numberWire = message[number]{
	1: text[number](func(n *number) *string { return &n.name }),
	2: double[number](func(n *number) *float64 { return &n.value }),
}

func (f numbers[M]) parse(m *M, v value) {
	var n number
	if numberWire.parse(v.bytes, &n) != nil {
		return
	}
	if *f(m) == nil {
		*f(m) = map[string]float64{}
	}
	(*f(m))[n.name] = n.value
}

// sub is a message within a message, nil when it is not there.
type sub[M, S any] struct {
	of   func(*M) **S
	wire message[S]
}

func (f sub[M, S]) append(b []byte, n protowire.Number, m *M) []byte {
	s := *f.of(m)
	if s == nil {
		return b
	}
	return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), f.wire.append(nil, s))
}

func (f sub[M, S]) parse(m *M, v value) {
	s := new(S)
	if v.kind == protowire.BytesType && f.wire.parse(v.bytes, s) == nil {
		*f.of(m) = s
	}
}

func appendVarint(b []byte, n protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
}
