package money

import (
	"fmt"
	"net/http"
	"time"

	"github.com/weirhq/weir/internal/metric"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage/credits"
	"github.com/weirhq/weir/storage/journal"
)

// reservedRetryAfter is when a call should come back that waits for others to end.
const reservedRetryAfter = 5 * time.Second

// unavailableRetryAfter is when a call should come back that found no ledger.
const unavailableRetryAfter = 10 * time.Second

// unavailable is the error for a call that cannot be counted.
func unavailable(err error) *plugins.Error {
	return plugins.Unavailable("budget_unavailable", unavailableRetryAfter, "The gateway cannot read its credits and budgets, and makes no call that they bound."+journal.Advice(err))
}

// notPriced is the error for a call whose use is not known and would have to be counted.
func notPriced(s Spending, budgets budgetHolds) *plugins.Error {
	counted, missing := "paid for with credits", "price"
	if len(budgets) > 0 {
		counted = "counted by the budget " + budgets[0].budget.Name
		if budgets[0].budget.quantity != dollars {
			missing = "limit of tokens"
		}
		budgetRefusals.With(budgets[0].budget.label, codeNotPriced).Inc()
	}
	e := plugins.Invalid("model", "The model '%s' has no known %s, and cannot be %s.", s.Model, missing, counted)
	switch {
	case s.Record.Dialect == plugins.Runs && observe.IsAgentSession(s.Record.Path):
		e = plugins.Invalid("agent", "The agent runs at the provider after this call has ended, without a bound, and cannot be %s.", counted)
	case s.Call.RunsAgents():
		e = plugins.Invalid("model", "The model '%s' runs several agents for each answer, without a bound, and cannot be %s.", s.Model, counted)
	case s.Model == "":
		e = plugins.Invalid("", "What this call uses is not known before the call has ended, and cannot be %s.", counted)
	}
	if s.Batch != nil {
		e.Message += " The calls of a batch are known if they stand in the request, or in a file that was uploaded here, and if all of their models have a price of batches."
	}
	e.Code = codeNotPriced.String()
	return e
}

// The codes of refusals.
var (
	codeHeld      = metric.Constant("budget_reserved")
	codeSpent     = metric.Constant("insufficient_quota")
	codeRate      = metric.Constant("rate_limit_exceeded")
	codeNotPriced = metric.Constant("model_not_priced")
)

// refuse says why a share cannot be set aside: other calls hold what is left until they end,
// or too little is left. b is nil for the credits.
func refuse(part *share, short *credits.InsufficientError, b *Budget, reserved bool) *plugins.Error {
	if b != nil && b.quantity != dollars {
		return refuseRate(part, short, b)
	}
	of, more, text := "credits", "ask for more credits", dollars.text
	sums := fmt.Sprintf("The call may cost %s. Of the %s granted, %s is spent, and calls in flight hold %s.",
		text(part.Amount), text(short.Granted), text(short.Spent), text(short.Reserved))
	code := codeSpent
	if reserved {
		code = codeHeld
	}
	if b != nil {
		of, more = "budget "+b.Name, "ask for a higher limit"
		sums = fmt.Sprintf("The call may cost %s. Of the limit of %s for %s, %s is spent, and calls in flight hold %s.",
			text(part.Amount), text(b.limit), b.Subject(short.Account), text(short.Spent), text(short.Reserved))
		switch {
		case short.FreeAt != 0:
			sums += fmt.Sprintf(" Enough is free at %s.", short.FreeAt)
		case short.Ends != 0 && b.rolling == 0:
			sums += " The budget resets on " + short.Ends.Time().UTC().Format("2 January 2006, 15:04 UTC") + "."
		}
		budgetRefusals.With(b.label, code).Inc()
	}
	if reserved {
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
