package llmgateway

import (
	"errors"
	"math"
	"net/http"
	"time"

	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/transcript"
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

// reserve sets aside what the attempt may cost, where the house's key pays for
// an organisation that has credits, and for more than a count. Such calls must
// keep to the documented schema.
func (a *attempt) reserve() *plugins.Error {
	if !a.target.account.Platform || !a.h.app.HasCredits(a.record.Org) || a.dialect == plugins.CountTokens {
		return nil
	}
	a.record.PassthroughBilling = true
	if a.dialect == plugins.Responses {
		if err := translate.Validate(a.body); err != nil {
			return asError(err)
		}
	}
	price := a.estimate(a.mayOutput(), a.tier())
	if !price.Valid {
		e := plugins.Invalid("model", "The model '%s' has no known price, and cannot be paid for with credits.", a.target.name())
		e.Code = "model_not_priced"
		return e
	}
	ledger, err := a.h.credits()
	if err == nil {
		a.reservation, err = ledger.Reserve(a.record.Org, a.id, price.N)
	}
	if errors.Is(err, credits.ErrInsufficient) {
		return &plugins.Error{
			Status: http.StatusPaymentRequired, Type: "insufficient_quota", Code: "insufficient_quota",
			Message: "Insufficient credits for this call. Lower the limit of output tokens, or ask for more credits.",
		}
	}
	if err != nil {
		a.h.logger.Error("credits cannot be read", zap.String("store", a.h.store), zap.Error(err))
		return asError(err)
	}
	return nil
}

// outputLimits are the fields that bound the output, in tokens.
var outputLimits = map[plugins.Dialect][]string{
	plugins.Responses: {"max_output_tokens"},
	plugins.Chat:      {"max_completion_tokens", "max_tokens"},
	plugins.Messages:  {"max_tokens"},
}

// maxChoices is how many answers one call can ask for, OpenAI's own limit.
const maxChoices = 128

// mayOutput is how many tokens the provider may answer.
func (a *attempt) mayOutput() int64 {
	if a.dialect == plugins.Embeddings {
		return 0
	}
	output := int64(assumedOutput)
	if m := a.target.listed; m != nil && m.MaxOutput > 0 {
		output = min(output, m.MaxOutput)
	}
	for _, field := range outputLimits[a.dialect] {
		if asked := gjson.GetBytes(a.body, field); asked.Type == gjson.Number {
			output = min(asked.Int(), math.MaxInt32) // which can be multiplied
			break
		}
	}
	if a.dialect == plugins.Chat {
		output *= min(max(gjson.GetBytes(a.body, "n").Int(), 1), maxChoices)
	}
	return output
}

// estimate is what the call costs with so many tokens of output.
func (a *attempt) estimate(output int64, tier string) plugins.Cost {
	if a.target.listed == nil {
		return plugins.Cost{}
	}
	input := (int64(len(a.sent)) + bytesPerToken - 1) / bytesPerToken
	return a.target.listed.Cost(plugins.Usage{Input: plugins.Known(input), Output: plugins.Known(output)}, tier, time.Now())
}

// charge takes what is known of the cost from the credits.
func (a *attempt) charge(cost plugins.Cost) {
	if a.reservation == nil || !cost.Valid {
		return
	}
	if err := a.reservation.Charge(cost.N); err != nil {
		a.h.logger.Error("a charge is not on disk", zap.Stringer("id", a.id), zap.Stringer("cost", cost.N), zap.Error(err))
	}
}

// tier is the one that was asked for.
func (a *attempt) tier() string { return gjson.GetBytes(a.body, "service_tier").Str }

// settle frees what is left of the reservation. An answer that ended before the
// provider told its usage, or that came by a tier without a price, costs what has
// passed, by its length; so does one that its client left, unless the provider has
// told of more: until the end, some tell only what they began with.
func (a *attempt) settle() {
	if a.reservation == nil {
		return
	}
	if a.answered && (!a.record.Cost.Valid || a.record.EndState == storage.ClientAborted) {
		output := a.length() / bytesPerToken
		passed := a.estimate(output, a.record.ServiceTier).Or(a.estimate(output, a.tier()))
		passed.N = max(min(passed.N, a.reservation.Amount()), a.record.Cost.N)
		a.charge(passed)
	}
	a.reservation.Release()
}

// length is that of what the model said, in bytes, or of all that passed where
// nothing is kept.
func (a *attempt) length() int64 {
	r := a.content.Response
	stored, _ := transcript.Stored(a.dialect, r.Type, r.Data)
	for _, said := range gjson.GetManyBytes(stored, "output", "choices", "content") {
		if said.IsArray() {
			return int64(len(said.Raw))
		}
	}
	return a.record.ResponseBytes
}
