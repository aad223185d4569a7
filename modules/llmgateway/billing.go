package llmgateway

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
)

const (
	// bytesPerToken is by which the tokens of a text are estimated.
	bytesPerToken = 4
	// assumedOutput is the output, in tokens, that is reserved where neither
	// the request nor the model bounds it lower.
	assumedOutput = 4096
)

// reserve sets aside what the attempt may cost, where an organisation pays with
// credits for platform credentials, and for more than a count.
func (a *attempt) reserve() error {
	if !a.shared() || a.call.dialect.CountsTokens() {
		return nil
	}
	a.x.Record.PassthroughBilling = true
	output, err := a.outputTokenLimit()
	if err != nil {
		return err
	}
	price := a.estimate(output, a.call.tier()).Or(a.estimate(output, ""))
	if !price.Valid {
		e := plugins.Invalid("model", "The model '%s' has no known price, and cannot be paid for with credits.", a.target.Name())
		e.Code = "model_not_priced"
		return e
	}
	// The record's id may be the client's choice, and used elsewhere at the same time.
	r := credits.Reservation{ID: uuid.New(), Org: a.x.Record.Org, Amount: price.N}
	ledger, err := a.call.h.credits()
	if err == nil {
		err = ledger.Reserve(a.call.ctx, r)
	}
	if errors.Is(err, credits.ErrInsufficient) {
		if err = a.call.h.site.App.SeedCredits(a.call.ctx, ledger, r.Org); err == nil {
			err = ledger.Reserve(a.call.ctx, r)
		}
	}
	if errors.Is(err, credits.ErrInsufficient) {
		return &plugins.Error{
			Status: http.StatusPaymentRequired, Type: "insufficient_quota", Code: "insufficient_quota",
			Message: "Insufficient credits for this call. Lower the limit of output tokens, or ask for more credits.",
		}
	}
	if err != nil {
		a.call.h.site.Logger.Error("a call cannot be paid from credits", zap.Stringer("id", a.x.Record.ID), zap.String("store", a.call.h.site.Store), zap.Error(err))
		return &plugins.Error{
			Status: http.StatusServiceUnavailable, Type: "server_error", Code: "credits_unavailable",
			Message: "The gateway cannot read its credits, and makes no call that is paid from them.",
		}
	}
	a.ledger, a.reservation, a.x.Pay = ledger, r, a.charge
	return nil
}

// outputLimits are the fields that bound the output, in tokens.
var outputLimits = map[plugins.Dialect][]string{
	plugins.Responses:   {"max_output_tokens"},
	plugins.Chat:        {"max_completion_tokens", "max_tokens"},
	plugins.Completions: {"max_tokens"},
	plugins.Messages:    {"max_tokens"},
}

// maxChoices is how many answers one call can ask for, OpenAI's own limit.
const maxChoices = 128

// outputTokenLimit returns how many tokens the provider may answer.
func (a *attempt) outputTokenLimit() (int64, error) {
	c := a.call
	output := int64(assumedOutput)
	if m := a.target.Listed; m != nil && m.MaxOutput > 0 {
		output = min(output, m.MaxOutput)
	}
	for _, field := range outputLimits[c.dialect] {
		asked := c.field(field)
		if asked.Type != gjson.Number {
			continue
		}
		if asked.Num < 0 {
			e := plugins.Invalid(field, "Invalid '%s': integer below minimum value. Expected a value >= 0, but got %s instead.", field, asked.Raw)
			e.Code = "integer_below_min_value"
			return 0, e
		}
		output = min(asked.Int(), math.MaxInt32) // which can be multiplied
		break
	}
	if c.dialect == plugins.Chat || c.dialect == plugins.Completions {
		output *= min(max(c.field("n").Int(), c.field("best_of").Int(), 1), maxChoices)
	}
	return output, nil
}

// estimate returns what the call costs with so many tokens of output.
func (a *attempt) estimate(output int64, tier string) plugins.Cost {
	if a.target.Listed == nil {
		return plugins.Cost{}
	}
	usage := plugins.Usage{Input: plugins.Known(a.inputTokens()), Output: plugins.Known(output)}
	if e := endpoints[a.call.path]; e.usage != nil {
		usage = e.usage(a.call)
	}
	if a.call.dialect == plugins.Realtime { // all is audio, and the conversation as long as the answer
		usage = plugins.Usage{Input: plugins.Known(assumedOutput), InputAudio: plugins.Known(assumedOutput), Output: usage.Output, OutputAudio: usage.Output}
	}
	return a.target.Listed.Cost(usage, catalog.Conditions{
		At: time.Now(), Tier: tier, Geography: cmp.Or(a.x.Record.InferenceGeo, a.call.field("inference_geo").Str),
	})
}

// inputTokens estimates the tokens of what the provider is sent.
func (a *attempt) inputTokens() int64 {
	if a.round > 0 {
		return (a.req.ContentLength + bytesPerToken - 1) / bytesPerToken
	}
	return a.call.inputTokens()
}

// tier is the one that was asked for.
func (c *call) tier() string { return c.field("service_tier").Str }

// unpricedTier reports whether a tier was asked for that cannot be paid for,
// because it has no price where the model has one. It is left out of the request.
func (a *attempt) unpricedTier() bool {
	tier := a.call.tier()
	return tier != "" && a.shared() && !a.estimate(0, tier).Valid && a.estimate(0, "").Valid
}

// charge takes a cost from the credits. One that is lower than what was charged
// before changes nothing.
func (a *attempt) charge(cost plugins.Cost) {
	if a.ledger == nil || !cost.Valid {
		return
	}
	ctx := context.WithoutCancel(a.call.ctx) // a client that leaves is charged, too
	if err := a.ledger.Charge(ctx, a.reservation, cost.N-a.paid); err != nil {
		a.call.h.site.Logger.Error("a charge is not on disk", zap.Stringer("id", a.x.Record.ID), zap.Stringer("cost", cost.N), zap.Error(err))
	}
}

// settle charges an answer whose cost nothing has told: one that ended before the
// provider reported usage, or that came by a tier without a price. It costs what
// has passed, by its length. So does one that its client left, unless the provider
// has reported more: until the end, some report only what they began with.
func (a *attempt) settle(end storage.EndState) {
	cost := a.x.Record.Cost
	if a.ledger == nil || cost.Valid && end != storage.ClientAborted {
		return
	}
	output := a.x.Record.ResponseBytes / realtimeBytes
	if a.call.dialect != plugins.Realtime {
		output = a.length() / bytesPerToken
	}
	passed := a.estimate(output, a.x.Record.ServiceTier).Or(a.estimate(output, a.call.tier())).Or(a.estimate(output, ""))
	a.x.Charged = max(a.paid+min(passed.N, a.reservation.Amount), cost.N)
	a.x.Commit(end)
}

// release frees what is left of the reservation. Nothing can be charged any more.
func (a *attempt) release() {
	if a.ledger == nil {
		return
	}
	if err := a.ledger.Release(context.WithoutCancel(a.call.ctx), a.reservation); err != nil {
		a.call.h.site.Logger.Error("a reservation of credits is not released", zap.Stringer("id", a.x.Record.ID), zap.Error(err))
	}
	a.ledger = nil
}

// length is that of what the model said, in bytes, or of all that passed where
// nothing is kept.
func (a *attempt) length() int64 {
	if assembler, ok := a.x.Answer.(*translate.Assembler); ok && a.mcp != nil {
		return assembler.Said() // in the round that is paid
	}
	r := a.x.Content.Response
	stored, _ := observe.Transcript(a.call.dialect).Stored(r.Type, r.Data)
	for _, said := range gjson.GetManyBytes(stored, "output", "choices", "content") {
		if said.IsArray() {
			return int64(len(said.Raw))
		}
	}
	return a.x.Record.ResponseBytes
}
