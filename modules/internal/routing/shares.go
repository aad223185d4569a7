package routing

import "slices"

// Share is a target with the part of the calls that an alias sends to it, while all targets are
// well.
type Share struct {
	Target
	Part float64 // from 0 to 1
}

// Shares returns the targets of an alias that take a call, with their shares; none if no model takes
// it. Where the strategy depends on how busy or how fast targets are, the shares are equal; where it
// depends on the cost, they are 0.
func (a *Alias) Shares(targets []Target, ask *Ask) []Share {
	var taken, all []Place
	described := ask.described()
	for _, t := range targets {
		if t.Choice != nil && t.Choice.takes(described) {
			taken = append(taken, Place{Target: t})
		}
	}
	all = slices.Clone(taken)
	taken = slices.DeleteFunc(taken, func(p Place) bool { return yields(&p, all) })
	var shares []Share
	sum := 0.0
	for i := range taken {
		p := &taken[i]
		part := 0.0
		switch a.Strategy {
		case ByWeight:
			part = share(taken, i)
		case LeastBusy, Fastest:
			part = 1
		case Cheapest:
		default:
			if i == 0 {
				part = 1
			}
		}
		sum += part
		shares = append(shares, Share{p.Target, part})
	}
	for i := range shares {
		if sum > 0 {
			shares[i].Part /= sum
		}
	}
	return shares
}

// yields reports whether a target gets no calls because the organisation has an account of its own
// that serves the same choice.
func yields(p *Place, all []Place) bool {
	if !p.Account.Platform {
		return false
	}
	for i := range all {
		if all[i].Choice == p.Choice && !all[i].Account.Platform {
			return true
		}
	}
	return false
}
