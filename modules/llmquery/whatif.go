package llmquery

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/lowpriority"
	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/money"
	"github.com/weirhq/weir/modules/internal/whatif"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

const (
	whatIfPage          = 2500 // records
	whatIfParts         = 256  // of the time of a trial's calls, at most
	whatIfReaders       = 2    // that read parts at the same time
	whatIfAhead         = 4    // pages of a part that wait
	whatIfProgress      = time.Second
	defaultWhatIfValues = 20
)

// whatIfLine is a line of the answer of tryPolicy.
type whatIfLine struct {
	Data  *whatIfResult `json:"data"` // nil in all lines but the last
	Error *string       `json:"error"`
	// Calls are those that were read so far.
	Calls int64 `json:"calls"`
}

// whatIfResult is what recorded calls would have cost.
type whatIfResult struct {
	// Policy is the alias of the configuration that the policy is, null for another one.
	Policy  *string                  `json:"policy"`
	Total   *whatif.Amount           `json:"total"`
	By      map[string][]whatIfValue `json:"by"`
	Targets []whatIfValue            `json:"targets"`
	// Budgets are the budgets of the policy, with what they would have refused.
	Budgets     []money.TrialSummary `json:"budgets"`
	Assumptions []string             `json:"assumptions"`
}

// whatIfValue is the amount of a value of an attribute.
type whatIfValue struct {
	Value string `json:"value"`
	*whatif.Amount
}

// tryPolicy answers what recorded calls would have cost under another policy, in lines that say
// how far it is. It ends with its client.
func tryPolicy(c *call) error {
	b, err := c.body()
	if err != nil {
		return err
	}
	q := &storage.RequestQuery{
		Org:    c.org,
		Filter: storage.And(b.filter("filter", storage.RequestResponse), within(b.window())),
		Sort:   []storage.Sort{{Key: storage.SortCreatedAt}}, Limit: whatIfPage,
	}
	values := b.integer("limit", defaultWhatIfValues, maxLimit)
	var policy *whatif.Policy
	if text := b.json("policy"); text == nil {
		b.fail("policy", `is required: the name of an alias, or one as JSON, such as ["openai/gpt-5-mini"]`)
	} else if policy, err = whatif.Parse(text, c.app.Aliases, func(text []byte) (*money.Budget, error) { return c.app.Money().Parse(c.org, text) }); err != nil {
		b.fail("policy", "%v", err)
	}
	if err := b.finish(); err != nil {
		return err
	}
	q.Columns = policy.Columns()
	trial, err := whatif.New(policy, c.app.Resolver(c.org))
	if err != nil {
		return badRequest("policy: %v", apierror.Of(err).Message)
	}
	var creators *money.Creators
	if len(policy.Budgets) > 0 {
		if creators, err = c.app.Money().Creators(c.org); err != nil {
			return err
		}
	}
	c.ctx = c.r.Context() // no timeout: it lasts as long as its client
	c.w.Header().Set("Content-Type", "application/x-ndjson")
	lines := json.NewEncoder(c.w)
	calls, err := c.readCalls(q, trial, creators, lines)
	if err != nil {
		if calls == 0 {
			return err
		}
		message := "the store failed while the calls were read; ask again"
		if errors.Is(err, money.ErrTrialTooLarge) {
			message = money.ErrTrialTooLarge.Message
		}
		return lines.Encode(whatIfLine{Error: &message, Calls: calls})
	}
	result := &whatIfResult{Total: trial.Total, By: make(map[string][]whatIfValue), Targets: valuesOf(trial.Targets, maxLimit), Budgets: trial.Budgets(), Assumptions: trial.Assumptions()}
	if policy.Name != "" {
		result.Policy = &policy.Name
	}
	for attribute, amounts := range trial.By {
		result.By[attribute] = valuesOf(amounts, values)
	}
	return lines.Encode(whatIfLine{Data: result, Calls: calls})
}

// readCalls adds the calls of a query to a trial, the oldest first, and returns how many it has read.
// Two readers go ahead of what is added. A client that has left ends all.
func (c *call) readCalls(q *storage.RequestQuery, trial *whatif.Trial, creators *money.Creators, lines *json.Encoder) (calls int64, err error) {
	parts, err := c.partsOf(q)
	if err != nil {
		return 0, err
	}
	ctx, stop := context.WithCancelCause(c.ctx)
	c.ctx = ctx
	pages := make([]chan []*storage.Record, len(parts))
	for i := range pages {
		pages[i] = make(chan []*storage.Record, whatIfAhead)
	}
	var begun atomic.Int64
	for range whatIfReaders {
		wait := lowpriority.Start(func() {
			defer stop(nil) // nobody waits for a reader that panics
			for i := begun.Add(1) - 1; i < int64(len(parts)); i = begun.Add(1) - 1 {
				err := parts[i].EachPage(c.page, func(records []*storage.Record) error {
					select {
					case pages[i] <- records:
						return nil
					case <-ctx.Done():
						return context.Cause(ctx)
					}
				})
				if err != nil {
					stop(err)
					return
				}
				close(pages[i])
			}
			<-ctx.Done()
		})
		defer wait()
	}
	defer stop(nil)
	reportedAt, connection := time.Now(), http.NewResponseController(c.w)
	for _, part := range pages {
		for open := true; open; {
			var records []*storage.Record
			select {
			case records, open = <-part:
			case <-ctx.Done():
				return calls, context.Cause(ctx)
			}
			for _, r := range records {
				if err := addCall(ctx, trial, creators, r); err != nil {
					return calls, err
				}
			}
			if calls += int64(len(records)); time.Since(reportedAt) < whatIfProgress {
				continue
			}
			reportedAt = time.Now()
			if err := lines.Encode(whatIfLine{Calls: calls}); err != nil {
				return calls, err
			}
			_ = connection.Flush() // the client reads the line later
		}
	}
	return calls, nil
}

// partsOf returns queries for what a query finds, part by part of the time between the first and the
// last, a page each if the calls are spread evenly.
func (c *call) partsOf(q *storage.RequestQuery) (parts []*storage.RequestQuery, err error) {
	var found storage.Totals
	err = c.inTurn(func(ctx context.Context) error {
		return c.journal.Backend().Groups(ctx, &storage.GroupQuery{Org: q.Org, Filter: q.Filter, Window: storage.Always, CountOnly: true}, func(g *storage.GroupTotals) error {
			found = g.Totals
			return nil
		})
	})
	if err != nil || found.Requests == 0 {
		return nil, err
	}
	n := min(found.Requests/whatIfPage+1, whatIfParts)
	length := (found.Last-found.First)/storage.Timestamp(n) + 1
	for from := found.First; from <= found.Last; from += length {
		part := *q // the narrower bounds first, by which a store begins
		part.Filter = storage.And(within(storage.Window{From: from, To: min(from+length-1, found.Last)}), q.Filter)
		parts = append(parts, &part)
	}
	return parts, nil
}

// addCall adds a call to a trial. creators is nil if nothing depends on who created its key.
func addCall(ctx context.Context, trial *whatif.Trial, creators *money.Creators, r *storage.Record) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	as := r
	if creators != nil {
		var err error
		if as, err = creators.AsCaller(ctx, r); err != nil {
			return err
		}
	}
	return trial.Add(r, as)
}

// valuesOf returns the values whose costs would differ most, in that order.
func valuesOf(amounts map[string]*whatif.Amount, limit int) []whatIfValue {
	list := make([]whatIfValue, 0, len(amounts))
	for value, amount := range amounts {
		list = append(list, whatIfValue{value, amount})
	}
	differs := func(v whatIfValue) plugins.Nanodollars {
		d := v.Expected.N - v.Compared.N
		return max(d, -d)
	}
	slices.SortFunc(list, func(a, b whatIfValue) int {
		return cmp.Or(cmp.Compare(differs(b), differs(a)), cmp.Compare(a.Value, b.Value))
	})
	return list[:min(len(list), limit)]
}
