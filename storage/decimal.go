package storage

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Decimal is a number of a filter. Its comparisons with whole numbers are exact.
type Decimal struct {
	// text is the number in JSON.
	text string
	// real is the nearest floating-point number, for scores and averages.
	real float64
	// ones compares with counts, and billionths with money.
	ones, billionths place
}

// place says where a number lies among the whole numbers of 64 bits.
type place struct {
	// floor is the largest whole number that is not above the number, or the least of all.
	floor int64
	// between is true for a number that is not whole, or does not fit into 64 bits.
	between bool
}

// ParseDecimal reads a number.
func ParseDecimal(text string) (Decimal, error) {
	real, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil:
		return Decimal{}, fmt.Errorf("the number %s is out of range", cut(text))
	case math.IsInf(real, 0) || math.IsNaN(real):
		return Decimal{}, fmt.Errorf("%s is no number", text)
	case !json.Valid([]byte(text)): // such as .5
		return DecimalOf(real), nil
	}
	return Decimal{text, real, placeOf(text, 0), placeOf(text, 9)}, nil
}

// DecimalOf is a finite number as a Decimal.
func DecimalOf(n float64) Decimal {
	text := strconv.FormatFloat(n, 'g', -1, 64)
	return Decimal{text, n, placeOf(text, 0), placeOf(text, 9)}
}

// String is the number in JSON.
func (d Decimal) String() string { return cmp.Or(d.text, "0") }

// Float is the nearest floating-point number.
func (d Decimal) Float() float64 { return d.real }

// placeOf is the place of a number in JSON times a power of ten. The exponent may be so large
// that the number would not fit into memory: the number is never written out.
func placeOf(text string, power int) place {
	text, negative := strings.CutPrefix(text, "-")
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	integer, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(integer+fraction, "0")
	if digits == "" {
		return place{}
	}
	shift, err := strconv.Atoi(exponent)
	if err != nil && exponent != "" {
		shift = math.MaxInt32
		if exponent[0] == '-' {
			shift = -shift
		}
	}
	const maxDigits = 19 // digits of an int64
	point := len(digits) - len(fraction) + min(max(shift, -math.MaxInt32), math.MaxInt32) + power
	p := place{between: strings.Trim(digits[min(max(point, 0), len(digits)):], "0") != ""}
	switch {
	case point > maxDigits:
		p = place{floor: math.MaxInt64, between: true}
	case point > 0:
		digits += strings.Repeat("0", max(0, point-len(digits)))
		if p.floor, err = strconv.ParseInt(digits[:point], 10, 64); err != nil {
			p.between = true
		}
	}
	if !negative {
		return p
	}
	if p.floor = -p.floor; p.between {
		p.floor--
	}
	return p
}

// Integer returns the comparison of a leaf as one with a whole number, in the unit in which records
// store the field's values. possible is false if no value can equal the number.
func (l *Leaf) Integer() (op Operator, n int64, possible bool) {
	p := l.Number.ones
	if l.Field.Money {
		p = l.Number.billionths
	}
	switch {
	case !p.between:
		return l.Op, p.floor, true
	case l.Op == GTE:
		return GT, p.floor, true
	case l.Op == LT:
		return LTE, p.floor, true
	}
	return l.Op, p.floor, l.Op != Equals && l.Op != NotEquals
}
