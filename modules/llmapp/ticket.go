package llmapp

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
)

// Transport carries requests to an account. It sends nothing by itself: Ticket.Send and
// Account.Probe do, so that no call can reach a provider without having been admitted.
type Transport struct{ through http.RoundTripper }

// NewTransport returns a Transport that sends its requests through rt.
func NewTransport(rt http.RoundTripper) Transport { return Transport{rt} }

// Probe asks whether the account's address answers. The request has no credentials, so
// that it costs nothing.
func (a *Account) Probe(ctx context.Context) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.BaseURL, nil)
	if err != nil {
		return nil, err
	}
	return a.Transport.through.RoundTrip(req)
}

// Ticket lets one call, and each repetition of it, be sent to an account. It ends with
// Release.
type Ticket struct {
	app      *App
	account  *Account
	logger   *zap.Logger
	ledger   credits.Ledger // nil unless something bounds the call
	shares   []*share
	budgets  bounding
	habit    habit         // whose calls write alike, if a budget expects something of them
	writes   int64         // what the call is expected to write, in tokens; 0 if nothing is
	wrote    plugins.Count // what it has written
	batch    uuid.UUID     // names the shares of a batch
	works    bool          // the provider may have taken a batch, and works on
	released atomic.Bool
}

// share is what is set aside of one quantity: the most that the call can use, or what it is
// expected to use.
type share struct {
	*quantity
	expected bool
	credits.Reservation
	most    plugins.Nanodollars // that the call can use
	charged plugins.Nanodollars
}

// outlives reports whether the share is kept until the provider has told what a batch has used.
func (part *share) outlives() bool { return part.Until > 0 }

// amount is how much is set aside, unknown if that is.
func (part *share) amount(t *Ticket, s Spending) plugins.Count {
	most := part.quantity.most(s.AtMost)
	if part.most = plugins.Nanodollars(most.N); part.expected && t.writes > 0 && s.Expected != nil {
		most.N = min(most.N, part.of(s.Expected(t.writes)).N)
	}
	return most
}

// lost is what the call has used at most if the process is killed before the call ends.
func (part *share) lost() plugins.Nanodollars {
	if !part.metered() { // calls at once end with the process, and the number of calls is charged before they are made
		return 0
	}
	return part.most
}

// move counts a call that has waited in the newest step of rolling windows.
func (t *Ticket) move(part *share, now storage.Timestamp) {
	for i := range part.Holds {
		h := &part.Holds[i]
		b := slices.IndexFunc(t.budgets, func(b budgetHold) bool { return b.hold.Account == h.Account })
		if h.Rolling > 0 {
			h.Begins, h.Ends = h.Rolling.Around(now)
			t.budgets[b].hold = *h
		}
	}
}

// errReleased is a request with the ticket of a call that is over.
var errReleased = errors.New("the call has ended, and nothing is set aside for another request")

// Send sends a request of the call to the account, with its key. The response refers to
// req, which has none.
func (t *Ticket) Send(req *http.Request) (*http.Response, error) {
	if t.released.Load() {
		return nil, errReleased
	}
	resp, err := t.account.Transport.through.RoundTrip(t.account.sign(req))
	if err != nil {
		t.Answered(0, err)
		return nil, err
	}
	t.Answered(resp.StatusCode, nil)
	resp.Request = req
	return resp, nil
}

// Answered says how a request of the call ended that Send has not sent, by the status, 0 for
// none, or the error. A provider works on at a batch unless it has refused the batch, or was
// never reached.
func (t *Ticket) Answered(status int, err error) {
	if t.batch == uuid.Nil {
		return
	}
	var dial reverseproxy.DialError
	t.works = status < http.StatusMultipleChoices && !errors.As(err, &dial)
}

// Bounded reports whether credits or budgets bound what the call uses.
func (t *Ticket) Bounded() bool {
	return slices.ContainsFunc(t.shares, func(part *share) bool { return part.metered() })
}

// Open reports whether the call is bounded and can still be charged.
func (t *Ticket) Open() bool { return t.Bounded() && !t.released.Load() }

// Reserved is the most that the call can cost, and whether a budget or the credits bound the cost.
func (t *Ticket) Reserved() (most plugins.Cost) {
	for _, part := range t.shares {
		if part.quantity == dollars {
			most = plugins.KnownCost(max(most.N, part.most))
		}
	}
	return most
}

// Charge makes total, without what earlier tickets of the call were charged, what the call
// has used so far, if the ticket is open. What total does not tell stays as it was. A client
// that has left is charged too.
func (t *Ticket) Charge(ctx context.Context, total, earlier bound.Used) error {
	if t.released.Load() {
		return nil
	}
	var failed error
	if written := total.Usage.Output; written.Valid {
		t.wrote = plugins.Known(written.N - earlier.Usage.Output.N)
	}
	for _, part := range t.shares {
		if !part.metered() || part.outlives() {
			continue
		}
		if n := part.of(total); n.Valid {
			failed = errors.Join(failed, t.charge(ctx, part, plugins.Nanodollars(n.N-part.of(earlier).N)))
		}
	}
	return failed
}

// charge makes total what the call has used of a share.
func (t *Ticket) charge(ctx context.Context, part *share, total plugins.Nanodollars) error {
	more := total > part.charged
	t.count(part, total)
	ctx = context.WithoutCancel(ctx)
	err := t.ledger.Charge(ctx, part.Reservation, total)
	if err == nil && more {
		t.alert(ctx, part)
	}
	return err
}

// count tells the metrics what the call has used of a share.
func (t *Ticket) count(part *share, total plugins.Nanodollars) {
	if part.quantity == dollars && total > part.charged {
		excess := max(total, part.Amount) - max(part.charged, part.Amount)
		for _, b := range t.budgets.of(part) {
			budgetSpent.With(b.label).Add(plugins.KnownCost(total - part.charged).Float())
			budgetExcess.With(b.label).Add(plugins.KnownCost(excess).Float())
		}
	}
	part.charged = total
}

// Release ends the call: what was set aside and not charged is free again, but for what a batch
// may cost at which the provider works. A second Release does nothing.
func (t *Ticket) Release(ctx context.Context) error {
	if t.released.Swap(true) {
		return nil
	}
	if t.habit != (habit{}) && t.wrote.Valid {
		t.app.habits.learn(t.habit, t.wrote.N)
	}
	var failed error
	for _, part := range t.shares {
		if part.expected && part.charged > part.Amount {
			t.logger.Info("a call used more than was expected", zap.String("org", part.Org), zap.String("used", part.text(part.charged)), zap.String("expected", part.text(part.Amount)))
		}
		switch ctx := context.WithoutCancel(ctx); {
		case !part.outlives():
			failed = errors.Join(failed, t.ledger.Release(ctx, part.Reservation))
		case !t.works:
			_, err := t.ledger.End(ctx, part.ID, 0)
			failed = errors.Join(failed, err)
		}
	}
	return failed
}
