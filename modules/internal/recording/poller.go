package recording

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/redact"
	"github.com/weirhq/weir/modules/internal/money"
	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/modules/internal/question"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/journal"
)

const (
	// pollInterval is the pause between two rounds, and bounds a round. It is the shortest pause between two
	// questions for one record, too. firstPoll is the pause before the first round.
	pollInterval = time.Hour
	firstPoll    = time.Minute
	// pollLease is how long a node asks for an organisation before another one may. Each round renews it,
	// and two rounds begin at most two intervals apart.
	pollLease = 3 * pollInterval
	// batchAge is the age from which a batch is asked for. Providers end a batch within 24 hours
	// (https://platform.openai.com/docs/guides/batch,
	// https://platform.claude.com/docs/en/build-with-claude/batch-processing). A client that fetches its
	// results within the week has their content recorded, too, which the poller leaves out.
	batchAge = 7 * 24 * time.Hour
	// sessionPause is the longest pause between two questions for a session that the account can see, which
	// may go on at any time.
	sessionPause = 24 * time.Hour
	// maxPolls bounds the questions of a round.
	maxPolls = 10_000
	// pollTimeout bounds how long the answers for one record take.
	pollTimeout = 5 * time.Minute
	// pollLife is the age up to which a provider is asked.
	pollLife = money.BatchLife
)

// Poller asks providers for what they state only after a call: the results of batches that no client has
// fetched, whose calls it records, which settles what was set aside; and what the sessions of agents have
// used. It asks for a batch with the credentials by which it was created. The keys of clients are kept
// nowhere: the session that one has created is asked for with the organisation's account at the same
// provider, if it has one, and a batch is not. Nothing of the answers is kept but usage: whether a site or a
// key masks them is not known.
type Poller struct {
	store    *stores.Store
	schedule *stores.PollSchedule
}

// NewPoller returns a poller of what is in a store.
func NewPoller(store *stores.Store, schedule *stores.PollSchedule) *Poller {
	return &Poller{store, schedule}
}

// Poll lets the app of a site ask for the batches and sessions in a store while the app runs. It is called
// while handlers are provisioned.
func Poll(site *Site, store *stores.Store) {
	poller := NewPoller(store, store.PollSchedule())
	site.App.AddJob("poll the providers of "+site.Store, func(ctx context.Context) { poller.Run(ctx, site) })
}

// Run makes rounds until ctx ends.
func (p *Poller) Run(ctx context.Context, site *Site) {
	for pause := firstPoll; ; pause = pollInterval {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		if err := p.Round(ctx, site, time.Now()); err != nil && ctx.Err() == nil {
			site.Logger.Error("providers are not asked for some batches and sessions", zap.String("store", site.Store), zap.Error(err))
		}
	}
}

// Round asks once for each record that is due. Of several nodes with the same credits, one does. It does
// nothing while the round of an earlier configuration runs. An error of one organisation does not keep
// the records of others from being asked for.
func (p *Poller) Round(ctx context.Context, site *Site, now time.Time) error {
	if !p.schedule.TryLock() {
		return nil
	}
	defer p.schedule.Unlock()
	if p.schedule.Next == nil {
		p.schedule.Next = make(map[uuid.UUID]time.Time)
	}
	next := p.schedule.Next
	ctx, cancel := context.WithTimeout(ctx, pollInterval)
	defer cancel()
	defer p.store.Hold()()
	j, err := p.store.Journal()
	if err != nil {
		return err
	}
	orgs, err := j.Backend().Organisations(ctx)
	if err != nil {
		return err
	}
	maps.DeleteFunc(next, func(_ uuid.UUID, at time.Time) bool { return now.Sub(at) > pollLife })
	var due []*storage.Record
	var failures []error
	for _, org := range orgs {
		unsettled, err := p.unsettled(ctx, site, j, org, now)
		leased := false
		if err == nil && len(unsettled) > 0 { // also if none is due: another node does not know what this one has asked
			leased, err = p.store.Lease(ctx, org, "batches", pollLease) // and sessions: the name is that of earlier versions
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("organisation %s: %w", org, err))
		}
		if leased {
			due = append(due, slices.DeleteFunc(unsettled, func(r *storage.Record) bool { return now.Before(next[r.ID]) })...)
		}
	}
	// If a round does not suffice for all, the others come first in the next one.
	due = longestWaiting(due, next)
	if len(due) > maxPolls {
		due = due[:maxPolls]
		failures = append(failures, fmt.Errorf("more than %d batches and sessions are to be asked for: the others wait for the next round", maxPolls))
	}
	for i, r := range due {
		err := p.poll(ctx, site, r)
		if ctx.Err() != nil {
			failures = append(failures, fmt.Errorf("%d batches and sessions wait for the next round: %w", len(due)-i, ctx.Err()))
			break
		}
		if err != nil {
			level, reason := zap.WarnLevel, redact.Upstream(err)
			if own, ok := errors.AsType[*pollError](err); ok {
				reason = own
			}
			if isSession(r) && isUnseen(err) { // as is usual for one that a client has created with its own key
				level = zap.DebugLevel
			}
			site.Logger.Log(level, "a provider does not state what a batch or a session has used", zap.String("org", r.Org), zap.Stringer("id", r.ID), zap.Error(reason))
		}
		next[r.ID] = now.Add(pauseAfter(r, now, err))
	}
	return errors.Join(failures...)
}

// longestWaiting sorts records by when they are to be asked for, the earliest first, and leaves one more
// than fit a round at most.
func longestWaiting(records []*storage.Record, next map[uuid.UUID]time.Time) []*storage.Record {
	slices.SortStableFunc(records, func(a, b *storage.Record) int { return next[a.ID].Compare(next[b.ID]) })
	return slices.Delete(records, min(len(records), maxPolls+1), len(records))
}

// pauseAfter returns how long a record is not asked for again: the older it is, the longer. Results of a
// batch that are not there after an error may be there soon, and be gone later. A session that the account
// cannot see is seldom seen later.
func pauseAfter(r *storage.Record, now time.Time, err error) time.Duration {
	age := now.Sub(r.CreatedAt.Time())
	switch {
	case isSession(r) && isUnseen(err):
		return max(age, sessionPause)
	case isSession(r):
		return min(max(age/3, pollInterval), sessionPause)
	case err != nil:
		return pollInterval
	}
	return age / 3
}

// unsettled returns the batches of an organisation that are old enough to be asked for, and whose results
// are not recorded, and the sessions that have not ended. If they are more than fit a round, it leaves out
// those that were asked for last.
func (p *Poller) unsettled(ctx context.Context, site *Site, j *journal.Journal, org string, now time.Time) (found []*storage.Record, err error) {
	if len(site.App.Accounts().Of(org)) == 0 {
		return nil, nil
	}
	filter, err := question.ParseFilter(unsettledTerms, now)
	if err != nil {
		return nil, err
	}
	err = j.EachPage(ctx, org, filter, func(page []*storage.Record) error {
		for _, r := range page {
			if (isBatch(r) || isSession(r)) && p.owns(j, r) {
				found = append(found, r)
			}
		}
		if len(found) > maxPolls {
			found = longestWaiting(found, p.schedule.Next)
		}
		return ctx.Err()
	})
	return found, err
}

// unsettledTerms choose what is asked for. They leave out what clients ask about batches and sessions, and
// the results of batches, of which there are many more.
var unsettledTerms = []string{
	fmt.Sprintf(`since=%s until=%s gateway_node!="" response_id!=""`, pollLife, pollInterval),
	fmt.Sprintf(`(until=%s account!="" finish_reason="" (`, batchAge),
	pathEnds("/batches"), "or", pathEnds("/batches/"), "or", pathEnds(":batchGenerateContent"),
	`) or finish_reason!=` + sessionEnded + ` (`,
	pathEnds("/sessions"), "or", pathEnds("/sessions/"), `))`,
}

// pathEnds is the filter of the requests whose path ends so.
func pathEnds(with string) string {
	return `{"request_response_rmt":{"request_path":{"like":"%` + with + `"}}}`
}

// owns reports whether this node may ask for a record. Nodes that share records and no credits have a
// ledger each.
func (p *Poller) owns(j *journal.Journal, r *storage.Record) bool {
	return !j.Shared() || p.store.SharesControl() || r.GatewayNode == hostname
}

// poll asks for a record.
func (p *Poller) poll(ctx context.Context, site *Site, r *storage.Record) error {
	accounts := site.App.Accounts().Of(r.Org)
	i := slices.IndexFunc(accounts, func(a *providers.Account) bool {
		pays := a.Label == r.Account || r.Account == "" && a.Provider == r.Provider
		return pays && a.BaseURL != "" && strings.HasPrefix(r.TargetURL, strings.TrimSuffix(a.BaseURL, "/")+"/")
	})
	if i < 0 {
		if r.Account == "" {
			return nil // nobody has said that Weir has a key for what clients create with theirs
		}
		return pollErrorf("no provider %s with the address of the call is configured", r.Account)
	}
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	recorder, release, err := site.Open(cancel)
	if err != nil {
		return err
	}
	defer release()
	q := &pollQuery{site: site, ctx: ctx, account: accounts[i], record: r, recorder: recorder}
	if isSession(r) {
		return q.session()
	}
	return q.batch()
}

// isBatch reports whether the record is that of a request by which a provider has created a batch with an
// account of the configuration.
func isBatch(r *storage.Record) bool {
	if r.Dialect != plugins.Batches || r.ResponseID == "" || r.GatewayNode == "" || r.Account == "" {
		return false
	}
	inline, ok := observe.ParseInlineBatch(r.Path)
	return ok && inline.Creates || !ok && strings.HasSuffix(r.Path, "/batches")
}

// isSession reports whether the record is that of a request by which a provider has created a session of
// an agent.
func isSession(r *storage.Record) bool {
	return r.Dialect == plugins.Runs && r.ResponseID != "" && r.GatewayNode != "" && observe.IsAgentSession(r.Path)
}
