package alert

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/lowpriority"
	"github.com/weirhq/weir/modules/internal/intake"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
)

// Measure returns the value, now, of a total that does not come from records, by subject. Unknown
// subjects are missing. An error may come with some subjects: these can fire, but no alert is resolved.
type Measure func(ctx context.Context, over time.Duration) (map[string]float64, error)

// ErrNotYet is the error of a total that is not known yet, and will be.
var ErrNotYet = errors.New("the total is not known yet")

// Options are what an engine works with.
type Options struct {
	// Org is the organisation whose records and objects the engine reads.
	Org string
	// Rules are the rules of the configuration, which are provisioned.
	Rules []*Rule
	// Channels are the channels of the configuration, which are provisioned.
	Channels []*Channel
	// Groups returns what adds up records.
	Groups func() (storage.Grouper, error)
	// Control returns what keeps alerts and the rules that are made while Weir runs.
	Control func() (control.Log, error)
	// Measures are the totals that are not of records.
	Measures map[string]Measure
	// Logger logs what cannot be evaluated or sent.
	Logger *zap.Logger
}

// Engine evaluates the rules of one organisation and sends its messages. Several engines of
// several nodes may do so at the same time.
type Engine struct {
	Options
	by control.Actor
	// wake has an element when there may be a message to send.
	wake chan struct{}
	stop context.CancelFunc
	done sync.WaitGroup

	// What follows belongs to the goroutine that evaluates.
	states   map[string]*ruleState // by the identity of the rule
	series   map[question]*series
	version  uint64    // of created
	created  []*Rule   // the rules that were made while Weir runs
	prunedAt time.Time // when alerts of long ago were last deleted
}

// ruleState is what an engine remembers of a rule between two evaluations.
type ruleState struct {
	// seen is when each subject was last seen.
	seen map[string]storage.Timestamp
	// calm counts the evaluations in a row that found the condition of a firing alert false.
	calm map[string]int
	// failed is whether the last evaluation failed, which is logged once.
	failed bool
}

const (
	aWeek = 7 * 24 * time.Hour
	// calmMinutes is the number of evaluations in a row without a match that resolve an alert. One is
	// too few: a total about its threshold, or a node that sees records later, would send messages
	// each minute.
	calmMinutes = 3
	// subjectLife is the time for which a subject without records counts as 0, in milliseconds.
	subjectLife = storage.Timestamp(7 * 24 * time.Hour / time.Millisecond)
	// evaluationTimeout bounds the queries of one rule.
	evaluationTimeout = 30 * time.Second
	// deliveryInterval is the pause between two searches for messages of other nodes.
	deliveryInterval = 5 * time.Second
)

// New returns an engine, which does nothing until Start.
func New(o Options) *Engine {
	return &Engine{Options: o, by: control.Actor{Key: "weir"}, wake: make(chan struct{}, 1), states: make(map[string]*ruleState)}
}

// Start begins to evaluate, at each full minute, and to send. Stop ends it.
func (e *Engine) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	e.stop = cancel
	e.done.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute))):
			}
			lowpriority.Run(func() { e.Evaluate(ctx, time.Now()) })
		}
	})
	e.done.Go(func() {
		for {
			e.Deliver(ctx)
			select {
			case <-ctx.Done():
				return
			case <-e.wake:
			case <-time.After(deliveryInterval):
			}
		}
	})
}

// Stop ends what Start began. What is not sent stays for the next process.
func (e *Engine) Stop() {
	if e.stop != nil {
		e.stop()
		e.done.Wait()
	}
}

// Organisation returns the objects of the organisation.
func (e *Engine) Organisation() (*control.Organisation, error) {
	log, err := e.Control()
	return &control.Organisation{Log: log, Name: e.Org, By: e.by}, err
}

// ChannelNames are the names of the channels, in the order of the configuration.
func (e *Engine) ChannelNames() (names []string) {
	for _, c := range e.Channels {
		names = append(names, c.Name)
	}
	return names
}

// Read reads a rule that is made while Weir runs.
func (e *Engine) Read(text []byte) (*Rule, error) {
	r := new(Rule)
	if err := intake.Decode(text, r); err != nil {
		return nil, err
	}
	return r, r.Provision(e.ChannelNames())
}

func (e *Engine) channel(name string) *Channel {
	if i := slices.IndexFunc(e.Channels, func(c *Channel) bool { return c.Name == name }); i >= 0 {
		return e.Channels[i]
	}
	return nil
}

// Evaluate compares what each rule names, and keeps which alerts fire and which are resolved.
func (e *Engine) Evaluate(ctx context.Context, now time.Time) {
	org, rules, firing, err := e.load(ctx)
	if err != nil {
		if ctx.Err() == nil {
			e.Logger.Error("alerts cannot be evaluated", zap.Error(err))
		}
		return
	}
	at := storage.Millis(now.Truncate(time.Minute))
	states := make(map[string]*ruleState, len(rules))
	for _, r := range rules {
		states[r.identity()] = e.stateOf(r)
	}
	e.states, e.series = states, e.seriesFor(rules)
	for _, r := range rules {
		state := states[r.identity()]
		err := e.evaluate(ctx, org, r, state, firing[r.Name], at)
		if err != nil && !state.failed && ctx.Err() == nil && !errors.Is(err, ErrNotYet) {
			e.Logger.Error("an alert cannot be evaluated", zap.String("alert", r.Name), zap.Error(err))
		}
		state.failed = err != nil && !errors.Is(err, ErrNotYet)
		delete(firing, r.Name)
	}
	for name, rest := range firing {
		if !strings.HasPrefix(name, channelRule) { // the rule is gone
			for _, f := range rest {
				e.resolve(ctx, org, f, at)
			}
		}
	}
	if now.Sub(e.prunedAt) > time.Hour {
		e.prunedAt = now
		if err := prune(ctx, org, at); err != nil && ctx.Err() == nil {
			e.Logger.Error("alerts of long ago are not deleted", zap.Error(err))
		}
	}
}

// load returns the organisation, its rules, and its alerts that fire by rule and subject.
func (e *Engine) load(ctx context.Context) (*control.Organisation, []*Rule, map[string]map[string]*control.Firing, error) {
	org, err := e.Organisation()
	if err != nil {
		return nil, nil, nil, err
	}
	unresolved, err := org.Firings(ctx, control.Page{List: control.Unresolved})
	if err != nil {
		return nil, nil, nil, err
	}
	firing := make(map[string]map[string]*control.Firing)
	for _, f := range unresolved {
		if firing[f.Rule] == nil {
			firing[f.Rule] = make(map[string]*control.Firing)
		}
		firing[f.Rule][f.Subject] = f
	}
	rules, err := e.rules(ctx, org)
	return org, rules, firing, err
}

// rules returns the rules of the configuration and those that were made while Weir runs.
func (e *Engine) rules(ctx context.Context, org *control.Organisation) ([]*Rule, error) {
	if version := org.Log.Version(); e.created == nil || version != e.version {
		rules, err := control.All[control.AlertRule](ctx, org, control.Page{})
		if err != nil {
			return nil, err
		}
		created := make([]*Rule, 0, len(rules))
		for _, k := range rules {
			r, err := e.Read(k.Object.Rule)
			switch {
			case err != nil:
				e.Logger.Error("an alert that was made while Weir runs is not evaluated", zap.String("alert", k.Object.Name), zap.Error(err))
			case e.Configured(r.Name) == nil:
				created = append(created, r)
			}
		}
		e.created, e.version = created, version
	}
	return slices.Concat(e.Rules, e.created), nil
}

// Configured returns the rule of the configuration with a name, nil for none.
func (e *Engine) Configured(name string) *Rule {
	if i := slices.IndexFunc(e.Rules, func(r *Rule) bool { return r.Name == name }); i >= 0 {
		return e.Rules[i]
	}
	return nil
}

// stateOf returns what is remembered of a rule.
func (e *Engine) stateOf(r *Rule) *ruleState {
	if state := e.states[r.identity()]; state != nil {
		return state
	}
	return &ruleState{seen: make(map[string]storage.Timestamp), calm: make(map[string]int)}
}

// seriesFor returns the series of what rules ask of records: existing ones, else new ones. They have
// the totals that the rules name, and no others.
func (e *Engine) seriesFor(rules []*Rule) map[question]*series {
	all := make(map[question]*series)
	named := make(map[question][]storage.TotalKey)
	add := func(r *Rule, ago time.Duration) {
		q, key := r.question(ago), storage.TotalKey(r.Total)
		if all[q] == nil {
			all[q] = cmp.Or(e.series[q], newSeries(r, q))
		}
		all[q].add(key)
		all[q].asked = false
		named[q] = append(named[q], key)
	}
	for _, r := range rules {
		if subjects[r.Total] != "" {
			continue
		}
		add(r, 0)
		if r.Than != "" {
			add(r, aWeek)
		}
	}
	for q, s := range all {
		maps.DeleteFunc(s.totals, func(key storage.TotalKey, _ *total) bool { return !slices.Contains(named[q], key) })
	}
	return all
}

// values returns what the rule compares, by subject. What is unknown is missing.
func (e *Engine) values(ctx context.Context, r *Rule, state *ruleState, at storage.Timestamp) (map[string]float64, error) {
	if measure := e.Measures[r.Total]; measure != nil {
		return measure(ctx, time.Duration(r.Over))
	}
	groups, err := e.Groups()
	if err != nil {
		return nil, err
	}
	key := storage.TotalKey(r.Total)
	values, err := e.series[r.question(0)].totalsAt(ctx, groups, e.Org, key, at)
	if err != nil || !key.IsSum() {
		return values, err
	}
	if r.isTrue(0) { // a sum of no records
		values = maps.Clone(values)
		state.remember(values, r.Per == "", at)
	}
	if r.Than == "" {
		return values, nil
	}
	before, err := e.series[r.question(aWeek)].totalsAt(ctx, groups, e.Org, key, at)
	if err != nil {
		return nil, err
	}
	times := make(map[string]float64, len(before))
	for subject, n := range before {
		if n > 0 {
			times[subject] = values[subject] / n
		}
	}
	return times, nil
}

// remember adds the subjects that had records some time ago to the values, as 0. A rule about all
// records has one subject always.
func (state *ruleState) remember(values map[string]float64, ofAll bool, at storage.Timestamp) {
	if ofAll {
		state.seen[""] = at
	}
	for subject := range values {
		state.seen[subject] = at
	}
	for subject, seen := range state.seen {
		if at-seen > subjectLife {
			delete(state.seen, subject)
		} else if _, ok := values[subject]; !ok {
			values[subject] = 0
		}
	}
}

// evaluate keeps which alerts of a rule fire, and resolves those of firing that do no longer.
func (e *Engine) evaluate(ctx context.Context, org *control.Organisation, r *Rule, state *ruleState, firing map[string]*control.Firing, at storage.Timestamp) error {
	ctx, cancel := context.WithTimeout(ctx, evaluationTimeout)
	defer cancel()
	values, failure := e.values(ctx, r, state, at)
	exceeding := r.exceeding(values, firing)
	for subject, value := range exceeding {
		if firing[subject] == nil {
			f := &control.Firing{
				ID: alertID(r.Name, subject, slot(r, at)), Org: e.Org, Rule: r.Name, Per: r.subject(), Subject: subject,
				Condition: r.Condition(), Value: value, FiredAt: storage.Millis(time.Now()),
			}
			if err := e.fire(ctx, org, f, r.To); err != nil {
				return err
			}
		}
	}
	if failure != nil { // an alert whose subject is among the missing ones may still be true
		return failure
	}
	for subject, f := range firing {
		if _, exceeds := exceeding[subject]; exceeds {
			delete(state.calm, subject)
			continue
		}
		if state.calm[subject]++; state.calm[subject] >= calmMinutes {
			delete(state.calm, subject)
			e.resolve(ctx, org, f, at)
		}
	}
	return nil
}
