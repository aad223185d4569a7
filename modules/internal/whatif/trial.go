package whatif

import (
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/modules/internal/money"
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
	// Targets has what the calls that could go to each target would have cost, with their shares.
	Targets map[string]*Amount

	policy  *Policy
	catalog *catalog.Catalog
	targets []routing.Target
	missing []string        // warnings of models that the organisation cannot call
	shares  []routing.Share // of all calls, nil if conditions decide
	limits  limits
	// ranges are those of the call that is added, at each of its targets; anywhere is that of all together.
	ranges   []costRange
	anywhere costRange
	turns    map[uuid.UUID]turn
	places   map[place]int32 // their numbers
	// tokenizers are the names of those of the models, at most as many as the catalogue has.
	tokenizers map[*catalog.Model]string
	// cached are the tokens that each target's cache is expected to have of a conversation, by its
	// last turn and the name of the target. It is nil if conversations stay at their target.
	cached  map[uuid.UUID]map[string]float64
	caches  int   // that cached has, of all turns together
	common  int64 // tokens that caches had of calls that begin a conversation, the most so far
	longest int64 // tokens, the longest input so far
	day     day   // of the last call
}

// day is a day in UTC, such as 2026-11-30.
type day struct {
	date   string
	begins storage.Timestamp
}

const dayLength = storage.Timestamp(24 * time.Hour / time.Millisecond)

// dateOf returns the date of a time, which is mostly that of the time before.
func (d *day) dateOf(at storage.Timestamp) string {
	if at < d.begins || at >= d.begins+dayLength || d.date == "" {
		*d = day{date: at.Time().Format(time.DateOnly), begins: at - at%dayLength}
	}
	return d.date
}

// turn is what a later turn needs to know of a call. It has no pointers, because there are many.
type turn struct {
	at    storage.Timestamp
	life  storage.Timestamp // how long a provider's cache keeps it that caches what requests mark
	input int64             // tokens
	place int32             // the number of where it went
}

// place is where a call went.
type place struct {
	account string
	model   *catalog.Model // nil if the catalogue does not know it
}

// maxValues bounds the values of an attribute that amounts are kept of; the others are together in
// the value others.
const (
	maxValues = 10_000
	others    = "…"
)

// maxTurns bounds the turns that are remembered, and what is kept of all their caches. All are forgotten
// together: the calls after that count as first turns.
const maxTurns = 1_000_000

// New returns a trial of a policy, whose models stand for what they do for an organisation.
func New(p *Policy, resolver *routing.Resolver) (*Trial, error) {
	targets, missing, err := p.resolve(resolver)
	if err != nil {
		return nil, err
	}
	t := &Trial{
		Total: newAmount(), By: make(map[string]map[string]*Amount), Targets: make(map[string]*Amount),
		policy: p, catalog: resolver.Catalog, targets: targets, missing: missing, limits: newLimits(p.Budgets),
		turns: make(map[uuid.UUID]turn), places: make(map[place]int32), tokenizers: make(map[*catalog.Model]string),
	}
	if p.NoAffinity {
		t.cached = make(map[uuid.UUID]map[string]float64)
	}
	if !p.hasConditions() {
		t.shares = p.Shares(targets, &routing.Ask{Record: new(storage.Record)})
	}
	return t, nil
}

// Add counts a recorded call r. as is the same with the creator of its key as the caller, as budgets
// count it. The error is [money.ErrTrialTooLarge].
func (t *Trial) Add(r, as *storage.Record) error {
	if r.Subscription || r.Arm == routing.ShadowArm {
		return nil // nobody pays for it by the token, or it is no call of a user
	}
	listed, _ := t.catalog.Lookup(r.Provider, r.Model)
	c := &recordedCall{Record: r, listed: listed, place: t.placeOf(r.Account, listed), shares: t.sharesOf(r)}
	if before, ok := t.turns[r.ParentID]; ok && r.Turn != plugins.Known(1) { // a sub-agent begins with instructions of its own
		c.before = &before
	}
	costs, target := t.estimate(c)
	refused := t.limits.judge(limitedCall{r, as}, target, costs)
	t.count(r, costs, refused)
	if !refused {
		for i := range t.ranges {
			t.countAt(&c.shares[i], &t.ranges[i])
		}
	}
	if c.before == nil {
		t.common = max(t.common, r.Usage.CacheRead.N)
	}
	t.longest = max(t.longest, r.Usage.Input.N)
	t.remember(c)
	if t.limits.size() > money.MaxTrialSize {
		return money.ErrTrialTooLarge
	}
	return nil
}

// remember keeps a call for the turn that follows.
func (t *Trial) remember(r *recordedCall) {
	if len(t.turns) >= maxTurns || t.caches >= maxTurns {
		clear(t.turns)
		clear(t.cached)
		t.caches = 0
	}
	t.turns[r.ID] = turn{at: r.CreatedAt, life: storage.Timestamp(t.life(r).Milliseconds()), input: r.Usage.Input.N, place: r.place}
	if t.cached == nil {
		return
	}
	before, now := t.cached[r.ParentID], make(map[string]float64)
	for _, s := range r.shares {
		if tokens := float64(r.Usage.Input.N)*s.Part + before[s.Name]*(1-s.Part); tokens > 0 {
			now[s.Name] = tokens
		}
	}
	t.cached[r.ID] = now
	t.caches += len(now)
}

// placeOf returns the number of where a call went.
func (t *Trial) placeOf(account string, m *catalog.Model) int32 {
	p := place{account, m}
	number, ok := t.places[p]
	if !ok {
		number = int32(len(t.places))
		t.places[p] = number
	}
	return number
}

// sharesOf returns the targets that could get a call.
func (t *Trial) sharesOf(r *storage.Record) []routing.Share {
	if t.shares != nil {
		return t.shares
	}
	return t.policy.Shares(t.targets, &routing.Ask{Record: r, Stream: r.Stream, Images: len(r.Assets) > 0, Tokens: r.Usage.Input.N})
}

// count adds a call to the amounts.
func (t *Trial) count(r *storage.Record, costs *costRange, refused bool) {
	t.Total.add(r.Cost, costs, refused)
	t.amountOf("model", r.Model).add(r.Cost, costs, refused)
	t.amountOf("user", r.UserID).add(r.Cost, costs, refused)
	t.amountOf("session", r.SessionID).add(r.Cost, costs, refused)
	t.amountOf("day", t.day.dateOf(r.CreatedAt)).add(r.Cost, costs, refused)
}

// amountOf returns the amount of a value of an attribute.
func (t *Trial) amountOf(attribute, value string) *Amount {
	values := t.By[attribute]
	if values == nil {
		values = make(map[string]*Amount)
		t.By[attribute] = values
	}
	if a := values[value]; a != nil {
		return a
	}
	if len(values) >= maxValues {
		value = others
	}
	if values[value] == nil {
		values[value] = newAmount()
	}
	return values[value]
}

// countAt adds what a call would have cost at a target.
func (t *Trial) countAt(s *routing.Share, costs *costRange) {
	name := s.Name
	if t.Targets[name] == nil {
		t.Targets[name] = newAmount()
	}
	a := t.Targets[name]
	a.Calls++
	a.Low.N, a.High.N = a.Low.N+costs.low.cost, a.High.N+costs.high.cost
	a.Expected.N += plugins.Nanodollars(float64(costs.expected.cost) * s.Part)
}

// Budgets says what the budgets of the policy would have refused.
func (t *Trial) Budgets() []money.TrialSummary {
	list := make([]money.TrialSummary, len(t.limits.expected))
	for i, b := range t.limits.expected {
		list[i] = b.Summary()
	}
	return list
}
