package whatif

import (
	"slices"
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
	spans   []span // of the call that is added, at each of its targets
	all     span   // of all its targets together
	turns   map[uuid.UUID]turn
	places  map[place]int32 // their numbers
	// tokenizers are the names of those of the models, at most as many as the catalogue has.
	tokenizers map[*catalog.Model]string
	// cached are the tokens that each target's cache is expected to have of a conversation, by its
	// last turn and the name of the target. It is nil if conversations stay at their target.
	cached   map[uuid.UUID]map[string]float64
	caches   int    // that cached has, of all turns together
	common   int64  // tokens that caches had of calls that begin a conversation, the most so far
	longest  int64  // input so far
	day      string // of the call before, and when it begins
	midnight storage.Timestamp
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

// New returns a trial of a policy, whose models stand for what they do for an organisation. A policy
// that is not in force may name providers that have no key yet, because nobody is called.
func New(p *Policy, resolver *routing.Resolver) (*Trial, error) {
	trial := &routing.Resolver{Catalog: resolver.Catalog, Accounts: resolver.Accounts, Aliases: map[string]*routing.Alias{trialName: &p.Alias}}
	if p.Name != "" {
		trial.Keyless = resolver.Keyless
	}
	targets, missing, err := trial.Resolve(trialName)
	if p.Name == "" && (err != nil || len(missing) > 0) {
		trial = &routing.Resolver{Catalog: resolver.Catalog, Accounts: slices.Concat(resolver.Accounts, resolver.Keyless), Aliases: trial.Aliases}
		targets, missing, err = trial.Resolve(trialName)
	}
	if err != nil {
		return nil, err
	}
	t := &Trial{
		Total: newAmount(), By: make(map[string]map[string]*Amount), Targets: make(map[string]*Amount),
		policy: p, catalog: resolver.Catalog, targets: targets, missing: missing, limits: newLimits(p.Budgets), turns: make(map[uuid.UUID]turn), places: make(map[place]int32), tokenizers: make(map[*catalog.Model]string),
	}
	if p.NoAffinity {
		t.cached = make(map[uuid.UUID]map[string]float64)
	}
	if !p.hasConditions() {
		t.shares = p.Shares(targets, &routing.Ask{Record: new(storage.Record)})
	}
	return t, nil
}

const trialName = "whatif"

// Add counts a recorded call r. as is the same with the creator of its key as the caller, as budgets
// count it. The error is [money.ErrTrialTooLarge].
func (t *Trial) Add(r, as *storage.Record) error {
	if r.Subscription || r.Arm == routing.ShadowArm {
		return nil // nobody pays for it by the token, or it is no call of a user
	}
	listed, _ := t.catalog.Lookup(r.Provider, r.Model)
	before, follows := t.turns[r.ParentID]
	c := &recordedCall{Record: r, listed: listed, place: t.placeOf(r.Account, listed), shares: t.sharesOf(r)}
	follows = follows && r.Turn != plugins.Known(1) // a sub-agent begins with instructions of its own
	if follows {
		c.before = &before
	}
	would, at := t.would(c)
	refused := t.limits.judge(limitedCall{r, as}, at, would)
	t.count(r, would, refused)
	if !refused {
		for i := range t.spans {
			t.countAt(&c.shares[i], &t.spans[i])
		}
	}
	if !follows {
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
func (t *Trial) count(r *storage.Record, would *span, refused bool) {
	if r.CreatedAt < t.midnight || r.CreatedAt >= t.midnight+dayLength || t.day == "" {
		t.midnight = r.CreatedAt - r.CreatedAt%dayLength
		t.day = r.CreatedAt.Time().Format(time.DateOnly)
	}
	t.Total.add(r.Cost, would, refused)
	t.amountOf("model", r.Model).add(r.Cost, would, refused)
	t.amountOf("user", r.UserID).add(r.Cost, would, refused)
	t.amountOf("session", r.SessionID).add(r.Cost, would, refused)
	t.amountOf("day", t.day).add(r.Cost, would, refused)
}

const dayLength = storage.Timestamp(24 * time.Hour / time.Millisecond)

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
func (t *Trial) countAt(s *routing.Share, would *span) {
	name := s.Name
	if t.Targets[name] == nil {
		t.Targets[name] = newAmount()
	}
	a := t.Targets[name]
	a.Calls++
	a.Low.N, a.High.N = a.Low.N+would.low.cost, a.High.N+would.high.cost
	a.Expected.N += plugins.Nanodollars(float64(would.expected.cost) * s.Part)
}

// Budgets says what the budgets of the policy would have refused.
func (t *Trial) Budgets() []money.TrialSummary {
	list := make([]money.TrialSummary, len(t.limits.expected))
	for i, b := range t.limits.expected {
		list[i] = b.Summary()
	}
	return list
}

// Assumptions are what the amounts rest on, beside the records and the catalogue.
func (t *Trial) Assumptions() []string {
	list := []string{
		"Every target answers, within its limits: no call falls over to another one.",
		"A model with the tokenizer of the recorded one counts and writes as many tokens. With another one, the input is 0.7 to 1.5 times and the output 0.5 to 2 times as long. Each maker has its own; Anthropic's of Opus 4.7, Sonnet 5 and later counts 1.3 times as much as its earlier one (platform.claude.com/docs/en/build-with-claude/token-counting), and OpenAI's of gpt-4o and later is another than that of gpt-4 (github.com/openai/tiktoken).",
	}
	if t.policy.CacheLife == "" {
		list = append(list, "A conversation whose turn before went to the same target finds the turn in the provider's cache, for an hour, or for as long as its marks say, 5 minutes or an hour, where the provider caches what requests mark.")
	} else {
		list = append(list, "A conversation whose turn before went to the same target finds the turn in the provider's cache, for an hour, or for "+t.policy.CacheLife+" where the provider caches what requests mark.")
	}
	if len(t.policy.Budgets) == 0 {
		list = append(list, "Budgets and limits refuse nothing: a policy may have budgets.")
	} else {
		list = append(list,
			"A budget sets aside what a call would have used. One that refuses sets aside what a call may use at most, and so refuses these calls, and others that come near to the limit.",
			"A call that follows a refused one is made all the same.",
			"A budget of models or providers counts a call at the target that most such calls would get.")
	}
	if t.policy.Name != "" {
		list = append(list, "A call of "+t.policy.Name+" went by the alias as it is now, unless the record has an arm that no alias has.")
	}
	for _, warning := range t.missing {
		list = append(list, "No call goes to a model that the organisation cannot call: "+warning+".")
	}
	for _, target := range t.targets {
		if target.Listed == nil {
			list = append(list, "The catalogue has no price for "+target.Name+": what goes there is unknown.")
		}
	}
	if t.policy.Strategy == routing.LeastBusy || t.policy.Strategy == routing.Fastest {
		list = append(list, "The targets get equal shares: how busy and how fast they would have been is not known.")
	}
	if slices.ContainsFunc(t.policy.Models, func(c *routing.Choice) bool { return len(c.Set) > 0 }) {
		list = append(list, "Of the parameters that a model sets, the service tier and the limits of the output count. The others, such as the effort, do not change how long its answers are.")
	}
	return list
}
