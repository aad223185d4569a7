package llmapp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/plugins"
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

// Gate is where money is decided: it lets a call go to an account, and sets aside what the
// call may cost. Every lane that calls a provider passes it, because a Ticket alone sends
// requests. What else bounds spending, such as budgets, belongs into Admit.
type Gate struct {
	App *App
	// Credits opens the ledger of the store.
	Credits func() (credits.Ledger, error)
	Logger  *zap.Logger
}

// Spending is what a call may spend at an account.
type Spending struct {
	Org     string
	Key     *Key
	Account *Account
	// Model is the name of the target at the account, "" for what is no call of a model.
	Model string
	// AtMost is what the call costs at most, unknown without a price. It is read only
	// where credits pay.
	AtMost func() plugins.Cost
	// Fit makes the call cost at most left, by a lower limit of its output, and reports
	// whether the call can be lowered so far. nil if the call cannot be changed.
	Fit func(left plugins.Nanodollars) bool
}

// Ticket lets one call, and each repetition of it, be sent to an account. It ends with
// Release.
type Ticket struct {
	account     *Account
	ledger      credits.Ledger // nil unless credits pay
	reservation credits.Reservation
	released    atomic.Bool
}

// PaysWithCredits reports whether an organisation pays for calls of the account with
// credits.
func (a *App) PaysWithCredits(org string, account *Account) bool {
	return account.Platform && a.HasCredits(org)
}

// Shares reports whether an account of the platform also serves callers whom the
// organisation does not trust: other organisations, or the platform that grants its credits.
func (a *App) Shares(org string, account *Account) bool {
	return account.Platform && (a.HasCredits(org) || slices.ContainsFunc(a.keys, func(k *Key) bool {
		return k.org != org && k.Allows(ScopeGateway)
	}) || slices.ContainsFunc(a.identities, func(i *Identity) bool { return i.org != org || i.OrgClaim != "" }) || a.keepsKeys())
}

// reservedRetryAfter is when a call should come back that waits for others to end.
const reservedRetryAfter = 5 * time.Second

// unavailableRetryAfter is when a call should come back that found no ledger.
const unavailableRetryAfter = 10 * time.Second

// Admit returns the ticket of a call, or a *plugins.Error that says why it has none.
func (g Gate) Admit(ctx context.Context, s Spending) (*Ticket, error) {
	t := &Ticket{account: s.Account}
	if s.Key != nil && s.Key.kept != nil { // which may have ended since the call began
		if _, err := g.App.keptKey(ctx, s.Key.hash); err != nil {
			return nil, &plugins.Error{Status: http.StatusUnauthorized, Type: "invalid_request_error", Code: "invalid_api_key", Message: "The API key has ended."}
		}
	}
	if model := strings.TrimPrefix(s.Model, s.Account.Label+"/"); !s.Key.MayCall(s.Account.Label, model) {
		return nil, NotAllowed(cmp.Or(s.Model, s.Account.Label))
	}
	if !g.App.PaysWithCredits(s.Org, s.Account) {
		return t, nil
	}
	atMost := s.AtMost()
	if !atMost.Valid {
		e := plugins.Invalid("model", "The model '%s' has no known price, and cannot be paid for with credits.", s.Model)
		e.Code = "model_not_priced"
		return nil, e
	}
	// The record's id may be the client's choice, and used elsewhere at the same time.
	t.reservation = credits.Reservation{ID: uuid.New(), Org: s.Org, Amount: atMost.N}
	ledger, err := g.Credits()
	if err == nil {
		err = g.reserve(ctx, ledger, &t.reservation, s)
	}
	if refusal, ok := errors.AsType[*plugins.Error](err); ok {
		return nil, refusal
	}
	if err != nil {
		g.Logger.Error("a call cannot be paid from credits", zap.String("org", s.Org), zap.Error(err))
		return nil, &plugins.Error{
			Status: http.StatusServiceUnavailable, Type: "server_error", Code: "budget_unavailable", RetryAfter: unavailableRetryAfter,
			Message: "The gateway cannot read its credits, and makes no call that is paid from them.",
		}
	}
	t.ledger = ledger
	return t, nil
}

// NotAllowed is the error for a key that may not call a model or a provider.
func NotAllowed(name string) *plugins.Error {
	return &plugins.Error{
		Status: http.StatusForbidden, Type: "invalid_request_error", Code: "model_not_allowed",
		Message: "The API key may not call " + name + ". GET /v1/key tells what it may call.",
	}
}

// reserve sets a reservation aside. The organisation may have its first grant yet to get.
// The call is fitted into what is left only if waiting for other calls would not help.
func (g Gate) reserve(ctx context.Context, ledger credits.Ledger, r *credits.Reservation, s Spending) error {
	err := ledger.Reserve(ctx, *r)
	if !errors.Is(err, credits.ErrInsufficient) {
		return err
	}
	if err = g.App.SeedCredits(ctx, ledger, r.Org); err == nil {
		err = ledger.Reserve(ctx, *r)
	}
	if !errors.Is(err, credits.ErrInsufficient) {
		return err
	}
	b, err := ledger.Balance(ctx, r.Org)
	if err != nil {
		return err
	}
	asked, unspent := r.Amount, b.Granted-b.Spent
	held := unspent >= asked
	switch {
	case held || s.Fit == nil:
	case s.Fit(b.Available()):
		r.Amount = s.AtMost().N
		if err = ledger.Reserve(ctx, *r); !errors.Is(err, credits.ErrInsufficient) {
			return err
		}
		held = true // by a call that came between
	default:
		held = s.Fit(unspent)
	}
	return insufficient(asked, b, held)
}

// insufficient says why an amount cannot be set aside: other calls hold what is left until
// they end, or too little is left.
func insufficient(amount plugins.Nanodollars, b credits.Balance, held bool) *plugins.Error {
	sums := fmt.Sprintf("It may cost %s. Of the %s granted, %s is spent, and calls in flight hold %s.", amount, b.Granted, b.Spent, b.Reserved)
	if held {
		return &plugins.Error{
			Status: http.StatusTooManyRequests, Type: "rate_limit_error", Code: "budget_reserved", RetryAfter: reservedRetryAfter,
			Message: "Calls in flight hold the credits that this call needs: try again when they have ended. " + sums,
		}
	}
	return &plugins.Error{
		Status: http.StatusPaymentRequired, Type: "insufficient_quota", Code: "insufficient_quota",
		Message: "Insufficient credits for this call. " + sums + " Lower the limit of output tokens, or ask for more credits.",
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
	if err == nil {
		resp.Request = req
	}
	return resp, err
}

// Paid reports whether credits pay for the call.
func (t *Ticket) Paid() bool { return t.ledger != nil }

// Open reports whether credits pay for the call and it can still be charged.
func (t *Ticket) Open() bool { return t.Paid() && !t.released.Load() }

// Reserved is what was set aside.
func (t *Ticket) Reserved() plugins.Nanodollars { return t.reservation.Amount }

// Charge makes total what the call has cost so far, if the ticket is open. A client that
// has left is charged too.
func (t *Ticket) Charge(ctx context.Context, total plugins.Nanodollars) error {
	if !t.Open() {
		return nil
	}
	return t.ledger.Charge(context.WithoutCancel(ctx), t.reservation, total)
}

// Release ends the call: what was set aside and not charged is free again. A second Release
// does nothing.
func (t *Ticket) Release(ctx context.Context) error {
	if t.released.Swap(true) || !t.Paid() {
		return nil
	}
	return t.ledger.Release(context.WithoutCancel(ctx), t.reservation)
}
