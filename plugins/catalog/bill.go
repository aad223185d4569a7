package catalog

import (
	"math"
	"math/bits"

	"github.com/weirhq/weir/plugins"
)

// bill adds up charges exactly: tokens and audio in 128 bits of a part of a
// nano-dollar that divides both a millionth and the 3,600,000 milliseconds of an
// hour, pieces in nano-dollars.
type bill struct {
	hi, lo  uint64
	pieces  uint64
	unknown bool // something was used that has no price, or overflowed
	// charges are the amounts that were added up, nil unless the bill is itemized.
	itemized bool
	charges  []Charge
}

const (
	partsOfNano = 18_000_000
	perToken    = partsOfNano / million
	perMilli    = partsOfNano / millisOfHour

	millisOfHour = 3_600_000
	million      = 1_000_000
)

func (b *bill) tokens(item string, n int64, r Rate) {
	b.itemize(item, n, million, r)
	b.add(n, perToken, r)
}

func (b *bill) audio(item string, n plugins.Milliseconds, r Rate) {
	b.itemize(item, int64(n), millisOfHour, r)
	b.add(int64(n), perMilli, r)
}

func (b *bill) itemize(item string, n, per int64, r Rate) {
	if !b.itemized || n == 0 {
		return
	}
	var alone bill
	if per == 1 {
		alone.piece(item, n, r)
	} else {
		alone.add(n, uint64(partsOfNano/per), r)
	}
	b.charges = append(b.charges, Charge{Item: item, Count: n, Price: plugins.KnownCost(r.Nano()), Per: per, Cost: alone.total()})
}

func (b *bill) add(n int64, parts uint64, r Rate) {
	if n == 0 {
		return
	}
	b.unknown = b.unknown || n < 0 || !r.Known()
	hi, lo := bits.Mul64(uint64(n), uint64(r.Nano())) // below 2^123, since rates are at most maxRate
	over, lo := bits.Mul64(lo, parts)
	hi = hi*parts + over
	var carry uint64
	b.lo, carry = bits.Add64(b.lo, lo, 0)
	b.hi, carry = bits.Add64(b.hi, hi, carry)
	b.unknown = b.unknown || carry != 0
}

func (b *bill) piece(item string, n int64, r Rate) {
	b.itemize(item, n, 1, r)
	if n == 0 {
		return
	}
	b.unknown = b.unknown || n < 0 || !r.Known()
	hi, lo := bits.Mul64(uint64(n), uint64(r.Nano()))
	var carry uint64
	b.pieces, carry = bits.Add64(b.pieces, lo, 0)
	b.unknown = b.unknown || hi != 0 || carry != 0
}

// total is the sum, rounded half up.
func (b *bill) total() plugins.Cost {
	lo, carry := bits.Add64(b.lo, partsOfNano/2, 0)
	hi := b.hi + carry
	if b.unknown || hi >= partsOfNano {
		return plugins.Cost{}
	}
	parts, _ := bits.Div64(hi, lo, partsOfNano)
	sum, carry := bits.Add64(parts, b.pieces, 0)
	if carry != 0 || sum > math.MaxInt64 {
		return plugins.Cost{}
	}
	return plugins.KnownCost(plugins.Nanodollars(sum))
}
