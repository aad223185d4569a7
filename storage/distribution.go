package storage

import (
	"math"
	"slices"

	"github.com/weirhq/weir/plugins"
)

// distribution has values whose quantiles are wanted, in milliseconds. If there are many
// values, it counts how often each value occurs, so that more values take no more memory.
type distribution struct {
	values []uint32
	// counts are by value, nil while there are few values.
	counts *[1 << 16]uint32
	// counted is the sum of counts.
	counted int
	// wide are the values that do not fit into 32 bits.
	wide []plugins.Milliseconds
}

// manyValues take as much memory as counts.
const manyValues = 1 << 16

func (d *distribution) add(v plugins.Milliseconds) {
	switch {
	case v < 0 || v > math.MaxUint32:
		d.wide = append(d.wide, v)
	case d.counts != nil && int(v) < len(d.counts):
		d.counts[v]++
		d.counted++
	default:
		if d.values = append(d.values, uint32(v)); d.counts == nil && len(d.values) >= manyValues {
			d.count()
		}
	}
}

// count counts the values that can be counted.
func (d *distribution) count() {
	d.counts = new([1 << 16]uint32)
	few := d.values
	d.values = nil
	for _, v := range few {
		d.add(plugins.Milliseconds(v))
	}
}

// merge adds the values of another one.
func (d *distribution) merge(o *distribution) {
	if o.counts != nil {
		if d.counts == nil {
			d.count()
		}
		for v, n := range o.counts {
			d.counts[v] += n
		}
		d.counted += o.counted
	}
	switch {
	case d.counts == nil && d.values == nil:
		d.values = slices.Clip(o.values) // both have it, in any order
	case d.counts == nil && len(d.values)+len(o.values) < manyValues:
		d.values = append(d.values, o.values...)
	default:
		for _, v := range o.values {
			d.add(plugins.Milliseconds(v))
		}
	}
	d.wide = append(d.wide, o.wide...)
}

// percentiles are the percentiles of all values.
func (d *distribution) percentiles() Percentiles {
	switch {
	case len(d.wide) > 0:
		all := slices.Clone(d.wide)
		for _, v := range d.values {
			all = append(all, plugins.Milliseconds(v))
		}
		if d.counts != nil {
			for v, n := range d.counts {
				for range n {
					all = append(all, plugins.Milliseconds(v))
				}
			}
		}
		return percentilesOf(all)
	case d.counts == nil:
		return percentilesOf(d.values)
	}
	slices.Sort(d.values) // which are all greater than what is counted
	place, below := 0, 0  // the next value of counts, and how many are less
	at := func(i int) float64 {
		for ; place < len(d.counts) && below+int(d.counts[place]) <= i; place++ {
			below += int(d.counts[place])
		}
		if place < len(d.counts) {
			return float64(place)
		}
		return float64(d.values[i-d.counted])
	}
	last := d.counted + len(d.values) - 1
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
