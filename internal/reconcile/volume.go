package reconcile

import (
	"errors"
	"fmt"
	"math"

	"github.com/weirhq/weir/plugins"
)

// ErrOverflow means that a bill or its records have more than can be compared.
var ErrOverflow = errors.New("the sums are too large to compare")

// volume adds up the sizes of amounts and counts, so that none of their sums and differences, which
// are of int64, is believed if it may have overflowed. Hostile callers can report any count of tokens.
type volume struct {
	amounts float64 // in billionths of a US dollar
	counts  float64 // of tokens and requests
}

// maxVolume is far below what overflows: a difference of two sums has twice as much.
const maxVolume = math.MaxInt64 / 8

func (v *volume) addAmounts(amounts ...plugins.Nanodollars) {
	for _, n := range amounts {
		v.amounts += math.Abs(float64(n))
	}
}

func (v *volume) addCounts(counts ...int64) {
	for _, n := range counts {
		v.counts += math.Abs(float64(n))
	}
}

// check returns an error if sums may have overflowed.
func (v *volume) check() error {
	switch {
	case v.amounts > maxVolume:
		return fmt.Errorf("%w: the amounts add up to more than a billion US dollars. Check the unit of the bill, or compare fewer days", ErrOverflow)
	case v.counts > maxVolume:
		return fmt.Errorf("%w: the tokens add up to more than 10^18. Look for records whose usage is made up, or compare fewer days", ErrOverflow)
	}
	return nil
}
