package catalog

import (
	"math"
	"math/bits"

	"github.com/weirhq/weir/plugins"
)

// bill adds up charges exactly: tokens in 128 bits of a millionth of a
// nano-dollar, pieces in nano-dollars.
type bill struct {
	hi, lo  uint64
	pieces  uint64
	unknown bool // something was used that has no price, or overflowed
}

// tokens charges n tokens at r dollars per million.
func (b *bill) tokens(n int64, r Rate) {
	if n == 0 {
		return
	}
	b.unknown = b.unknown || n < 0 || !r.known
	hi, lo := bits.Mul64(uint64(n), uint64(r.nano))
	var carry uint64
	b.lo, carry = bits.Add64(b.lo, lo, 0)
	b.hi, carry = bits.Add64(b.hi, hi, carry)
	b.unknown = b.unknown || carry != 0
}

// piece charges n things at r dollars each.
func (b *bill) piece(n int64, r Rate) {
	if n == 0 {
		return
	}
	b.unknown = b.unknown || n < 0 || !r.known
	hi, lo := bits.Mul64(uint64(n), uint64(r.nano))
	var carry uint64
	b.pieces, carry = bits.Add64(b.pieces, lo, 0)
	b.unknown = b.unknown || hi != 0 || carry != 0
}

// total is the sum, rounded half up.
func (b *bill) total() plugins.Cost {
	const million = 1_000_000
	lo, carry := bits.Add64(b.lo, million/2, 0)
	hi := b.hi + carry
	if b.unknown || hi >= million {
		return plugins.Cost{}
	}
	tokens, _ := bits.Div64(hi, lo, million)
	sum, carry := bits.Add64(tokens, b.pieces, 0)
	if carry != 0 || sum > math.MaxInt64 {
		return plugins.Cost{}
	}
	return plugins.KnownCost(plugins.Nanodollars(sum))
}
