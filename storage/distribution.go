package storage

import (
	"slices"

	"github.com/weirhq/weir/plugins"
)

// distribution has values whose quantiles are wanted, in milliseconds. If there are many
// values, it counts how often each value occurs, so that more values take no more memory.
type distribution struct {
	// small are the values below 1<<16, which nearly all are; nil once counts has them.
	small []uint16
	// counts are by value, nil while there are few small values.
	counts *[1 << 16]uint32
	// counted is the sum of counts.
	counted int
	// others are the values that are not small.
	others []plugins.Milliseconds
}

// manyValues take as much memory as counts.
const manyValues = 1 << 17

func (d *distribution) add(v plugins.Milliseconds) {
	switch {
	case v < 0 || v >= 1<<16:
		d.others = append(d.others, v)
	case d.counts != nil:
		d.counts[v]++
		d.counted++
	default:
		if d.small = append(d.small, uint16(v)); len(d.small) >= manyValues {
			d.count()
		}
	}
}

// count counts the small values.
func (d *distribution) count() {
	d.counts, d.counted = new([1 << 16]uint32), len(d.small)
	for _, v := range d.small {
		d.counts[v]++
	}
	d.small = nil
}

// merge adds the values of another one.
func (d *distribution) merge(o *distribution) {
	d.others = append(d.others, o.others...)
	if d.counts == nil && o.counts == nil && len(d.small)+len(o.small) < manyValues {
		if d.small == nil {
			d.small = slices.Clip(o.small) // both have it, in any order
		} else {
			d.small = append(d.small, o.small...)
		}
		return
	}
	if d.counts == nil {
		d.count()
	}
	for _, v := range o.small {
		d.counts[v]++
	}
	d.counted += len(o.small) + o.counted
	if o.counts != nil {
		for v, n := range o.counts {
			d.counts[v] += n
		}
	}
}

// percentiles are the percentiles of all values.
func (d *distribution) percentiles() Percentiles {
	if d.counts == nil && len(d.others) == 0 {
		return percentilesOf(d.small)
	}
	if d.counts == nil {
		all := slices.Clone(d.others)
		for _, v := range d.small {
			all = append(all, plugins.Milliseconds(v))
		}
		return percentilesOf(all)
	}
	slices.Sort(d.others)
	negative, _ := slices.BinarySearch(d.others, 0)
	place, below := 0, negative // the next value of counts, and how many are less
	at := func(i int) float64 {
		if i < negative {
			return float64(d.others[i])
		}
		for ; place < len(d.counts) && below+int(d.counts[place]) <= i; place++ {
			below += int(d.counts[place])
		}
		if place < len(d.counts) {
			return float64(place)
		}
		return float64(d.others[i-d.counted])
	}
	last := d.counted + len(d.others) - 1
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
