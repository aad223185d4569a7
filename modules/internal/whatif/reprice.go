package whatif

import (
	"cmp"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/modules/internal/lineage"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/storage"
)

// recordedCall is a recorded call with what its price under another policy depends on.
type recordedCall struct {
	*storage.Record
	listed *catalog.Model  // its model, nil if the catalogue does not know it
	place  int32           // the number of where it went
	before *turn           // the turn before, nil if none is known
	shares []routing.Share // the targets that could get it
}

// costRange is what a call would have cost and used, at least, probably and at most.
type costRange struct{ low, expected, high estimate }

type estimate struct {
	cost  plugins.Nanodollars
	usage plugins.Usage
}

func exactly(cost plugins.Nanodollars, u plugins.Usage) costRange {
	e := estimate{cost, u}
	return costRange{e, e, e}
}

// tokens returns the input and output tokens that the call would have used.
func (e *estimate) tokens() int64 { return e.usage.Input.N + e.usage.Output.N }

// moves reports whether a policy chooses where a call goes.
func moves(r *storage.Record) bool {
	switch r.Dialect {
	case plugins.Chat, plugins.Responses, plugins.Messages, plugins.GenerateContent, plugins.Converse, plugins.Invoke, plugins.Completions:
		return r.AttemptOf == uuid.Nil
	}
	return false
}

// estimate returns what a call would have cost, nil if nobody can say, and the target that most such calls
// would get, nil for the one that the call had. It sets the ranges.
func (t *Trial) estimate(r *recordedCall) (*costRange, *routing.Share) {
	t.ranges = t.ranges[:0]
	switch {
	case !r.Cost.Valid:
		return nil, nil
	case !moves(r.Record), r.AnswerCache == storage.CacheHit, r.Usage == plugins.Usage{}, t.ran(r.Record):
		t.anywhere = exactly(r.Cost.N, r.Usage)
		return &t.anywhere, nil
	case len(r.shares) == 0:
		return nil, nil
	}
	for i := range r.shares {
		t.ranges = append(t.ranges, costRange{})
		if !t.price(r, &r.shares[i], &t.ranges[i]) {
			t.ranges = t.ranges[:0]
			return nil, nil
		}
	}
	first := 0 // the target that most such calls would get
	for i := range r.shares {
		if t.policy.Strategy == routing.Cheapest && t.ranges[i].expected.cost < t.ranges[first].expected.cost || r.shares[i].Part > r.shares[first].Part {
			first = i
		}
	}
	if r.shares[first].Part == 1 {
		return &t.ranges[first], &r.shares[first]
	}
	all := &t.anywhere
	*all = t.ranges[first]
	mean := 0.0
	for i := range t.ranges {
		one := &t.ranges[i]
		all.low.lower(&one.low)
		all.high.raise(&one.high)
		mean += float64(one.expected.cost) * r.shares[i].Part
	}
	if t.policy.Strategy != routing.Cheapest {
		all.expected.cost = min(max(plugins.Nanodollars(mean), all.low.cost), all.high.cost)
	}
	return all, &r.shares[first]
}

// lower takes the cost and the usage of another estimate where they are lower.
func (e *estimate) lower(other *estimate) {
	if other.tokens() < e.tokens() {
		e.usage = other.usage
	}
	e.cost = min(e.cost, other.cost)
}

// raise takes the cost and the usage of another estimate where they are higher.
func (e *estimate) raise(other *estimate) {
	if other.tokens() > e.tokens() {
		e.usage = other.usage
	}
	e.cost = max(e.cost, other.cost)
}

// ran reports whether the policy is the one that the call went by, as far as the record tells: an arm that
// no alias has shows that the alias has changed since. A budget may have sent the call to another alias.
func (t *Trial) ran(r *storage.Record) bool {
	return t.policy.Name != "" && r.RequestModel == t.policy.Name && (r.Arm == "" || t.policy.arms[r.Arm])
}

// price sets in costs what a call would have cost at a target, and reports whether that is known.
func (t *Trial) price(r *recordedCall, s *routing.Share, costs *costRange) bool {
	if s.Listed == nil {
		return false
	}
	asItWas := t.asItWas(r, s)
	t.use(r, s, costs, asItWas)

	at := catalog.Conditions{At: r.CreatedAt.Time(), Tier: cmp.Or(t.policy.Tier, s.Choice.ServiceTier(), r.ServiceTier), Geography: r.InferenceGeo}
	for _, e := range []*estimate{&costs.low, &costs.expected, &costs.high} {
		cost := s.Listed.Cost(e.usage, at)
		if !cost.Valid {
			return false
		}
		e.cost = cost.N
	}
	if asItWas && costs.expected.usage.Output == r.Usage.Output && at.Tier == r.ServiceTier {
		costs.expected.cost = r.Cost.N // with all that is beside the tokens
	}
	costs.low.cost, costs.high.cost = min(costs.low.cost, costs.expected.cost), max(costs.high.cost, costs.expected.cost)
	return true
}

// use sets in costs what a call would have used at a target.
func (t *Trial) use(r *recordedCall, s *routing.Share, costs *costRange, asItWas bool) {
	usage := r.Usage
	usage.ReportedCost = plugins.Cost{}
	limit(&usage, s.Choice)
	costs.low.usage = t.withCache(r, usage, s.Listed, min(t.longest, r.Usage.Input.N)) // what another call has sent
	costs.expected.usage = t.withCache(r, usage, s.Listed, t.expectedCached(r, s))
	costs.high.usage = t.withCache(r, usage, s.Listed, 0)
	if lineage.NeedsMarks(s.Listed.ID) && !r.marked() { // nobody knows whether its client would have asked for a cache
		for _, u := range []*plugins.Usage{&costs.low.usage, &costs.expected.usage} {
			u.CacheWrite, u.CacheWrite1h = plugins.Count{}, plugins.Count{}
		}
	}
	if asItWas {
		costs.expected.usage = usage
	}
	if r.listed == nil || t.tokenizerOf(r.listed) != t.tokenizerOf(s.Listed) {
		scale(&costs.low.usage, leastInput, leastOutput)
		scale(&costs.high.usage, mostInput, mostOutput)
	}
}

// asItWas reports whether a call would have met the same cache at a target as it did.
func (t *Trial) asItWas(r *recordedCall, s *routing.Share) bool {
	return t.policy.CacheLife == "" && r.wasAt(s) && (!t.policy.NoAffinity || s.Part == 1) &&
		(!r.follows(s) || r.before.place == r.place)
}

// expectedCached is how many tokens of a call's input the cache of a target is expected to have.
func (t *Trial) expectedCached(r *recordedCall, s *routing.Share) int64 {
	input := r.Usage.Input.N
	cached := float64(min(t.common, input))
	switch {
	case lineage.NeedsMarks(s.Listed.ID) && !r.marked():
		return 0
	case r.follows(s) && t.policy.NoAffinity && s.Part < 1:
		cached = max(cached, t.cached[r.ParentID][s.Name])
	case r.follows(s):
		cached = float64(min(r.before.input, input))
	}
	if cached < float64(lineage.MinCacheable(s.Listed.ID)) {
		return 0
	}
	return int64(cached)
}

// follows reports whether the turn before a call is so recent that a target still has it cached.
func (r *recordedCall) follows(s *routing.Share) bool {
	if r.before == nil {
		return false
	}
	life := storage.Timestamp(lineage.UnmarkedLife.Milliseconds())
	if lineage.NeedsMarks(s.Listed.ID) {
		life = r.before.life
	}
	return r.CreatedAt-r.before.at <= life
}

// wasAt reports whether a call went to a target.
func (r *recordedCall) wasAt(s *routing.Share) bool {
	return r.listed != nil && r.listed.ID == s.Listed.ID && r.listed.Provider == s.Listed.Provider && s.Account.Label == r.Account
}

// marked reports whether the request has marked what to cache, as far as its usage tells.
func (r *recordedCall) marked() bool {
	return r.Usage.CacheWrite.N > 0 || r.Usage.CacheRead.N > 0 && r.listed != nil && lineage.NeedsMarks(r.listed.ID)
}

// life is how long a provider that caches what requests mark keeps a call.
func (t *Trial) life(r *recordedCall) time.Duration {
	switch {
	case t.policy.CacheLife == longLife, t.policy.CacheLife == "" && r.Usage.CacheWrite1h.N > 0:
		return time.Hour
	case t.policy.CacheLife == "" && r.before != nil && r.Usage.CacheWrite.N == 0: // it wrote nothing
		return time.Duration(r.before.life) * time.Millisecond
	}
	return lineage.MarkedLife
}

// withCache returns u with cached tokens from the cache, for a model that caches the complete input.
func (t *Trial) withCache(r *recordedCall, u plugins.Usage, m *catalog.Model, cached int64) plugins.Usage {
	u.CacheRead, u.CacheReadAudio, u.CacheWrite, u.CacheWrite1h = plugins.Known(cached), plugins.Count{}, plugins.Count{}, plugins.Count{}
	if lineage.NeedsMarks(m.ID) {
		u.CacheWrite = plugins.Known(max(u.Input.N-cached, 0))
		if t.life(r) > lineage.MarkedLife {
			u.CacheWrite1h = u.CacheWrite
		}
	}
	return u
}

// limit lowers the output of a call to what a choice allows.
func limit(u *plugins.Usage, c *routing.Choice) {
	if limit, ok := c.OutputLimit(); ok {
		u.Output.N, u.BilledOutput.N, u.Reasoning.N = min(u.Output.N, limit), min(u.BilledOutput.N, limit), min(u.Reasoning.N, limit)
	}
}

// scale multiplies the counts of a usage.
func scale(u *plugins.Usage, input, output float64) {
	for _, n := range []*plugins.Count{&u.Input, &u.BilledInput, &u.CacheRead, &u.CacheReadAudio, &u.CacheWrite, &u.CacheWrite1h, &u.InputAudio, &u.InputImage} {
		n.N = int64(float64(n.N) * input)
	}
	for _, n := range []*plugins.Count{&u.Output, &u.BilledOutput, &u.Reasoning, &u.OutputAudio, &u.OutputImage} {
		n.N = int64(float64(n.N) * output)
	}
}
