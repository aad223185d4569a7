package alert

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/lowpriority"
	"github.com/weirhq/weir/modules/internal/intake"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
)

// Measure returns what a total that is not of records is now, by subject. Subjects whose total is
// unknown are missing. With an error, there may be subjects besides; no alert is resolved then.
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
	watched map[string]*ruleState // by the configuration of the rule
	series  map[question]*series
	version uint64  // of created
	created []*Rule // the rules that were made while Weir runs
	pruned  time.Time
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
	// retention is the time for which resolved alerts are kept, in milliseconds.
	retention = storage.Timestamp(90 * 24 * time.Hour / time.Millisecond)
	// shortestSlot is the shortest time in which an alert fires once for a subject.
	shortestSlot = time.Hour
	// maxSubjects bounds the subjects of a rule that fire at the same time, and othersSubject stands
	// for all further ones.
	maxSubjects   = 100
	othersSubject = "(others)"
	// evaluationTimeout bounds the queries of one rule.
	evaluationTimeout = 30 * time.Second
	// deliveryInterval is the pause between two searches for messages of other nodes.
	deliveryInterval = 5 * time.Second
)

// New returns an engine, which does nothing until Start.
func New(o Options) *Engine {
	return &Engine{Options: o, by: control.Actor{Key: "weir"}, wake: make(chan struct{}, 1), watched: make(map[string]*ruleState)}
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

func (e *Engine) channel(name string) *Channel {
	if i := slices.IndexFunc(e.Channels, func(c *Channel) bool { return c.Name == name }); i >= 0 {
		return e.Channels[i]
	}
	return nil
}

// Evaluate compares what each rule names, and keeps which alerts fire and which are resolved.
func (e *Engine) Evaluate(ctx context.Context, now time.Time) {
	org, err := e.Organisation()
	var firing []*control.Firing
	if err == nil {
		firing, err = org.Firings(ctx, control.Page{List: control.Unresolved})
	}
	var rules []*Rule
	if err == nil {
		rules, err = e.rules(ctx, org)
	}
	if err != nil {
		if ctx.Err() == nil {
			e.Logger.Error("alerts cannot be evaluated", zap.Error(err))
		}
		return
	}
	byRule := make(map[string]map[string]*control.Firing)
	for _, f := range firing {
		if byRule[f.Rule] == nil {
			byRule[f.Rule] = make(map[string]*control.Firing)
		}
		byRule[f.Rule][f.Subject] = f
	}
	at := storage.Millis(now.Truncate(time.Minute))
	watched := make(map[string]*ruleState, len(rules))
	for _, r := range rules {
		w := e.watch(r)
		watched[r.identity()] = w
	}
	e.watched, e.series = watched, e.share(rules)
	for _, r := range rules {
		w := watched[r.identity()]
		err := e.evaluate(ctx, org, r, w, byRule[r.Name], at)
		if err != nil && !w.failed && ctx.Err() == nil && !errors.Is(err, ErrNotYet) {
			e.Logger.Error("an alert cannot be evaluated", zap.String("alert", r.Name), zap.Error(err))
		}
		w.failed = err != nil && !errors.Is(err, ErrNotYet)
		delete(byRule, r.Name)
	}
	for name, rest := range byRule {
		if !strings.HasPrefix(name, channelRule) { // the rule is gone
			for _, f := range rest {
				e.resolve(ctx, org, f, at)
			}
		}
	}
	if now.Sub(e.pruned) > time.Hour {
		e.pruned = now
		if err := prune(ctx, org, at); err != nil && ctx.Err() == nil {
			e.Logger.Error("alerts of long ago are not deleted", zap.Error(err))
		}
	}
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

// identity is the same for rules that read and compare the same.
func (r *Rule) identity() string {
	return strings.Join([]string{r.Name, r.Condition(), string(r.Filter), r.Per}, "\n")
}

// watch returns what is remembered of a rule.
func (e *Engine) watch(r *Rule) *ruleState {
	if w := e.watched[r.identity()]; w != nil {
		return w
	}
	return &ruleState{seen: make(map[string]storage.Timestamp), calm: make(map[string]int)}
}

// share returns the series of what rules ask of records, those that there are already or new ones.
// They have the totals that the rules name, and no others.
func (e *Engine) share(rules []*Rule) map[question]*series {
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
func (e *Engine) values(ctx context.Context, r *Rule, w *ruleState, at storage.Timestamp) (map[string]float64, error) {
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
		w.remember(values, r.Per == "", at)
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
func (w *ruleState) remember(values map[string]float64, ofAll bool, at storage.Timestamp) {
	if ofAll {
		w.seen[""] = at
	}
	for subject := range values {
		w.seen[subject] = at
	}
	for subject, seen := range w.seen {
		if at-seen > subjectLife {
			delete(w.seen, subject)
		} else if _, ok := values[subject]; !ok {
			values[subject] = 0
		}
	}
}

// evaluate keeps which alerts of a rule fire, and resolves those of firing that do no longer.
func (e *Engine) evaluate(ctx context.Context, org *control.Organisation, r *Rule, w *ruleState, firing map[string]*control.Firing, at storage.Timestamp) error {
	ctx, cancel := context.WithTimeout(ctx, evaluationTimeout)
	defer cancel()
	values, unknown := e.values(ctx, r, w, at)
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
	if unknown != nil {
		return unknown
	}
	for subject, f := range firing {
		if _, exceeds := exceeding[subject]; exceeds {
			delete(w.calm, subject)
			continue
		}
		if w.calm[subject]++; w.calm[subject] >= calmMinutes {
			delete(w.calm, subject)
			e.resolve(ctx, org, f, at)
		}
	}
	return nil
}

// exceeding returns the subjects of which the condition is true, with their values: those that fire
// already, and then those that are farthest from the threshold, up to maxSubjects. othersSubject
// stands for the rest, with their number: whoever names users or sessions could otherwise have any
// number of messages sent.
func (r *Rule) exceeding(values map[string]float64, firing map[string]*control.Firing) map[string]float64 {
	exceeding := make(map[string]float64)
	var fresh []string
	for subject, value := range values {
		switch {
		case !r.isTrue(value):
		case firing[subject] != nil:
			exceeding[subject] = value
		default:
			fresh = append(fresh, subject)
		}
	}
	distance := func(subject string) float64 { return math.Abs(values[subject] - r.Threshold) }
	slices.SortFunc(fresh, func(a, b string) int {
		return cmp.Or(cmp.Compare(distance(b), distance(a)), cmp.Compare(a, b))
	})
	fit := min(len(fresh), max(maxSubjects-len(exceeding), 0))
	for _, subject := range fresh[:fit] {
		exceeding[subject] = values[subject]
	}
	if rest := len(fresh) - fit; rest > 0 {
		exceeding[othersSubject] = float64(rest)
	}
	return exceeding
}

// slot is the part of time in which an alert fires once for a subject.
func slot(r *Rule, at storage.Timestamp) storage.Timestamp {
	length := storage.Timestamp(max(time.Duration(r.Over), shortestSlot).Milliseconds())
	return at - at%length
}

// alertID is the id of an alert, the same at each node.
func alertID(rule, subject string, slot storage.Timestamp) string {
	return "alert_" + digest(rule, subject, strconv.FormatInt(int64(slot), 10))
}

func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// fire keeps an alert with its messages, unless another node was first.
func (e *Engine) fire(ctx context.Context, org *control.Organisation, f *control.Firing, channels []string) error {
	for _, name := range channels {
		f.Deliveries = append(f.Deliveries, delivery(f, name, control.StateFiring))
	}
	first, err := org.Fire(ctx, f)
	if !first || err != nil {
		return err
	}
	e.Logger.Warn("an alert fires", zap.String("org", e.Org), zap.String("alert", f.Rule), zap.String("id", f.ID),
		zap.String("condition", f.Condition), zap.Float64("value", f.Value))
	e.send()
	return nil
}

// delivery is a message that shall be sent now.
func delivery(f *control.Firing, channel, state string) control.Delivery {
	now := storage.Millis(time.Now())
	return control.Delivery{ID: "msg_" + digest(f.ID, channel, state), Channel: channel, State: state, CreatedAt: now, NextAt: &now}
}

// errUnchanged ends an update that has nothing to change.
var errUnchanged = errors.New("nothing to change")

// resolve ends an alert, and tells the channels that were told of it.
func (e *Engine) resolve(ctx context.Context, org *control.Organisation, f *control.Firing, at storage.Timestamp) {
	_, err := control.Update(ctx, org, f.ID, func(f *control.Firing) error {
		if f.ResolvedAt != nil {
			return errUnchanged
		}
		f.ResolvedAt = &at
		for _, d := range slices.Clone(f.Deliveries) {
			f.Deliveries = append(f.Deliveries, delivery(f, d.Channel, control.StateResolved))
		}
		return nil
	})
	switch {
	case err == nil:
		e.Logger.Info("an alert is resolved", zap.String("org", e.Org), zap.String("alert", f.Rule), zap.String("id", f.ID))
		e.send()
	case !errors.Is(err, errUnchanged) && ctx.Err() == nil:
		e.Logger.Error("an alert is not resolved", zap.String("alert", f.Rule), zap.String("id", f.ID), zap.Error(err))
	}
}

// send has messages sent that wait.
func (e *Engine) send() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// prune deletes what was resolved long ago.
func prune(ctx context.Context, org *control.Organisation, now storage.Timestamp) error {
	const some = 100
	page, err := org.Firings(ctx, control.Page{Limit: some})
	for _, f := range page {
		if err == nil && f.ResolvedAt != nil && *f.ResolvedAt < now-retention {
			err = control.Delete[control.Firing](ctx, org, f.ID)
		}
	}
	return err
}

// Read reads a rule that is made while Weir runs.
func (e *Engine) Read(text []byte) (*Rule, error) {
	r := new(Rule)
	if err := intake.Decode(text, r); err != nil {
		return nil, err
	}
	return r, r.Provision(e.ChannelNames())
}
