package recording

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/redact"
	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/money"
	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/modules/internal/question"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/journal"
)

const (
	// pollInterval is the pause between two rounds, and bounds a round. It is the pause after an error,
	// too. firstPoll is the pause before the first round.
	pollInterval = time.Hour
	firstPoll    = time.Minute
	// pollLease is how long a node asks for an organisation's batches before another one may. Each round
	// renews it, and two rounds begin at most two intervals apart.
	pollLease = 3 * pollInterval
	// pollAge is the age from which a batch is asked for. Providers end a batch within 24 hours
	// (https://platform.openai.com/docs/guides/batch,
	// https://platform.claude.com/docs/en/build-with-claude/batch-processing). A client that fetches its
	// results within the week has their content recorded, too, which the poller leaves out.
	pollAge = 7 * 24 * time.Hour
	// pollTimeout bounds how long the state and the results of one batch take.
	pollTimeout = 5 * time.Minute
)

// BatchPoller asks providers for the results of a store's batches that no client has fetched, and records
// their calls, which settles what was set aside. It asks with the credentials of the configuration that
// created the batch. The keys of clients are kept nowhere, so that nobody asks for batches of a proxy
// that passes them. Nothing of the answers is kept: whether a site or a key masks them is not known.
type BatchPoller struct {
	store    *stores.Store
	schedule *stores.BatchSchedule
}

// NewBatchPoller returns a poller of the batches in a store.
func NewBatchPoller(store *stores.Store, schedule *stores.BatchSchedule) *BatchPoller {
	return &BatchPoller{store, schedule}
}

// PollBatches lets the app of a site poll the batches in a store while the app runs. It is called while
// handlers are provisioned.
func PollBatches(site *Site, store *stores.Store) {
	poller := NewBatchPoller(store, store.BatchSchedule())
	site.App.AddJob("poll the batches of "+site.Store, func(ctx context.Context) { poller.Run(ctx, site) })
}

// Run makes rounds until ctx ends.
func (p *BatchPoller) Run(ctx context.Context, site *Site) {
	for pause := firstPoll; ; pause = pollInterval {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		if err := p.Round(ctx, site, time.Now()); err != nil && ctx.Err() == nil {
			site.Logger.Error("providers are not asked for the results of some batches", zap.String("store", site.Store), zap.Error(err))
		}
	}
}

// Round asks once for each batch that is due. Of several nodes with the same credits, one does. It does
// nothing while the round of an earlier configuration runs. An error of one organisation does not keep
// the batches of others from being asked for.
func (p *BatchPoller) Round(ctx context.Context, site *Site, now time.Time) error {
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
	maps.DeleteFunc(next, func(_ uuid.UUID, at time.Time) bool { return now.Sub(at) > money.BatchLife })
	var due []*storage.Record
	var failures []error
	for _, org := range orgs {
		batches, err := p.unrecorded(ctx, site, j, org, now)
		leased := false
		if err == nil && len(batches) > 0 { // also if none is due: another node does not know what this one has asked
			leased, err = p.store.Lease(ctx, org, "batches", pollLease)
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("organisation %s: %w", org, err))
		}
		if leased {
			due = append(due, slices.DeleteFunc(batches, func(b *storage.Record) bool { return now.Before(next[b.ID]) })...)
		}
	}
	// If the time of a round does not suffice for all, the others come first in the next one.
	slices.SortStableFunc(due, func(a, b *storage.Record) int { return next[a.ID].Compare(next[b.ID]) })
	for i, batch := range due {
		err := p.poll(ctx, site, batch)
		if ctx.Err() != nil {
			failures = append(failures, fmt.Errorf("%d batches wait for the next round: %w", len(due)-i, ctx.Err()))
			break
		}
		pause := now.Sub(batch.CreatedAt.Time()) / 3 // the older a batch is, the longer
		if err != nil {
			pause = pollInterval
			site.Logger.Warn("the results of a batch that no client has fetched are not there yet", zap.String("org", batch.Org), zap.Stringer("id", batch.ID), zap.Error(redact.Upstream(err)))
		}
		next[batch.ID] = now.Add(pause)
	}
	return errors.Join(failures...)
}

// unrecorded returns the batches of an organisation that are old enough to be asked for, and whose
// results are not recorded.
func (p *BatchPoller) unrecorded(ctx context.Context, site *Site, j *journal.Journal, org string, now time.Time) (batches []*storage.Record, err error) {
	if len(site.App.Accounts().Of(org)) == 0 {
		return nil, nil
	}
	filter, err := question.ParseFilter([]string{
		fmt.Sprintf(`since=%s until=%s`, now.Add(-money.BatchLife).UTC().Format(time.RFC3339), now.Add(-pollAge).UTC().Format(time.RFC3339)),
		`{"request_response_rmt":{"finish_reason":{"equals":""}}}`, `request_path~batch account!=""`,
	}, now)
	if err != nil {
		return nil, err
	}
	err = j.EachPage(ctx, org, filter, func(page []*storage.Record) error {
		for _, r := range page {
			if isBatch(r) && p.owns(j, r) {
				batches = append(batches, r)
			}
		}
		return ctx.Err()
	})
	return batches, err
}

// isBatch reports whether the record is that of a request by which a provider has created a batch.
func isBatch(r *storage.Record) bool {
	if r.Dialect != plugins.Batches || r.ResponseID == "" || r.GatewayNode == "" {
		return false
	}
	inline, ok := observe.ParseInlineBatch(r.Path)
	return ok && inline.Creates || !ok && strings.HasSuffix(r.Path, "/batches")
}

// owns reports whether this node may settle a batch. Nodes that share records and no credits have a
// ledger each.
func (p *BatchPoller) owns(j *journal.Journal, r *storage.Record) bool {
	return !j.Shared() || p.store.SharesControl() || r.GatewayNode == hostname
}

// poll records the calls of a batch if the provider has its results.
func (p *BatchPoller) poll(ctx context.Context, site *Site, batch *storage.Record) error {
	accounts := site.App.Accounts().Of(batch.Org)
	i := slices.IndexFunc(accounts, func(a *providers.Account) bool {
		return a.Label == batch.Account && strings.HasPrefix(batch.TargetURL, a.BaseURL)
	})
	if i < 0 {
		return fmt.Errorf("no provider %s with the address of the batch is configured", batch.Account)
	}
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	recorder, release, err := site.Open(cancel)
	if err != nil {
		return err
	}
	defer release()
	q := &batchQuery{site: site, ctx: ctx, account: accounts[i], batch: batch, recorder: recorder}
	switch inline, ok := observe.ParseInlineBatch(batch.Path); {
	case !ok:
		return q.files()
	case inline.Dialect == plugins.Messages:
		return q.messages()
	default:
		version, _, _ := strings.Cut(batch.Path, "models/")
		return q.results(version+batch.ResponseID, observe.Results{File: batch.ResponseID, Batch: batch.ResponseID, Inline: true})
	}
}

// batchQuery asks a provider about one batch.
type batchQuery struct {
	site     *Site
	ctx      context.Context
	account  *providers.Account
	batch    *storage.Record // as it was when the round began: it may have been erased since
	recorder Recorder
}

// messages asks Anthropic.
func (q *batchQuery) messages() error {
	id := q.batch.ResponseID
	path := "/v1" + observe.MessageBatches + "/" + url.PathEscape(id)
	_, ended, err := q.state(path)
	if err != nil || !ended {
		return err
	}
	return q.results(path+"/results", observe.Results{File: id, Batch: id})
}

// files asks OpenAI, or who is like it. Calls that have failed are in a file of their own, which is read
// first: the other one ends the batch.
func (q *batchQuery) files() error {
	object, ended, err := q.state("/v1/batches/" + url.PathEscape(q.batch.ResponseID))
	if err != nil || !ended {
		return err
	}
	for _, name := range []string{"error_file_id", "output_file_id"} {
		file := gjson.GetBytes(object, name).Str
		if file == "" {
			continue
		}
		if err := q.results("/v1/files/"+url.PathEscape(file)+"/content", observe.Results{File: file, Batch: q.batch.ResponseID}); err != nil {
			return err
		}
	}
	q.exchange("").Earlier().SeeBatch(q.batch.ResponseID, object)
	return nil
}

// state returns the provider's object of the batch, and whether the batch has ended.
func (q *batchQuery) state(path string) (object []byte, ended bool, err error) {
	body, err := q.get(path)
	if err != nil {
		return nil, false, err
	}
	defer body.Close()
	if object, err = translate.ReadAll(io.LimitReader(body, maxBatchObject), -1); err != nil {
		return nil, false, err
	}
	state, ok := observe.ParseBatch(object)
	if !ok || state.ID != q.batch.ResponseID {
		return nil, false, errors.New("the provider answered no batch")
	}
	return object, state.Ended, nil
}

// results records the calls whose results are at a path.
func (q *batchQuery) results(path string, of observe.Results) error {
	body, err := q.get(path)
	if err != nil {
		return err
	}
	defer body.Close()
	results := q.exchange(path).Results(of, 0)
	if results.batchRecord == nil {
		return errors.New("the record of the batch cannot be read, or was erased: none of its calls is recorded")
	}
	results.hasAll = of.File == of.Batch // OpenAI has two files
	chunk := make([]byte, 64<<10)
	for {
		n, err := body.Read(chunk)
		results.Write(chunk[:n])
		if err != nil {
			results.Close(errors.Is(err, io.EOF))
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// exchange returns the exchange with a path of the provider. It has no record, and keeps nothing.
func (q *batchQuery) exchange(path string) *Exchange {
	x := &Exchange{Record: *q.batch, site: q.site, ctx: q.ctx, recorder: q.recorder}
	x.Record.Path, x.Record.TargetURL = path, q.account.BaseURL+path
	x.Kept.Omit(&x.Record, true, true)
	return x
}

// get asks for a path of the account. It costs nothing, and no budget counts it.
func (q *batchQuery) get(path string) (io.ReadCloser, error) {
	req, err := q.request(path)
	if err != nil {
		return nil, err
	}
	bill, err := q.site.App.Money().Admit(q.ctx, money.Spending{Org: q.batch.Org, Account: q.account, Record: q.batch, Files: true, Shadow: true})
	if err != nil {
		return nil, err
	}
	resp, err := bill.Send(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close() // nobody reads it
		return nil, fmt.Errorf("the provider answered with the status %d", resp.StatusCode)
	}
	return resp.Body, nil
}

// request returns a request for a path, as the gateway makes it if the provider has the endpoint there,
// else as the proxy does.
func (q *batchQuery) request(path string) (*http.Request, error) {
	if has, ok := q.account.API.(translate.Endpoints); ok {
		to, err := q.account.Target("", nil, (*access.Key)(nil))
		if err != nil {
			return nil, err
		}
		req, err := has.PrepareEndpoint(q.ctx, http.MethodGet, path, to)
		if !errors.Is(err, errors.ErrUnsupported) {
			return req, err
		}
	}
	if !q.account.CanForward() {
		return nil, fmt.Errorf("the provider %s has no batches that its key alone may read", q.account.Label)
	}
	req, err := http.NewRequestWithContext(q.ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	q.account.Authorize(req.Header)
	return q.account.Direct(req), nil
}
