package storage

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/weirhq/weir/plugins"
)

// distribution has values whose quantiles are wanted, in milliseconds.
type distribution struct {
	// fresh are values below 1<<16, which nearly all are, in any order.
	fresh []uint16
	// runs have further such values. Distributions share them: a run never changes.
	runs []valueRun
	// others are the values that are not below 1<<16.
	others []plugins.Milliseconds
}

// valueRun has values in ascending order, in a byte or two for each value that differs from the one
// before: the difference, and how many more there are of the value, each as a variable integer.
type valueRun struct {
	values  int
	encoded []byte
}

const (
	// manyFresh values make a run.
	manyFresh = 1 << 15
	// fewFresh values take less memory than a run of them.
	fewFresh = 32
	// valueBytes are about what a value takes that is in no run yet.
	valueBytes = 4
	// fewValues are ordered faster than they are counted.
	fewValues = 1 << 10
)

func (d *distribution) add(v plugins.Milliseconds) {
	if v < 0 || v >= 1<<16 {
		d.others = append(d.others, v)
		return
	}
	if d.fresh = append(d.fresh, uint16(v)); len(d.fresh) >= manyFresh {
		d.compact()
	}
}

// compact makes a run of the fresh values, unless they are few. It returns how many bytes the values
// take.
func (d *distribution) compact() (size int) {
	if len(d.fresh) > fewFresh {
		d.runs = append(d.runs, newValueRun(d.fresh))
		d.fresh = nil
	}
	size = 2*cap(d.fresh) + 8*cap(d.others) + 32*cap(d.runs)
	for _, r := range d.runs {
		size += len(r.encoded)
	}
	return size
}

// newValueRun makes a run of values, which it may put into another order.
func newValueRun(values []uint16) valueRun {
	run := valueRun{values: len(values)}
	encoded := make([]byte, 0, 2*len(values))
	last := uint16(0)
	add := func(v uint16, n int) {
		encoded = binary.AppendUvarint(encoded, uint64(v-last)<<1|uint64(min(n-1, 1)))
		if n > 1 {
			encoded = binary.AppendUvarint(encoded, uint64(n))
		}
		last = v
	}
	if len(values) < fewValues {
		slices.Sort(values)
		for len(values) > 0 {
			n := 1
			for n < len(values) && values[n] == values[0] {
				n++
			}
			add(values[0], n)
			values = values[n:]
		}
	} else {
		t := newTally()
		for _, v := range values {
			t.add(v)
		}
		for v, n := range t.counts[:int(t.highest)+1] {
			if n > 0 {
				add(uint16(v), int(n))
			}
		}
		t.free()
	}
	run.encoded = slices.Clone(encoded)
	return run
}

// addTo adds the values to a tally.
func (r *valueRun) addTo(t *tally) {
	v := uint16(0)
	for p := r.encoded; len(p) > 0; {
		difference, size := uint64(p[0]), 1
		if difference >= 0x80 {
			difference, size = binary.Uvarint(p)
		}
		p = p[size:]
		v += uint16(difference >> 1)
		n := uint64(1)
		if difference&1 != 0 {
			if n, size = uint64(p[0]), 1; n >= 0x80 {
				n, size = binary.Uvarint(p)
			}
			p = p[size:]
		}
		t.counts[v] += uint32(n)
	}
	t.highest = max(t.highest, v)
}

// tally counts how often each value occurs.
type tally struct {
	counts [1 << 16]uint32
	// most is the largest value that was counted.
	highest uint16
}

var tallies = sync.Pool{New: func() any { return new(tally) }}

func newTally() *tally { return tallies.Get().(*tally) }

func (t *tally) free() {
	clear(t.counts[:int(t.highest)+1])
	t.highest = 0
	tallies.Put(t)
}

func (t *tally) add(v uint16) {
	t.counts[v]++
	t.highest = max(t.highest, v)
}

// merge adds the values of another one, which does not change.
func (d *distribution) merge(o *distribution) {
	for _, v := range o.fresh {
		d.add(plugins.Milliseconds(v))
	}
	d.runs = append(d.runs, o.runs...)
	d.others = append(d.others, o.others...)
}

// percentiles are the percentiles of all values.
func (d *distribution) percentiles() Percentiles {
	small := len(d.fresh)
	for _, r := range d.runs {
		small += r.values
	}
	if len(d.runs) == 0 && len(d.fresh)+len(d.others) < fewValues {
		all := slices.Clone(d.others)
		for _, v := range d.fresh {
			all = append(all, plugins.Milliseconds(v))
		}
		return percentilesOf(all)
	}
	t := newTally()
	defer t.free()
	for _, v := range d.fresh {
		t.add(v)
	}
	for _, r := range d.runs {
		r.addTo(t)
	}
	slices.Sort(d.others)
	negative, _ := slices.BinarySearch(d.others, 0)
	value, below := 0, negative // the next value of the tally, and how many are less
	at := func(i int) float64 {
		switch {
		case i < negative:
			return float64(d.others[i])
		case i >= negative+small:
			return float64(d.others[i-small])
		}
		if i < below { // of few values, a quantile may be less than the next value after the one before
			value, below = 0, negative
		}
		for below+int(t.counts[value]) <= i {
			below += int(t.counts[value])
			value++
		}
		return float64(value)
	}
	last := small + len(d.others) - 1
	quantile := func(q Quantile) Amount {
		place := int(q) * last
		low := at(place / 1000)
		if place%1000 == 0 {
			return amount(low)
		}
		high := at(place/1000 + 1)
		return amount(low + (high-low)*float64(place%1000)/1000)
	}
	return Percentiles{P50: quantile(500), P95: quantile(950), P99: quantile(990)}
}
