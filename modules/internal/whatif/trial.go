package whatif

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/modules/internal/lineage"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/storage"
)

// Trial adds up what recorded calls would have cost. Add takes them in the order in which they were
// made.
type Trial struct {
	Total *Amount
	// By has the amounts by the value of an attribute: `model`, `user`, `session` and `day`, in UTC.
	By map[string]map[string]*Amount
	// Targets has what the calls that would go to each target would have cost, with their shares.
	Targets map[string]*Amount

	policy   *Policy
	resolver *routing.Resolver
	targets  []routing.Target
	turns    map[uuid.UUID]turn
	common   int64 // tokens that caches had of calls that begin a conversation, the most so far
	longest  int64 // input so far
}

// turn is what a later turn needs to know of a call.
type turn struct {
	at      storage.Timestamp
	input   int64
	account string
	model   *catalog.Model // nil if the catalogue does not know it
	// cached are the tokens that each target's cache is expected to have of the conversation, by
	// the name of the target, if calls go where the strategy sends them.
	cached map[string]float64
}

// maxValues bounds the values of an attribute that amounts are kept of; the others are together in
// the value others.
const (
	maxValues = 10_000
	others    = "…"
)

// maxTurns bounds the turns that are remembered. All are forgotten together: the calls after that
// count as first turns.
const maxTurns = 1_000_000

// New returns a trial of a policy, whose models stand for what they do for an organisation.
func New(p *Policy, resolver *routing.Resolver) (*Trial, error) {
	trial := *resolver
	trial.Aliases = map[string]*routing.Alias{trialName: &p.Alias}
	targets, _, err := trial.Resolve(trialName)
	if err != nil {
		return nil, err
	}
	return &Trial{
		Total: newAmount(), By: make(map[string]map[string]*Amount), Targets: make(map[string]*Amount),
		policy: p, resolver: resolver, targets: targets, turns: make(map[uuid.UUID]turn),
	}, nil
}

const trialName = "whatif"

// Add counts a recorded call.
func (t *Trial) Add(r *storage.Record) {
	if r.Subscription || r.Arm == routing.ShadowArm {
		return // nobody pays for it by the token, or it is no call of a user
	}
	would := t.would(r)
	day := r.CreatedAt.Time().UTC().Format(time.DateOnly)
	t.Total.add(r.Cost, would)
	for attribute, value := range map[string]string{"model": r.Model, "user": r.UserID, "session": r.SessionID, "day": day} {
		values := t.By[attribute]
		if values == nil {
			values = make(map[string]*Amount)
			t.By[attribute] = values
		}
		if values[value] == nil {
			if len(values) >= maxValues {
				value = others
			}
			if values[value] == nil {
				values[value] = newAmount()
			}
		}
		values[value].add(r.Cost, would)
	}
	if len(t.turns) >= maxTurns {
		clear(t.turns)
	}
	listed, _ := t.resolver.Catalog.Lookup(r.Provider, r.Model)
	before, follows := t.turns[r.ParentID]
	if !follows {
		t.common = max(t.common, r.Usage.CacheRead.N)
	}
	t.longest = max(t.longest, r.Usage.Input.N)
	now := turn{at: r.CreatedAt, input: r.Usage.Input.N, account: r.Account, model: listed}
	if t.policy.NoAffinity {
		now.cached = make(map[string]float64, len(t.targets))
		for _, s := range t.policy.Shares(t.targets, askOf(r)) {
			now.cached[s.Name()] = float64(now.input)*s.Part + before.cached[s.Name()]*(1-s.Part)
		}
	}
	t.turns[r.ID] = now
}

// askOf is what the choice among targets depends on, as a record has it.
func askOf(r *storage.Record) *routing.Ask {
	return &routing.Ask{Record: r, Stream: r.Stream, Images: len(r.Assets) > 0, Tokens: r.Usage.Input.N}
}

// moved reports whether a policy chooses where a call goes.
func moved(r *storage.Record) bool {
	switch r.Dialect {
	case plugins.Chat, plugins.Responses, plugins.Messages, plugins.GenerateContent, plugins.Converse, plugins.Invoke, plugins.Completions:
		return r.AttemptOf == uuid.Nil
	}
	return false
}

// would returns what a call would have cost, nil if nobody can say.
func (t *Trial) would(r *storage.Record) *span {
	switch {
	case !r.Cost.Valid:
		return nil
	case !moved(r), r.AnswerCache == storage.CacheHit, r.Usage == plugins.Usage{}, t.ran(r):
		return new(exactly(r.Cost.N))
	}
	shares := t.policy.Shares(t.targets, askOf(r))
	if len(shares) == 0 {
		return nil
	}
	spans := make([]*span, len(shares))
	for i, s := range shares {
		if spans[i] = t.at(r, s); spans[i] == nil {
			return nil
		}
	}
	all := *spans[0]
	all.expected = 0
	for i, one := range spans {
		t.count(shares[i], one)
		all.low, all.high = min(all.low, one.low), max(all.high, one.high)
		all.expected += plugins.Nanodollars(float64(one.expected) * shares[i].Part)
	}
	certain := slices.IndexFunc(shares, func(s routing.Share) bool { return s.Part == 1 })
	switch {
	case certain >= 0:
		return spans[certain]
	case t.policy.Strategy == routing.Cheapest:
		all.expected = slices.MinFunc(spans, func(a, b *span) int { return cmp.Compare(a.expected, b.expected) }).expected
	}
	return &all
}

// ran reports whether the policy is the one that the call went by.
func (t *Trial) ran(r *storage.Record) bool {
	return t.policy.Name != "" && r.RequestModel == t.policy.Name
}

func (t *Trial) count(s routing.Share, would *span) {
	name := s.Name()
	if t.Targets[name] == nil {
		t.Targets[name] = newAmount()
	}
	a := t.Targets[name]
	a.Calls++
	a.Low.N, a.High.N = a.Low.N+would.low, a.High.N+would.high
	a.Expected.N += plugins.Nanodollars(float64(would.expected) * s.Part)
}

// Tokenizers differ, and so does how much models write. Where the recorded model and another one are of
// different makers, the counts are taken to be these parts of the recorded ones.
const (
	leastInput, mostInput   = 0.7, 1.5
	leastOutput, mostOutput = 0.5, 2.0
)

// Assumptions are what the amounts rest on, beside the records and the catalogue.
func (t *Trial) Assumptions() []string {
	list := []string{
		"Every target answers, within its limits: no call falls over to another one.",
		"A model of the same maker counts and writes as many tokens as the recorded one. Of another maker, the input is 0.7 to 1.5 times and the output 0.5 to 2 times as long.",
		"A conversation whose turn before went to the same target finds the turn in the provider's cache, for an hour, or for 5 minutes where the provider caches what requests mark.",
		"Budgets and limits refuse nothing: weir budget try says what they would.",
	}
	for _, target := range t.targets {
		if target.Listed == nil {
			list = append(list, "The catalogue has no price for "+target.Name()+": what goes there is unknown.")
		}
	}
	if t.policy.Strategy == routing.LeastBusy || t.policy.Strategy == routing.Fastest {
		list = append(list, "The targets get equal shares: how busy and how fast they would have been is not known.")
	}
	if slices.ContainsFunc(t.policy.Models, func(c *routing.Choice) bool { return len(c.Set) > 0 }) {
		list = append(list, "Parameters that a model sets do not change how long its answers are.")
	}
	return list
}

// at returns what a call would have cost at a target.
func (t *Trial) at(r *storage.Record, s routing.Share) *span {
	if s.Listed == nil {
		return nil
	}
	recorded, _ := t.resolver.Catalog.Lookup(r.Provider, r.Model)
	before, follows := t.turns[r.ParentID]
	life := lineage.UnmarkedLife
	if lineage.NeedsMarks(s.Listed.ID) {
		life = lineage.MarkedLife
	}
	follows = follows && r.CreatedAt-before.at <= storage.Timestamp(life.Milliseconds())

	input := r.Usage.Input.N
	cacheable := min(t.longest, input)      // that a cache can have: what another call has sent
	cached := float64(min(t.common, input)) // that it is expected to have
	switch {
	case follows && t.policy.NoAffinity && s.Part < 1:
		cached = max(cached, before.cached[s.Name()])
	case follows:
		cached = float64(min(before.input, input))
	}

	at := catalog.Conditions{At: r.CreatedAt.Time(), Tier: r.ServiceTier, Geography: r.InferenceGeo}
	if t.policy.Tier != "" {
		at.Tier = t.policy.Tier
	}
	usage := r.Usage
	usage.ReportedCost = plugins.Cost{}
	limit(&usage, s.Choice)
	low, expected, high := withCache(usage, s.Listed, cacheable), withCache(usage, s.Listed, int64(cached)), withCache(usage, s.Listed, 0)
	sameModel := recorded != nil && recorded.ID == s.Listed.ID && recorded.Provider == s.Listed.Provider
	asItWas := sameModel && (!t.policy.NoAffinity || s.Part == 1) && s.Account.Label == r.Account && (!follows || before.account == r.Account && before.model == recorded)
	if asItWas {
		expected = usage
	}
	if recorded == nil || owner(recorded) != owner(s.Listed) {
		low, high = scaled(low, leastInput, leastOutput), scaled(high, mostInput, mostOutput)
	}
	least, likely, highest := s.Listed.Cost(low, at), s.Listed.Cost(expected, at), s.Listed.Cost(high, at)
	if asItWas && usage.Output == r.Usage.Output && at.Tier == r.ServiceTier {
		likely = r.Cost // with all that is beside the tokens
	}
	if !least.Valid || !likely.Valid || !highest.Valid {
		return nil
	}
	return &span{min(least.N, likely.N), likely.N, max(highest.N, likely.N)}
}

// limit lowers the output of a call to what a choice allows.
func limit(u *plugins.Usage, c *routing.Choice) {
	for _, name := range []string{"max_tokens", "max_completion_tokens", "max_output_tokens"} {
		if limit, ok := c.Limit[name]; ok {
			u.Output.N, u.BilledOutput.N, u.Reasoning.N = min(u.Output.N, limit), min(u.BilledOutput.N, limit), min(u.Reasoning.N, limit)
		}
	}
}

// owner is the maker of a model, whose tokenizer it has.
func owner(m *catalog.Model) string {
	if m.Owner != "" {
		return strings.ToLower(m.Owner)
	}
	return m.Provider
}

// withCache returns a usage of which the cache has so many tokens, at a model.
func withCache(u plugins.Usage, m *catalog.Model, cached int64) plugins.Usage {
	wrote := u.CacheWrite.N > 0
	u.CacheRead, u.CacheReadAudio, u.CacheWrite, u.CacheWrite1h = plugins.Known(cached), plugins.Count{}, plugins.Count{}, plugins.Count{}
	if lineage.NeedsMarks(m.ID) && wrote {
		u.CacheWrite = plugins.Known(max(u.Input.N-cached, 0))
	}
	return u
}

// scaled returns a usage with its counts times a part.
func scaled(u plugins.Usage, input, output float64) plugins.Usage {
	for _, n := range []*plugins.Count{&u.Input, &u.BilledInput, &u.CacheRead, &u.CacheReadAudio, &u.CacheWrite, &u.CacheWrite1h, &u.InputAudio, &u.InputImage} {
		n.N = int64(float64(n.N) * input)
	}
	for _, n := range []*plugins.Count{&u.Output, &u.BilledOutput, &u.Reasoning, &u.OutputAudio, &u.OutputImage} {
		n.N = int64(float64(n.N) * output)
	}
	return u
}
