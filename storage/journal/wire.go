package journal

import (
	"errors"
	"fmt"
	"math"

	"github.com/google/uuid"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// A message is encoded as in protobuf, by a table. The index in the table is the
// field's number. Numbers stay taken for ever. Fields that a version does not
// know are skipped, so that versions read each other's messages. Each entry returns
// a pointer to its field of an M.
type message[M any] []func(*M) any

// value is one field as read: number for varints and fixed64, bytes for the rest.
type value struct {
	kind   protowire.Type
	number uint64
	bytes  []byte
}

var errWire = errors.New("malformed metadata")

func (f message[M]) append(b []byte, m *M) []byte {
	for n, at := range f {
		if at == nil {
			continue
		}
		switch p := at(m).(type) { // most texts and counts of a record are zero
		case *string:
			if *p != "" {
				b = appendText(b, protowire.Number(n), *p)
			}
		case *plugins.Count:
			if p.Valid {
				b = appendQuantity(b, protowire.Number(n), *p)
			}
		default:
			b = appendAt(b, protowire.Number(n), p)
		}
	}
	return b
}

func (f message[M]) parse(b []byte, m *M) error { return f.parseAfter(b, m, nil) }

// parseAfter parses a message that follows another one. They have most of their texts in common,
// which take no memory again. before may be nil.
func (f message[M]) parseAfter(b []byte, m, before *M) error {
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
		if int(n) >= len(f) || f[n] == nil {
			continue
		}
		p := f[n](m)
		if before != nil && v.repeats(p, f[n](before)) {
			continue
		}
		v.parse(p)
	}
	return nil
}

// repeats sets a text to that of the message before, and reports true, if they are equal.
func (v value) repeats(p, before any) bool {
	switch p := p.(type) {
	case *string:
		return repeatsText(v, p, *before.(*string))
	case *plugins.Dialect:
		return repeatsText(v, p, *before.(*plugins.Dialect))
	}
	return false
}

func repeatsText[T ~string](v value, p *T, before T) bool {
	if v.kind != protowire.BytesType || string(v.bytes) != string(before) {
		return false
	}
	*p = before
	return true
}

// appendAt appends the field that p points to, unless the field has its zero value.
func appendAt(b []byte, n protowire.Number, p any) []byte {
	switch p := p.(type) {
	case *plugins.Dialect:
		return appendText(b, n, *p)
	case *storage.JSONText:
		return appendText(b, n, *p)
	case *plugins.Duration:
		return appendQuantity(b, n, *p)
	case *plugins.Cost:
		return appendQuantity(b, n, *p)
	case *bool:
		if *p {
			return appendVarint(b, n, 1)
		}
	case *uuid.UUID:
		if *p != uuid.Nil {
			return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), p[:])
		}
	case *storage.Timestamp:
		return appendVarint(b, n, uint64(*p))
	case *storage.EndState:
		return appendVarint(b, n, uint64(*p))
	case *int:
		return appendVarint(b, n, uint64(*p))
	case *int64:
		return appendVarint(b, n, uint64(*p))
	case *uint32:
		return appendVarint(b, n, uint64(*p))
	case *uint64:
		return appendVarint(b, n, *p)
	case *float64: // is there in any case: it is the value of an entry of a map
		return protowire.AppendFixed64(protowire.AppendTag(b, n, protowire.Fixed64Type), math.Float64bits(*p))
	case *[]byte:
		if len(*p) > 0 {
			return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), *p)
		}
	case **string:
		if *p != nil {
			return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), **p)
		}
	case *[]string:
		for _, s := range *p {
			b = protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), s)
		}
	case *map[string]string:
		return appendLabels(b, n, *p)
	case *map[string]float64:
		return appendNumbers(b, n, *p)
	case **storage.Feedback:
		return appendMessage(b, n, feedbackWire, *p)
	case **storage.Property:
		return appendMessage(b, n, propertyWire, *p)
	case **storage.View:
		return appendMessage(b, n, viewWire, *p)
	case **conversation:
		return appendMessage(b, n, conversationWire, *p)
	default:
		panic(fmt.Sprintf("the journal has no encoding of %T", p))
	}
	return b
}

// parse sets what p points to. A value of another wire type, or for which the field has
// no room, is left out.
func (v value) parse(p any) {
	switch p := p.(type) {
	case *string:
		parseText(v, p)
	case *plugins.Dialect:
		parseText(v, p)
	case *storage.JSONText:
		parseText(v, p)
	case *plugins.Count:
		parseQuantity(v, p)
	case *plugins.Duration:
		parseQuantity(v, p)
	case *plugins.Cost:
		parseQuantity(v, p)
	case *bool:
		if v.kind == protowire.VarintType {
			*p = v.number != 0
		}
	case *uuid.UUID:
		if len(v.bytes) == len(uuid.UUID{}) {
			*p = uuid.UUID(v.bytes)
		}
	case *storage.Timestamp:
		parseInteger(v, p)
	case *storage.EndState:
		parseInteger(v, p)
	case *int:
		parseInteger(v, p)
	case *int64:
		parseInteger(v, p)
	case *uint32:
		parseInteger(v, p)
	case *uint64:
		parseInteger(v, p)
	case *float64:
		if v.kind == protowire.Fixed64Type {
			*p = math.Float64frombits(v.number)
		}
	case *[]byte: // the bytes stay the reader's own
		if v.kind == protowire.BytesType && len(v.bytes) > 0 {
			*p = v.bytes[:len(v.bytes):len(v.bytes)]
		}
	case **string:
		if v.kind == protowire.BytesType {
			*p = new(string(v.bytes))
		}
	case *[]string:
		if v.kind == protowire.BytesType {
			*p = append(*p, string(v.bytes))
		}
	case *map[string]string:
		parseEntry(v, p)
	case *map[string]float64:
		parseEntry(v, p)
	case **storage.Feedback:
		parseMessage(v, feedbackWire, p)
	case **storage.Property:
		parseMessage(v, propertyWire, p)
	case **storage.View:
		parseMessage(v, viewWire, p)
	case **conversation:
		parseMessage(v, conversationWire, p)
	}
}

func appendText[T ~string](b []byte, n protowire.Number, s T) []byte {
	if s == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), string(s))
}

func parseText[T ~string](v value, p *T) {
	if v.kind == protowire.BytesType {
		*p = T(v.bytes)
	}
}

func appendVarint(b []byte, n protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
}

// parseInteger leaves out what T has no room for.
func parseInteger[T ~int | ~int64 | ~uint8 | ~uint32 | ~uint64](v value, p *T) {
	if v.kind == protowire.VarintType && uint64(T(v.number)) == v.number {
		*p = T(v.number)
	}
}

// A quantity that is there is known, also when it is 0.
func appendQuantity[T plugins.Unit](b []byte, n protowire.Number, q plugins.Quantity[T]) []byte {
	if !q.Valid {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), uint64(q.N))
}

func parseQuantity[T plugins.Unit](v value, q *plugins.Quantity[T]) {
	if v.kind == protowire.VarintType {
		*q = plugins.Quantity[T]{N: T(v.number), Valid: true}
	}
}

// Maps are repeated messages of a name (1) and a value (2), as protobuf's are.
func appendLabels(b []byte, n protowire.Number, m map[string]string) []byte {
	for name, value := range m {
		b = protowire.AppendTag(b, n, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(2+protowire.SizeBytes(len(name))+protowire.SizeBytes(len(value))))
		b = protowire.AppendString(protowire.AppendTag(b, 1, protowire.BytesType), name)
		b = protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), value)
	}
	return b
}

func appendNumbers(b []byte, n protowire.Number, m map[string]float64) []byte {
	for name, value := range m {
		b = protowire.AppendTag(b, n, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(1+protowire.SizeBytes(len(name))+1+protowire.SizeFixed64()))
		b = protowire.AppendString(protowire.AppendTag(b, 1, protowire.BytesType), name)
		b = protowire.AppendFixed64(protowire.AppendTag(b, 2, protowire.Fixed64Type), math.Float64bits(value))
	}
	return b
}

// mapEntry is a name of a map with its value.
type mapEntry[V any] struct {
	name  string
	value V
}

func parseEntry[V any](v value, m *map[string]V) {
	var e mapEntry[V]
	wire := message[mapEntry[V]]{
		1: func(e *mapEntry[V]) any { return &e.name },
		2: func(e *mapEntry[V]) any { return &e.value },
	}
	if wire.parse(v.bytes, &e) != nil {
		return
	}
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[e.name] = e.value
}

// appendMessage appends the message s within a message, nothing if s is nil.
func appendMessage[S any](b []byte, n protowire.Number, wire message[S], s *S) []byte {
	if s == nil {
		return b
	}
	return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), wire.append(nil, s))
}

func parseMessage[S any](v value, wire message[S], p **S) {
	s := new(S)
	if v.kind == protowire.BytesType && wire.parse(v.bytes, s) == nil {
		*p = s
	}
}
