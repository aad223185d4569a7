package money

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
)

// Bill is what one request to a provider may cost and has cost: of a call, of an attempt or a
// round of one, of a response in a socket, of a batch. Budgets.Admit makes it, and it lets the
// request, and each repetition, be sent. Charge counts what the provider has stated, Settle what
// the provider has not, and Release ends the bill.
type Bill struct {
	budgets  *Budgets
	account  *providers.Account
	ledger   credits.Ledger // nil unless something bounds the call
	shares   []*share
	bounding budgetHolds // the budgets that count the call
	call     *bound.Call // what the request can use; nil unless it is one of a model
	max      bound.Used  // what the call uses at most; zero unless something bounds it
	batch    uuid.UUID   // names the shares of a batch
	works    bool        // the provider may have taken a batch, and works on
	released atomic.Bool

	// Fitted is the limit of output tokens to which the request must be lowered, 0 if the
	// request fits as it is. CutAt is the number of output tokens after which the stream must be
	// ended, 0 if it may go on.
	Fitted, CutAt int64
	// WouldRefuse is the name of the first budget that observes and would have refused the call, ""
	// for none.
	WouldRefuse string
	// Earlier is what the bills of earlier rounds have counted for the same record. What
	// Charge and Settle are told includes it.
	Earlier bound.Used
}

// share is what is set aside of one quantity.
type share struct {
	*quantity
	credits.Reservation
	max     plugins.Nanodollars // that the call can use; Amount, unless nothing is held any more
	charged plugins.Nanodollars
	// surplus is true if the share counts in the surplus of budgets that observe what the call
	// uses beyond admitted.
	surplus  bool
	admitted plugins.Nanodollars
}

// limit is how many tokens each answer of the call has at most, 0 for as many as the request
// allows.
func (t *Bill) limit() int64 { return cmp.Or(t.CutAt, t.Fitted) }

// outlives reports whether the share is kept until the provider has told what a batch has used.
func (part *share) outlives() bool { return part.Until > 0 }

// set sets how much is set aside.
func (part *share) set(amount plugins.Count) {
	part.max = plugins.Nanodollars(amount.N)
	part.Amount = part.max
}

// maxLost is what the call has used at most if the process is killed before the call ends.
func (part *share) maxLost() plugins.Nanodollars {
	if !part.metered() { // calls at once end with the process, and the number of calls is charged before they are made
		return 0
	}
	return part.max
}

// move counts a call that has waited in the newest step of rolling windows.
func (t *Bill) move(part *share, now storage.Timestamp) {
	for i := range part.Holds {
		h := &part.Holds[i]
		b := slices.IndexFunc(t.bounding, func(b budgetHold) bool { return b.hold.Account == h.Account })
		if h.Rolling > 0 {
			h.Begins, h.Ends = h.Rolling.Around(now)
			t.bounding[b].hold = *h
		}
	}
}

// errReleased is a request with the bill of a call that is over.
var errReleased = errors.New("the call has ended, and nothing is set aside for another request")

// Send sends a request of the call to the account, with its key. The response refers to
// req, which has none.
func (t *Bill) Send(req *http.Request) (*http.Response, error) {
	if t.released.Load() {
		return nil, errReleased
	}
	resp, err := t.account.Send(req)
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
func (t *Bill) Answered(status int, err error) {
	if t.batch == uuid.Nil {
		return
	}
	var dial reverseproxy.DialError
	t.works = status < http.StatusMultipleChoices && !errors.As(err, &dial)
}

// Bounded reports whether credits or budgets bound what the call uses.
func (t *Bill) Bounded() bool {
	return slices.ContainsFunc(t.shares, func(part *share) bool { return part.metered() })
}

// Open reports whether the call is bounded and can still be charged.
func (t *Bill) Open() bool { return t.Bounded() && !t.released.Load() }

// Reserved is the most that the call can cost, unknown unless a budget or the credits bound the
// cost.
func (t *Bill) Reserved() (maxCost plugins.Cost) {
	for _, part := range t.shares {
		if part.quantity == dollars && !part.surplus {
			maxCost = plugins.KnownCost(part.max)
		}
	}
	return maxCost
}

// Charge makes total, with what earlier rounds have used, what the call has used so far, if the
// bill is open. What total does not tell stays as it was. A client that has left is charged
// too. t may be nil.
func (t *Bill) Charge(ctx context.Context, total bound.Used) error {
	if t == nil || t.released.Load() {
		return nil
	}
	var failed error
	for _, part := range t.shares {
		if !part.metered() || part.outlives() {
			continue
		}
		if n := part.of(total); n.Valid {
			failed = errors.Join(failed, t.charge(ctx, part, plugins.Nanodollars(n.N-part.of(t.Earlier).N)))
		}
	}
	return failed
}

// NoteCharges adds to a record what the bill has charged, if the ledger recovers charges from
// records. What the record has of bills that have ended stays.
func (t *Bill) NoteCharges(r *storage.Record) {
	ledger, recovers := t.ledger.(credits.Recoverer)
	if !recovers {
		return
	}
	for _, part := range t.shares {
		charge, ok := ledger.Charged(part.ID)
		if !ok {
			continue
		}
		if r.Charges == nil {
			r.Charges = make(map[string]string, len(t.shares))
		}
		r.Charges[part.ID.String()] = string(charge.AppendJSON(nil))
	}
}

// Settle returns what the call has used so far, with what earlier rounds have used, if its answer
// ended in a way that is not counted as stated. tier is the service tier that the provider named.
func (t *Bill) Settle(e *Ending, tier string) bound.Used {
	upperBound := t.max
	if reserved := t.Reserved(); reserved.Valid {
		upperBound.Cost = reserved
	}
	used := e.Settle(t.call, upperBound, tier)
	if t.Earlier != (bound.Used{}) {
		used.Cost = used.Cost.Both(t.Earlier.Cost)
		used.Usage.Add(t.Earlier.Usage)
	}
	return used
}

// Call is what the request can use, nil if it is not one of a model. t may be nil.
func (t *Bill) Call() *bound.Call {
	if t == nil {
		return nil
	}
	return t.call
}

// Hosted reports whether the request has tools that the provider runs and bills.
func (t *Bill) Hosted() bool { return t.call.Hosted() }

// Learn remembers how many tokens the provider has counted for the request, if it has: the next
// turn of the conversation sets aside no more for them. t may be nil.
func (t *Bill) Learn(input plugins.Count) {
	if t != nil {
		t.call.Learn(t.budgets.counts, input)
	}
}

// charge makes total what the call has used of a share.
func (t *Bill) charge(ctx context.Context, part *share, total plugins.Nanodollars) error {
	if part.surplus {
		total = max(total-part.admitted, 0)
	}
	more := total > part.charged
	t.count(part, total)
	ctx = context.WithoutCancel(ctx)
	err := t.ledger.Charge(ctx, part.Reservation, total)
	if err == nil && more && !part.surplus {
		t.alert(ctx, part)
	}
	return err
}

// count tells the metrics what the call has used of a share.
func (t *Bill) count(part *share, total plugins.Nanodollars) {
	if part.quantity == dollars && !part.surplus && total > part.charged {
		excess := max(total, part.Amount) - max(part.charged, part.Amount)
		for _, b := range t.bounding.byQuantity(part.quantity) {
			budgetSpent.With(b.budget.label).Add(plugins.KnownCost(total - part.charged).Float())
			budgetExcess.With(b.budget.label).Add(plugins.KnownCost(excess).Float())
		}
	}
	part.charged = total
}

// Idle frees what is set aside of dollars and tokens until Hold: the bill of a socket has nothing
// to pay before its first response.
func (t *Bill) Idle(ctx context.Context) (failed error) {
	for _, part := range t.shares {
		if part.metered() {
			failed = errors.Join(failed, t.reserveAgain(ctx, part, 0))
		}
	}
	return failed
}

// Hold sets aside again what Idle has freed, or returns a *plugins.Error that says what is short.
func (t *Bill) Hold(ctx context.Context) error {
	for _, part := range t.shares {
		if !part.metered() {
			continue
		}
		err := t.reserveAgain(ctx, part, part.max)
		if short, ok := errors.AsType[*credits.InsufficientError](err); ok {
			part.Amount = part.max
			return refuse(part, short, t.bounding.budgetOf(short.Account), short.Granted-short.Spent >= part.max)
		}
		if err != nil {
			t.budgets.Logger.Error("a call cannot be counted, and is not made", zap.String("org", part.Org), zap.Error(err))
			return unavailable(err)
		}
	}
	return nil
}

// reserveAgain puts another reservation in place of a share's.
func (t *Bill) reserveAgain(ctx context.Context, part *share, amount plugins.Nanodollars) error {
	ctx = context.WithoutCancel(ctx)
	r := part.Reservation
	r.ID, r.Amount, r.Lost = uuid.New(), amount, amount
	if err := t.ledger.Reserve(ctx, r); err != nil {
		return err
	}
	before := part.Reservation
	part.Reservation = r
	return t.ledger.Release(ctx, before)
}

// Release ends the call: what was set aside and not charged is free again, but for what a batch
// may cost at which the provider works. A second Release does nothing.
func (t *Bill) Release(ctx context.Context) error {
	if t.released.Swap(true) {
		return nil
	}
	var failed error
	for _, part := range t.shares {
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
