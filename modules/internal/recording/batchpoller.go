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
	// pollInterval is the pause between two rounds, and bounds a round. firstPoll is the pause before
	// the first.
	pollInterval = time.Hour
	firstPoll    = time.Minute
	// pollAge is the age from which a batch is asked for. Providers end a batch within 24 hours
	// (https://platform.openai.com/docs/guides/batch,
	// https://platform.claude.com/docs/en/build-with-claude/batch-processing), and most clients have
	// fetched its results by then.
	pollAge = 25 * time.Hour
	// pollTimeout bounds how long the state and the results of one batch take.
	pollTimeout = 5 * time.Minute
)

// BatchPoller asks providers for the results of batches that no client has fetched, and records their
// calls, which settles what was set aside. It asks with the credentials of the configuration that
// created the batch. The keys of clients are kept nowhere, so that nobody asks for batches of a proxy
// that passes them. Nothing of the answers is kept: whether a site or a key masks them is not known.
type BatchPoller struct {
	site  *Site
	store *stores.Store
	// asked has when each batch was last asked for. It belongs to the goroutine of Run.
	asked map[uuid.UUID]time.Time
}

// NewBatchPoller returns a poller of the batches in a store.
func NewBatchPoller(site *Site, store *stores.Store) *BatchPoller {
	return &BatchPoller{site, store, make(map[uuid.UUID]time.Time)}
}

// PollBatches lets the app of a site poll the batches in a store while the app runs. It is called while
// handlers are provisioned.
func PollBatches(site *Site, store *stores.Store) {
	site.App.AddJob("poll the batches of "+site.Store, NewBatchPoller(site, store).Run)
}

// Run makes rounds until ctx ends.
func (p *BatchPoller) Run(ctx context.Context) {
	for pause := firstPoll; ; pause = pollInterval {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		if err := p.Round(ctx, time.Now()); err != nil && ctx.Err() == nil {
			p.site.Logger.Error("providers are not asked for the results of batches", zap.String("store", p.site.Store), zap.Error(err))
		}
	}
}

// Round asks once for each batch that is due. Of several nodes with the same credits, one does.
func (p *BatchPoller) Round(ctx context.Context, now time.Time) error {
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
	maps.DeleteFunc(p.asked, func(_ uuid.UUID, at time.Time) bool { return now.Sub(at) > money.BatchLife })
	for _, org := range orgs {
		due, err := p.due(ctx, j, org, now)
		if err != nil {
			return err
		}
		if len(due) == 0 {
			continue
		}
		leased, err := p.store.Lease(ctx, org, "batches", 2*pollInterval)
		if err != nil {
			return err
		}
		if !leased {
			continue
		}
		for _, batch := range due {
			p.asked[batch.ID] = now
			if err := p.poll(ctx, batch); err != nil {
				p.site.Logger.Warn("the results of a batch that no client has fetched are not there yet", zap.String("org", org), zap.Stringer("id", batch.ID), zap.Error(redact.Upstream(err)))
			}
		}
	}
	return nil
}

// due returns the batches of an organisation whose results are not recorded, and for which it is time to
// ask. The older a batch is, the longer are the pauses.
func (p *BatchPoller) due(ctx context.Context, j *journal.Journal, org string, now time.Time) (due []*storage.Record, err error) {
	if len(p.site.App.Accounts().Of(org)) == 0 {
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
			age := now.Sub(r.CreatedAt.Time())
			if isBatch(r) && p.owns(j, r) && now.Sub(p.asked[r.ID]) > age/4 {
				due = append(due, r)
			}
		}
		return ctx.Err()
	})
	return due, err
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
func (p *BatchPoller) poll(ctx context.Context, batch *storage.Record) error {
	accounts := p.site.App.Accounts().Of(batch.Org)
	i := slices.IndexFunc(accounts, func(a *providers.Account) bool {
		return a.Label == batch.Account && strings.HasPrefix(batch.TargetURL, a.BaseURL)
	})
	if i < 0 {
		return fmt.Errorf("no provider %s with the address of the batch is configured", batch.Account)
	}
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	recorder, release, err := p.site.Open(cancel)
	if err != nil {
		return err
	}
	defer release()
	a := &asking{site: p.site, ctx: ctx, account: accounts[i], batch: batch, recorder: recorder}
	switch inline, ok := observe.ParseInlineBatch(batch.Path); {
	case !ok:
		return a.files()
	case inline.Dialect == plugins.Messages:
		return a.messages()
	default:
		version, _, _ := strings.Cut(batch.Path, "models/")
		return a.results(version+batch.ResponseID, observe.Results{File: batch.ResponseID, Batch: batch.ResponseID, Inline: true})
	}
}

// asking is one question about a batch.
type asking struct {
	site     *Site
	ctx      context.Context
	account  *providers.Account
	batch    *storage.Record
	recorder Recorder
}

// messages asks Anthropic.
func (a *asking) messages() error {
	id := a.batch.ResponseID
	path := "/v1" + observe.MessageBatches + "/" + url.PathEscape(id)
	_, ended, err := a.state(path)
	if err != nil || !ended {
		return err
	}
	return a.results(path+"/results", observe.Results{File: id, Batch: id})
}

// files asks OpenAI, or who is like it. Calls that have failed are in a file of their own, which is read
// first: the other one ends the batch.
func (a *asking) files() error {
	object, ended, err := a.state("/v1/batches/" + url.PathEscape(a.batch.ResponseID))
	if err != nil || !ended {
		return err
	}
	for _, name := range []string{"error_file_id", "output_file_id"} {
		file := gjson.GetBytes(object, name).Str
		if file == "" {
			continue
		}
		if err := a.results("/v1/files/"+url.PathEscape(file)+"/content", observe.Results{File: file, Batch: a.batch.ResponseID}); err != nil {
			return err
		}
	}
	a.exchange("").Earlier().SeeBatch(a.batch.ResponseID, object)
	return nil
}

// state returns the provider's object of the batch, and whether the batch has ended.
func (a *asking) state(path string) (object []byte, ended bool, err error) {
	body, err := a.get(path)
	if err != nil {
		return nil, false, err
	}
	defer body.Close()
	if object, err = translate.ReadAll(io.LimitReader(body, maxBatchObject), -1); err != nil {
		return nil, false, err
	}
	state, ok := observe.ParseBatch(object)
	if !ok || state.ID != a.batch.ResponseID {
		return nil, false, errors.New("the provider answered no batch")
	}
	return object, state.Ended, nil
}

// results records the calls whose results are at a path.
func (a *asking) results(path string, of observe.Results) error {
	body, err := a.get(path)
	if err != nil {
		return err
	}
	defer body.Close()
	results := a.exchange(path).Results(of, 0)
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
func (a *asking) exchange(path string) *Exchange {
	x := &Exchange{Record: *a.batch, site: a.site, ctx: a.ctx, recorder: a.recorder}
	x.Record.Path, x.Record.TargetURL = path, a.account.BaseURL+path
	x.Kept.Omit(&x.Record, true, true)
	return x
}

// get asks for a path of the account. It costs nothing, and no budget counts it.
func (a *asking) get(path string) (io.ReadCloser, error) {
	req, err := a.request(path)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept-Encoding", "identity")
	bill, err := a.site.App.Money().Admit(a.ctx, money.Spending{Org: a.batch.Org, Account: a.account, Record: a.batch, Files: true, Shadow: true})
	if err != nil {
		return nil, err
	}
	resp, err := bill.Send(req)
	if err != nil {
		return nil, err
	}
	encoding := resp.Header.Get("Content-Encoding")
	switch {
	case resp.StatusCode != http.StatusOK:
		err = fmt.Errorf("the provider answered with the status %d", resp.StatusCode)
	case encoding != "":
		err = fmt.Errorf("the provider answered with the Content-Encoding %q, for which nobody asked", encoding)
	}
	if err != nil {
		_ = resp.Body.Close() // nobody reads it
		return nil, err
	}
	return resp.Body, nil
}

// request returns a request for a path, as the gateway makes it if the provider has the endpoint there,
// else as the proxy does.
func (a *asking) request(path string) (*http.Request, error) {
	if has, ok := a.account.API.(translate.Endpoints); ok {
		to, err := a.account.Target("", nil, (*access.Key)(nil))
		if err != nil {
			return nil, err
		}
		req, err := has.PrepareEndpoint(a.ctx, http.MethodGet, path, to)
		if !errors.Is(err, errors.ErrUnsupported) {
			return req, err
		}
	}
	if !a.account.CanForward() {
		return nil, fmt.Errorf("the provider %s has no batches that its key alone may read", a.account.Label)
	}
	req, err := http.NewRequestWithContext(a.ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	a.account.Authorize(req.Header)
	return a.account.Direct(req), nil
}
