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

	"github.com/weirhq/weir/internal/metric"
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

// Gate is where money is decided: it lets a call go to an account, and sets aside what the
// call may cost, in the credits and in every budget that counts the call. Every lane that
// calls a provider passes it, because a Ticket alone sends requests.
type Gate struct {
	App *App
	// Credits opens the ledger of the store.
	Credits func() (credits.Ledger, error)
	Logger  *zap.Logger
}

// Spending is what a call may spend at an account.
type Spending struct {
	Org string
	Key *Key
	// Account is where the call goes, nil for a call that passes through a proxy with the
	// caller's own credentials. Then Provider names the provider.
	Account  *Account
	Provider string
	// Model is the name of the target at the account, "" for what is no call of a model.
	Model string
	// Record says whose call it is, and when the call began.
	Record *storage.Record
	// AtMost is what the call costs at most, unknown without a price. It is read only
	// where something bounds the call.
	AtMost func() plugins.Cost
	// Fit makes the call cost at most left, by a lower limit of its output, and reports
	// whether the call can be lowered so far. nil if the call cannot be changed.
	Fit func(left plugins.Nanodollars) bool
}

// Ticket lets one call, and each repetition of it, be sent to an account. It ends with
// Release.
type Ticket struct {
	account     *Account
	ledger      credits.Ledger // nil unless something bounds the call
	reservation credits.Reservation
	budgets     bounding
	charged     plugins.Nanodollars
	released    atomic.Bool
}

// PaysWithCredits reports whether an organisation pays for calls of the account with
// credits.
func (a *App) PaysWithCredits(org string, account *Account) bool {
	return account != nil && account.Platform && a.HasCredits(org)
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
	if provider, model := s.target(); s.Account != nil && !s.Key.MayCall(provider, model) {
		return nil, NotAllowed(cmp.Or(s.Model, provider))
	}
	paid, budgets := g.App.PaysWithCredits(s.Org, s.Account), g.App.bounding(&s)
	if !paid && budgets == nil {
		return t, nil
	}
	atMost := s.AtMost()
	if !atMost.Valid {
		budgets = slices.DeleteFunc(budgets, func(b bound) bool { return b.Unpriced == passUnpriced })
		if paid || len(budgets) > 0 {
			return nil, notPriced(s.Model, budgets)
		}
		return t, nil
	}
	// The record's id may be the client's choice, and used elsewhere at the same time.
	t.reservation, t.budgets = credits.Reservation{ID: uuid.New(), Org: s.Org, Amount: atMost.N}, budgets
	if paid {
		t.reservation.Holds = append(t.reservation.Holds, credits.Hold{Account: credits.Account{Org: s.Org}})
	}
	for _, b := range budgets {
		t.reservation.Holds = append(t.reservation.Holds, b.hold)
	}
	ledger, err := g.Credits()
	if err == nil {
		err = g.reserve(ctx, ledger, t, s)
	}
	if refusal, ok := errors.AsType[*plugins.Error](err); ok {
		return nil, refusal
	}
	if err != nil {
		g.Logger.Error("a call cannot be counted, and is not made", zap.String("org", s.Org), zap.Error(err))
		return nil, &plugins.Error{
			Status: http.StatusServiceUnavailable, Type: "server_error", Code: "budget_unavailable", RetryAfter: unavailableRetryAfter,
			Message: "The gateway cannot read its credits and budgets, and makes no call that they bound.",
		}
	}
	t.ledger = ledger
	return t, nil
}

// target returns the label or the name of the provider, and the model there.
func (s *Spending) target() (provider, model string) {
	if s.Account == nil {
		return s.Provider, s.Model
	}
	return s.Account.Label, strings.TrimPrefix(s.Model, s.Account.Label+"/")
}

// Bounds reports whether credits or a budget bound what a call may cost.
func (g Gate) Bounds(s Spending) bool {
	return g.App.PaysWithCredits(s.Org, s.Account) || len(g.App.bounding(&s)) > 0
}

// notPriced is the error for a call that has no price, and would have to be counted.
func notPriced(model string, budgets bounding) *plugins.Error {
	counted := "paid for with credits"
	if len(budgets) > 0 {
		counted = "counted by the budget " + budgets[0].Name
		budgetRefusals.With(budgets[0].label, codeNotPriced).Inc()
	}
	e := plugins.Invalid("model", "The model '%s' has no known price, and cannot be %s.", model, counted)
	if model == "" {
		e = plugins.Invalid("", "What this call costs is not known before the call has ended, and cannot be %s.", counted)
	}
	e.Code = codeNotPriced.String()
	return e
}

// NotAllowed is the error for a key that may not call a model or a provider.
func NotAllowed(name string) *plugins.Error {
	return &plugins.Error{
		Status: http.StatusForbidden, Type: "invalid_request_error", Code: "model_not_allowed",
		Message: "The API key may not call " + name + ". GET /v1/key tells what it may call.",
	}
}

// The codes of refusals.
var (
	codeHeld      = metric.Constant("budget_reserved")
	codeSpent     = metric.Constant("insufficient_quota")
	codeNotPriced = metric.Constant("model_not_priced")
)

// HeldInterval is how often a call that waits looks whether calls in flight have ended.
const HeldInterval = 20 * time.Millisecond

// reserve sets the reservation of a ticket aside. Where other calls hold what is missing, the
// call waits as long as the budget says, and is then fitted into what they leave.
func (g Gate) reserve(ctx context.Context, ledger credits.Ledger, t *Ticket, s Spending) error {
	began, waited := time.Now(), false
	for {
		short, held, err := g.tryReserve(ctx, ledger, t, s, waited)
		if short == nil {
			return err
		}
		b := t.budgets.of(short.Account)
		if b == nil || !held || waited || ctx.Err() != nil {
			return refuse(t.reservation.Amount, short, b, held)
		}
		if waited = time.Since(began) >= time.Duration(b.Wait); waited {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(HeldInterval):
		}
	}
}

// tryReserve sets the reservation aside, or returns the account that is short, and whether
// other calls hold what is missing. The call is fitted into what is left only if waiting for
// other calls would not help, or if the call has waited.
func (g Gate) tryReserve(ctx context.Context, ledger credits.Ledger, t *Ticket, s Spending, waited bool) (short *credits.InsufficientError, held bool, err error) {
	r := &t.reservation
	for range len(r.Holds) + 1 { // each account may be short once
		err = ledger.Reserve(ctx, *r)
		if errors.As(err, &short) && short.Budget == "" && short.Granted == 0 { // the first grant is yet to come
			if err = g.App.SeedCredits(ctx, ledger, r.Org); err == nil {
				err = ledger.Reserve(ctx, *r)
			}
		}
		if !errors.As(err, &short) {
			return nil, false, err
		}
		unspent := short.Granted - short.Spent
		switch {
		case unspent >= r.Amount && (!waited || s.Fit == nil):
			return short, true, nil
		case s.Fit == nil:
			return short, false, nil
		case !s.Fit(short.Available()):
			return short, unspent >= r.Amount || s.Fit(unspent), nil
		}
		r.Amount = s.AtMost().N
	}
	return short, true, nil // calls came between
}

// of returns the budget of an account, nil for the credits.
func (all bounding) of(account credits.Account) *Budget {
	for _, b := range all {
		if b.hold.Account == account {
			return b.Budget
		}
	}
	return nil
}

// refuse says why an amount cannot be set aside: other calls hold what is left until they
// end, or too little is left. b is nil for the credits.
func refuse(amount plugins.Nanodollars, short *credits.InsufficientError, b *Budget, held bool) *plugins.Error {
	of, more := "credits", "ask for more credits"
	sums := fmt.Sprintf("The call may cost %s. Of the %s granted, %s is spent, and calls in flight hold %s.", amount, short.Granted, short.Spent, short.Reserved)
	code := codeSpent
	if held {
		code = codeHeld
	}
	if b != nil {
		of, more = "budget "+b.Name, "ask for a higher limit"
		sums = fmt.Sprintf("The call may cost %s. Of the limit of %s for %s, %s is spent, and calls in flight hold %s.", amount, b.limit, b.Subject(short.Account), short.Spent, short.Reserved)
		if short.Ends != 0 {
			sums += fmt.Sprintf(" The limit is whole again at %s.", short.Ends)
		}
		budgetRefusals.With(b.label, code).Inc()
	}
	if held {
		return &plugins.Error{
			Status: http.StatusTooManyRequests, Type: "rate_limit_error", Code: code.String(), RetryAfter: reservedRetryAfter,
			Message: fmt.Sprintf("Calls in flight hold what this call needs of the %s: try again when they have ended. %s", of, sums),
		}
	}
	return &plugins.Error{
		Status: http.StatusPaymentRequired, Type: "insufficient_quota", Code: code.String(),
		Message: fmt.Sprintf("Too little is left of the %s for this call. %s Lower the limit of output tokens, or %s.", of, sums, more),
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

// Bounded reports whether credits or budgets bound the call.
func (t *Ticket) Bounded() bool { return t.ledger != nil }

// Open reports whether the call is bounded and can still be charged.
func (t *Ticket) Open() bool { return t.Bounded() && !t.released.Load() }

// Reserved is what was set aside.
func (t *Ticket) Reserved() plugins.Nanodollars { return t.reservation.Amount }

// Charge makes total what the call has cost so far, if the ticket is open. A client that
// has left is charged too.
func (t *Ticket) Charge(ctx context.Context, total plugins.Nanodollars) error {
	if !t.Open() {
		return nil
	}
	for _, b := range t.budgets {
		if total > t.charged {
			budgetSpent.With(b.label).Add(plugins.KnownCost(total - t.charged).Float())
		}
	}
	t.charged = total
	return t.ledger.Charge(context.WithoutCancel(ctx), t.reservation, total)
}

// Release ends the call: what was set aside and not charged is free again. A second Release
// does nothing.
func (t *Ticket) Release(ctx context.Context) error {
	if t.released.Swap(true) || !t.Bounded() {
		return nil
	}
	return t.ledger.Release(context.WithoutCancel(ctx), t.reservation)
}
