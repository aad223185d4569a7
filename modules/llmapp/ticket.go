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

	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
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
// call may use, in the credits and in every budget that counts the call. Every lane that
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
	// Batch has the models of a batch whose calls the provider makes later, empty if they are
	// not known; nil for any other call. Every budget counts the whole batch that counts one of
	// the models.
	Batch []string
	// Record says whose call it is, and when the call began.
	Record *storage.Record
	// Limit is one that the caller set to its own calls, nil for none.
	Limit *Budget
	// Within says that the call is a part of one that has a ticket, such as a response in
	// a WebSocket.
	Within bool
	// AtMost is what the call uses at most, with an unknown cost if there is no price. It
	// is read only where something bounds what the call uses.
	AtMost func() Used
	// Expected is what the call is likely to use if the model writes no more than so many
	// tokens in each answer, for budgets that set aside what is expected. nil if the call has
	// no answers of a model.
	Expected func(output int64) Used
	// Fit lowers the limit of the call's output until fits says so of what the call uses
	// at most, and reports whether the call can be lowered so far. nil if the call cannot be
	// changed.
	Fit func(fits func(Used) bool) bool
	// Cut is Fit by an end of the call's stream, for budgets that cut streams. nil if the call
	// has no stream that can be ended.
	Cut func(fits func(Used) bool) bool
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
	t := &Ticket{app: g.App, account: s.Account, logger: g.Logger}
	if s.Key != nil && s.Key.kept != nil { // which may have ended since the call began
		if _, err := g.App.keptKey(ctx, s.Key.hash); err != nil {
			return nil, &plugins.Error{Status: http.StatusUnauthorized, Type: "invalid_request_error", Code: "invalid_api_key", Message: "The API key has ended."}
		}
	}
	if provider, model := s.target(); s.Account != nil && !s.Key.MayCall(provider, model) {
		return nil, NotAllowed(cmp.Or(s.Model, provider))
	}
	paid := g.App.PaysWithCredits(s.Org, s.Account)
	budgets, err := g.App.bounding(&s)
	if !paid && budgets == nil && err == nil {
		return t, nil
	}
	t.budgets = budgets
	var ledger credits.Ledger
	if err == nil {
		ledger, err = g.Credits()
	}
	if err == nil {
		t.ledger = ledger
		for _, b := range budgets {
			err = errors.Join(err, g.App.Begin(ctx, ledger, b.Budget))
		}
	}
	if err == nil {
		err = g.setAside(ctx, t, s, paid)
	}
	if err == nil {
		return t, nil
	}
	if t.ledger != nil {
		err = errors.Join(err, t.Release(ctx))
	}
	if refusal, ok := errors.AsType[*plugins.Error](err); ok {
		return nil, refusal
	}
	g.Logger.Error("a call cannot be counted, and is not made", zap.String("org", s.Org), zap.Error(err))
	return nil, &plugins.Error{
		Status: http.StatusServiceUnavailable, Type: "server_error", Code: "budget_unavailable", RetryAfter: unavailableRetryAfter,
		Message: "The gateway cannot read its credits and budgets, and makes no call that they bound.",
	}
}

// setAside reserves what a call may use, of each quantity that something bounds. After an
// error, the ticket has what was reserved before.
func (g Gate) setAside(ctx context.Context, t *Ticket, s Spending, paid bool) error {
	if t.budgets.expect() {
		t.habit = habit{s.Record.KeyID, s.Record.Provider, s.Model}
		t.writes = g.App.habits.expects(t.habit)
	}
	for _, q := range quantities {
		for _, expected := range []bool{false, true} {
			part := share{quantity: q, expected: expected}
			if err := g.setAsideShare(ctx, t, part, s, paid && q == dollars && !expected); err != nil {
				return err
			}
		}
	}
	return nil
}

// setAsideShare reserves one share, from the credits too if the call is paid with them.
func (g Gate) setAsideShare(ctx context.Context, t *Ticket, empty share, s Spending, paid bool) error {
	bounding := t.budgets.of(&empty)
	if bounding == nil && !paid {
		return nil
	}
	part := new(share)
	*part = empty
	// The record's id may be the client's choice, and used elsewhere at the same time.
	part.ID, part.Org, part.Call = uuid.New(), s.Org, s.call()
	if paid {
		part.Holds = append(part.Holds, credits.Hold{Account: credits.Account{Org: s.Org}})
	}
	for _, b := range bounding {
		part.Holds = append(part.Holds, b.hold)
	}
	amount := part.amount(t, s)
	if !amount.Valid {
		bounding = slices.DeleteFunc(bounding, func(b bound) bool { return b.Unpriced == passUnpriced })
		if paid || len(bounding) > 0 {
			return notPriced(s, bounding)
		}
		return nil
	}
	part.Amount = plugins.Nanodollars(amount.N)
	if s.Batch != nil && part.metered() && amount.N > 0 {
		if t.batch == uuid.Nil {
			t.batch = uuid.New()
		}
		part.ID, part.Until = batchShare(t.batch, part.quantity, part.expected), batchUntil(s.Record.CreatedAt)
	}
	if err := g.reserve(ctx, t, part, s); err != nil {
		return err
	}
	t.shares = append(t.shares, part)
	if part.quantity == requestCount {
		return t.charge(ctx, part, 1)
	}
	return nil
}

// call is what the ledger knows of the call.
func (s *Spending) call() credits.Call {
	r := s.Record
	of := credits.Call{
		ID: r.ID, CreatedAt: r.CreatedAt, AuthHash: r.AuthHash, KeyID: r.KeyID, Project: r.Project, UserID: r.UserID, SessionID: r.SessionID,
	}
	if of.Provider, of.Model = s.target(); r.Cost.Valid {
		of.Spent = r.Cost.N
	}
	return of
}

// target returns the label or the name of the provider, and the model there.
func (s *Spending) target() (provider, model string) {
	if s.Account == nil {
		return s.Provider, s.Model
	}
	return s.Account.Label, strings.TrimPrefix(s.Model, s.Account.Label+"/")
}

// Bounds reports whether credits or a budget bound what a call may use.
func (g Gate) Bounds(s Spending) bool {
	bounding, err := g.App.bounding(&s)
	return err != nil || g.App.PaysWithCredits(s.Org, s.Account) || slices.ContainsFunc(bounding, func(b bound) bool { return b.quantity.metered() })
}

// notPriced is the error for a call whose use is not known and would have to be counted.
func notPriced(s Spending, budgets bounding) *plugins.Error {
	counted, missing := "paid for with credits", "price"
	if len(budgets) > 0 {
		counted = "counted by the budget " + budgets[0].Name
		if budgets[0].quantity != dollars {
			missing = "limit of tokens"
		}
		budgetRefusals.With(budgets[0].label, codeNotPriced).Inc()
	}
	e := plugins.Invalid("model", "The model '%s' has no known %s, and cannot be %s.", s.Model, missing, counted)
	if s.Model == "" {
		e = plugins.Invalid("", "What this call uses is not known before the call has ended, and cannot be %s.", counted)
	}
	if s.Batch != nil {
		e.Message += " The calls of a batch are known if they stand in the request, or in a file that was uploaded here, and if all of their models have a price of batches."
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
	codeRate      = metric.Constant("rate_limit_exceeded")
	codeNotPriced = metric.Constant("model_not_priced")
)

// HeldInterval is how often a call that waits looks whether calls in flight have ended.
const HeldInterval = 20 * time.Millisecond

// reserve sets a share of a ticket aside. If other calls hold what is missing, or if it leaves
// a rolling window soon enough, the call waits as long as the budget says. A call for which
// others hold too much is then fitted into what they leave.
func (g Gate) reserve(ctx context.Context, t *Ticket, part *share, s Spending) error {
	began, waited := time.Now(), false
	for {
		short, held, err := g.tryReserve(ctx, t, part, s, waited)
		if full, ok := errors.AsType[*credits.FullError](err); ok {
			return refuseValue(t.budgets.find(full.Account))
		}
		if short == nil {
			return err
		}
		b := t.budgets.find(short.Account)
		if b == nil || waited || ctx.Err() != nil || !held && short.FreeAt == 0 {
			return refuse(part, short, b, held)
		}
		pause, left := HeldInterval, time.Duration(b.Wait)-time.Since(began)
		if !held {
			if pause = time.Until(short.FreeAt.Time()); pause > left {
				return refuse(part, short, b, held)
			}
		} else if waited = left <= 0; waited {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		t.move(part, storage.Millis(time.Now()))
	}
}

// move counts a call that has waited in the newest step of rolling windows.
func (t *Ticket) move(part *share, now storage.Timestamp) {
	for i := range part.Holds {
		h := &part.Holds[i]
		b := slices.IndexFunc(t.budgets, func(b bound) bool { return b.hold.Account == h.Account })
		if h.Rolling > 0 {
			h.Begins, h.Ends = h.Rolling.Around(now)
			t.budgets[b].hold = *h
		}
	}
}

// tryReserve sets a share aside, or returns the account that is short, and whether other
// calls hold what is missing. The call is fitted into what is left only if waiting for other
// calls would not help, or if the call has waited.
func (g Gate) tryReserve(ctx context.Context, t *Ticket, part *share, s Spending, waited bool) (short *credits.InsufficientError, held bool, err error) {
	r, holds := &part.Reservation, part.Holds
	r.Holds = part.sparing(s, t.budgets)
	for range len(r.Holds) + 2 { // each account may be short once, and the first without what is spared
		r.Lost = part.lost()
		err = t.ledger.Reserve(ctx, *r)
		if errors.As(err, &short) && short.Budget == "" && short.Granted == 0 { // the first grant is yet to come
			if err = g.App.SeedCredits(ctx, t.ledger, r.Org); err == nil {
				err = t.ledger.Reserve(ctx, *r)
			}
		}
		if !errors.As(err, &short) {
			return nil, false, err
		}
		b := t.budgets.find(short.Account)
		if b != nil {
			short.Granted = b.limit
		}
		spared := short.Available() >= r.Amount
		r.Holds = holds
		fit, unspent := part.fit(s, b), short.Granted-short.Spent
		switch {
		case b != nil && b.Wait == 0 && fit != nil && fit(b.portion(short)), spared:
		case unspent >= r.Amount && (!waited || fit == nil):
			return short, true, nil
		case fit == nil:
			return short, false, nil
		case !fit(short.Available()):
			return short, unspent >= r.Amount || fit(unspent), nil
		}
		r.Amount = plugins.Nanodollars(part.amount(t, s).N)
	}
	return short, true, nil // calls came between
}

// sparing returns the holds of a share. If the call can be lowered, a twentieth of each limit
// stays free of it for calls that are lowered: else a few that ask for far more than they
// write hold all that is left, and others are refused.
func (part *share) sparing(s Spending, budgets bounding) []credits.Hold {
	if s.Fit == nil || !part.metered() {
		return part.Holds
	}
	holds := slices.Clone(part.Holds)
	for i := range holds {
		if b := budgets.find(holds[i].Account); b != nil && b.Wait == 0 {
			holds[i].Limit -= b.limit / 20
		}
	}
	return holds
}

// portion is to how much of what is left a call is lowered for which nobody shall wait: an
// eighth lets 20 calls at once have a part, and half is enough for a call that is alone.
func (b *Budget) portion(left *credits.InsufficientError) plugins.Nanodollars {
	if left.Reserved == 0 {
		return left.Available() / 2
	}
	return left.Available() / 8
}

// fit returns what lowers a call to what is left in a budget, or in the credits if b is nil.
// It is nil if the call cannot be lowered.
func (part *share) fit(s Spending, b *Budget) func(left plugins.Nanodollars) bool {
	var ways []func(func(Used) bool) bool
	if s.Fit != nil && part.metered() {
		ways = append(ways, s.Fit)
	}
	if s.Cut != nil && part.metered() && b != nil && b.Cut {
		ways = append(ways, s.Cut)
	}
	if ways == nil {
		return nil
	}
	return func(left plugins.Nanodollars) bool {
		return slices.ContainsFunc(ways, func(lower func(func(Used) bool) bool) bool {
			return lower(func(u Used) bool {
				n := part.of(u)
				return n.Valid && plugins.Nanodollars(n.N) <= left
			})
		})
	}
}

// of returns the budgets of a share.
func (all bounding) of(part *share) (list bounding) {
	for _, b := range all {
		if b.quantity == part.quantity && b.expects() == part.expected {
			list = append(list, b)
		}
	}
	return list
}

// expect reports whether a budget sets aside what is expected.
func (all bounding) expect() bool {
	return slices.ContainsFunc(all, func(b bound) bool { return b.expects() })
}

// find returns the budget of an account, nil for the credits.
func (all bounding) find(account credits.Account) *Budget {
	for _, b := range all {
		if b.hold.Account == account {
			return b.Budget
		}
	}
	return nil
}

// refuse says why a share cannot be set aside: other calls hold what is left until they end,
// or too little is left. b is nil for the credits.
func refuse(part *share, short *credits.InsufficientError, b *Budget, held bool) *plugins.Error {
	if b != nil && b.quantity != dollars {
		return refuseRate(part, short, b)
	}
	of, more := "credits", "ask for more credits"
	sums := fmt.Sprintf("The call may cost %s. Of the %s granted, %s is spent, and calls in flight hold %s.", part.Amount, short.Granted, short.Spent, short.Reserved)
	code := codeSpent
	if held {
		code = codeHeld
	}
	if b != nil {
		of, more = "budget "+b.Name, "ask for a higher limit"
		sums = fmt.Sprintf("The call may cost %s. Of the limit of %s for %s, %s is spent, and calls in flight hold %s.", part.Amount, b.limit, b.Subject(short.Account), short.Spent, short.Reserved)
		switch {
		case short.FreeAt != 0:
			sums += fmt.Sprintf(" Enough is free at %s.", short.FreeAt)
		case short.Ends != 0 && b.rolling == 0:
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

// refuseValue refuses a call of a value that is one too many for a budget without an end.
func refuseValue(b *Budget) *plugins.Error {
	budgetRefusals.With(b.label, codeRate).Inc()
	return &plugins.Error{
		Status: http.StatusTooManyRequests, Type: "rate_limit_error", Code: codeRate.String(), Final: true,
		Message: fmt.Sprintf("The budget %s counts %d values of %s for ever, and no other: give the budget a window, such as month.", b.Name, credits.MaxValues, b.Per),
	}
}

// maxRetryAfter is how long clients wait for another try. They try at once what should wait
// longer (https://github.com/openai/openai-python/blob/main/src/openai/_base_client.py).
const maxRetryAfter = time.Minute

// refuseRate says why a limit of tokens, requests or calls at once refuses a call, and when
// the call would pass.
func refuseRate(part *share, short *credits.InsufficientError, b *Budget) *plugins.Error {
	budgetRefusals.With(b.label, codeRate).Inc()
	e := &plugins.Error{Status: http.StatusTooManyRequests, Type: "rate_limit_error", Code: codeRate.String()}
	text := b.quantity.text
	e.Message = fmt.Sprintf("The limit %s allows %s for %s", b.Name, text(b.limit), b.Subject(short.Account))
	if b.Window != windowTotal {
		e.Message += " in a window of " + b.Window
	}
	switch {
	case part.Amount > b.limit:
		e.Final = true
		e.Message += fmt.Sprintf(", and this call may use %s: lower its limit of output tokens.", text(part.Amount))
		return e
	case b.quantity == concurrent:
		e.RetryAfter = time.Second
		e.Message += fmt.Sprintf(", and %d run. Try again when one has ended.", short.Reserved)
		return e
	}
	if e.Message += fmt.Sprintf(": %s are used.", text(short.Spent)); b.quantity.metered() {
		e.Message += fmt.Sprintf(" Calls in flight hold %s, and this call may use %s.", text(short.Reserved), text(part.Amount))
	}
	free := short.FreeAt
	if b.rolling == 0 {
		free = short.Ends
	}
	switch {
	case free != 0:
		e.RetryAfter = max(time.Until(free.Time()), time.Second)
		e.Message += fmt.Sprintf(" Enough is free at %s.", free)
	case short.Granted-short.Spent >= part.Amount:
		e.RetryAfter = reservedRetryAfter
	}
	e.Final = e.RetryAfter == 0 || e.RetryAfter > maxRetryAfter
	return e
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
func (t *Ticket) Charge(ctx context.Context, total, earlier Used) error {
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
