package routing

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/shared"
)

// Ask is what the choice among the targets of a call depends on.
type Ask struct {
	// Record has the caller, and what the caller says of the call.
	Record *storage.Record
	// Stream, Tools and Images say what the request asks for and has; Marked, that it asks the
	// provider to cache it.
	Stream, Tools, Images, Marked bool
	// Tokens is an estimate of the input tokens of the request.
	Tokens int64
	// Warm returns how many tokens of the request the provider's cache is expected to have at a
	// target, 0 if the turn before went elsewhere or is too old.
	Warm func(Target) int64
}

// Health is what the nodes know of targets.
type Health struct {
	shared.Breakers
	*Loads
}

// State is how a target came to its place.
type State string

// The states of targets.
const (
	Open    State = "open"    // it failed, and is tried last
	Limited State = "limited" // it refuses calls, and is tried last
	Warm    State = "warm"    // the provider's cache has the conversation
	Well    State = "well"
)

// Place is a target in the order of a call.
type Place struct {
	Target
	State State
	// Expected is what the call is expected to cost, unknown where a price is. It is computed for
	// the strategy `cheapest` alone.
	Expected plugins.Cost
	Load     Load

	warm int64 // tokens in the provider's cache
}

// Choose returns the targets in the order in which a call tries them. Targets whose condition the
// call does not match are left out. A conversation stays at a target whose cache has it, if that
// target is as good as the first one. Targets that fail, or refuse calls, come last. describe is
// called if there is a choice.
func Choose(targets []Target, describe func() *Ask, health Health) ([]Place, error) {
	if len(targets) == 1 && targets[0].Choice == nil {
		return []Place{{Target: targets[0], State: Well}}, nil
	}
	ask := describe()
	places := make([]Place, 0, len(targets))
	var described *storage.Record
	for _, t := range targets {
		if c := t.Choice; c != nil && c.condition != nil {
			if described == nil {
				described = ask.described()
			}
			if !c.takes(described) {
				continue
			}
		}
		places = append(places, Place{Target: t, warm: ask.Warm(t)})
	}
	if len(places) == 0 {
		return nil, noneTakes(targets)
	}
	if health.mayLimit() {
		health.setLoads(places)
	}
	for begin := 0; begin < len(places); { // the targets of each alias stand together
		end := begin + 1
		for end < len(places) && places[end].Alias != nil && places[end].Alias == places[begin].Alias {
			end++
		}
		if a := places[begin].Alias; a != nil && !a.inOrder() {
			if a.Strategy != ByWeight {
				health.setLoads(places[begin:end])
			}
			a.arrange(places[begin:end], ask)
		}
		begin = end
	}
	stayWarm(places)
	well := true
	for i := range places {
		places[i].State = health.state(&places[i])
		well = well && places[i].State.rank() == 0
	}
	if !well {
		putUnwellLast(places)
	}
	return places, nil
}

// noneTakes is the error of a call that matches no condition.
func noneTakes(targets []Target) *plugins.Error {
	var conditions []string
	for _, t := range targets {
		if c := fmt.Sprintf("%s takes %s", t.Choice.Model, t.Choice.When); !slices.Contains(conditions, c) {
			conditions = append(conditions, c)
		}
	}
	return &plugins.Error{
		Status: http.StatusBadRequest, Type: "invalid_request_error", Code: "no_model_takes_this", Param: "model",
		Message: "No model of the alias takes this call: " + strings.Join(conditions, ", ") + ". Add a model without `when` to the alias, which takes all others.",
	}
}

// putUnwellLast puts targets that fail, or are at their limit, after the others. A limit of the
// organisation's own accounts is waited for before the platform pays.
func putUnwellLast(places []Place) {
	ownIsWell := slices.ContainsFunc(places, func(p Place) bool { return !p.Account.Platform && p.State.rank() == 0 })
	behind := func(p Place) int {
		if p.State == Limited && !p.Account.Platform && !ownIsWell {
			return 0
		}
		return p.State.rank()
	}
	slices.SortStableFunc(places, func(a, b Place) int { return cmp.Compare(behind(a), behind(b)) })
}

// state returns how a target is for a call.
func (h Health) state(p *Place) State {
	switch {
	case h.Open(p.Circuit):
		return Open
	case p.Load.Limited:
		return Limited
	case p.warm > 0:
		return Warm
	}
	return Well
}

// Survey returns targets with how they are now, in their order.
func Survey(targets []Target, health Health) []Place {
	places := make([]Place, len(targets))
	for i, t := range targets {
		places[i].Target = t
	}
	health.setLoads(places)
	for i := range places {
		places[i].State = health.state(&places[i])
	}
	return places
}

// takes reports whether a described call matches the condition.
func (c *Choice) takes(described *storage.Record) bool {
	return c.program == nil || c.program.Match(described, nil)
}

// rank is 0 for the states of targets that are tried first.
func (s State) rank() int {
	switch s {
	case Open:
		return 2
	case Limited:
		return 1
	}
	return 0
}

// arrange puts the targets of an alias in the order of its strategy. In each choice, the accounts
// of the organisation stay before those of the platform: the order decides who pays.
func (a *Alias) arrange(places []Place, ask *Ask) {
	ranks := make([]rank, 0, fewTargets)
	for i := range places {
		r := rank{score: a.score(places, i, ask), from: i}
		if a.subject != nil { // the accounts of a choice share its subjects
			r.tie = hashed(a.subject(ask.Record), places[i].Account.Label)
		}
		ranks = append(ranks, r)
	}
	slices.SortStableFunc(ranks, rank.compare)
	unsorted := append(make([]Place, 0, fewTargets), places...)
	for i, r := range ranks {
		places[i] = unsorted[r.from]
	}
	for i := range places {
		if !places[i].Account.Platform {
			continue
		}
		for j := i + 1; j < len(places); j++ { // an own account of the same choice after it
			if places[j].Choice == places[i].Choice && !places[j].Account.Platform {
				places[i], places[j] = places[j], places[i]
				break
			}
		}
	}
}

// rank is the place of a target within its alias. The lowest score is tried first; of equal scores,
// the lowest tie; of equal ties, the first of the alias.
type rank struct {
	score, tie float64
	from       int
}

func (r rank) compare(other rank) int {
	switch {
	case r.score < other.score:
		return -1
	case r.score > other.score:
		return 1
	}
	return cmp.Compare(r.tie, other.tie)
}

// fewTargets are those of an alias that are sorted without memory of the heap.
const fewTargets = 16

// explorationShare is the share of calls by which the strategy `fastest` tries targets that are not.
const explorationShare = 0.05

// score is the place of the target i of an alias within the alias: the lowest is tried first.
func (a *Alias) score(all []Place, i int, ask *Ask) float64 {
	p := &all[i]
	switch a.Strategy {
	case ByWeight:
		if a.subject != nil {
			if subject := a.subject(ask.Record); subject != "" { // the accounts of a choice draw the same
				return draw(hashed(subject, p.Arm()), float64(p.Choice.EffectiveWeight()))
			}
		}
		return draw(rand.Float64(), share(all, i))
	case LeastBusy:
		return float64(p.Load.UnderWay)/share(all, i) + rand.Float64()*1e-6
	case Fastest:
		switch {
		case p.Load.Median == 0 && !p.Load.Tried, rand.Float64() < explorationShare/float64(len(all)):
			return -rand.Float64() // it is tried to know
		case p.Load.Median == 0:
			return maxLimited.Seconds() // it has not answered yet
		}
		return p.Load.Median.Seconds()
	case Cheapest:
		p.Expected = p.expect(ask)
		if !p.Expected.Valid {
			return math.Inf(1)
		}
		return float64(p.Expected.N)
	}
	return 0
}

// share is the weight of the target i: that of its choice, divided among the accounts that serve the
// choice, which stand together.
func share(all []Place, i int) float64 {
	choice := all[i].Choice
	first, end := i, i+1
	for first > 0 && all[first-1].Choice == choice {
		first--
	}
	for end < len(all) && all[end].Choice == choice {
		end++
	}
	return float64(choice.EffectiveWeight()) / float64(end-first)
}

// draw returns a number that is the lowest of several with the probability of its weight, if u is
// spread evenly from 0 to 1 (https://en.wikipedia.org/wiki/Rendezvous_hashing, weighted).
func draw(u, weight float64) float64 { return -math.Log(1-u) / weight }

// hashed is a number from 0 to 1 that is the same for two texts, at any node.
func hashed(subject, name string) float64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s %s", len(subject), subject, name))
	return float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
}

// expect is what a call is expected to cost at a target, with what the provider's cache has of it.
func (p *Place) expect(ask *Ask) plugins.Cost {
	if p.Listed == nil {
		return plugins.Cost{}
	}
	read := min(p.warm, ask.Tokens)
	u := plugins.Usage{Input: plugins.Known(ask.Tokens), CacheRead: plugins.Known(read), Output: plugins.Known(p.Load.Output)}
	if ask.Marked {
		u.CacheWrite = plugins.Known(ask.Tokens - read)
	}
	return p.Listed.Cost(u, catalog.Conditions{At: time.Now()})
}

// stayWarm moves the target whose cache has the conversation before those that are no better.
func stayWarm(places []Place) {
	at := 0
	for at < len(places) && places[at].warm == 0 {
		at++
	}
	if at == len(places) {
		return
	}
	for ; at > 0 && places[at].asGoodAs(&places[at-1]); at-- {
		places[at-1], places[at] = places[at], places[at-1]
	}
}

// asGoodAs reports whether a conversation may stay at a target in place of one that would be tried
// before. Calls of a comparison go where its attribute sends them, and an account of the
// platform never pays for the organisation's own.
func (p *Place) asGoodAs(first *Place) bool {
	if p.Account.Platform && !first.Account.Platform {
		return false
	}
	if a := p.Alias; a != nil && a == first.Alias && !a.inOrder() {
		return a.subject == nil && a.Strategy != Cheapest
	}
	return p.Model == first.Model && p.Choice.namedArm() == first.Choice.namedArm() && p.price() == first.price()
}

// CanReplace reports whether a call that a target refuses because of a limit need not wait for it:
// the place is well, as good, and nobody has asked for the other one first.
func (p *Place) CanReplace(refused *Place) bool {
	chosen := p.entry == refused.entry || p.Alias != nil && p.Alias == refused.Alias && !p.Alias.inOrder()
	return chosen && p.State.rank() == 0 && p.asGoodAs(refused)
}

// Larger returns the places whose models read longer requests than that of p.
func (p *Place) Larger(places []Place) (larger []Place) {
	for _, other := range places {
		if other.inputLimit() > p.inputLimit() {
			larger = append(larger, other)
		}
	}
	return larger
}

// Equals counts the targets that would have been as good for a call as the first one, itself
// included.
func Equals(places []Place) (n int) {
	for i := range places {
		if i == 0 || places[0].asGoodAs(&places[i]) && places[i].asGoodAs(&places[0]) {
			n++
		}
	}
	return n
}

// Arm is the name of the choice on its records, "" for a target of no alias.
func (t Target) Arm() string {
	if t.Choice == nil {
		return ""
	}
	return cmp.Or(t.Choice.Arm, t.Choice.Model)
}
