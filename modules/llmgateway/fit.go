package llmgateway

import (
	"fmt"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/money/cut"
	"github.com/weirhq/weir/plugins/observe"
)

// fit returns how the output of the attempt is lowered to what credits cover, nil if the
// request has no limit of its output, or must be sent as it is.
func (a *attempt) fit() func(fits func(bound.Used) bool) bool {
	c := a.call
	if len(observe.OutputLimits(c.dialect)) == 0 || c.controls.Strict || c.compacts || c.route.native || a.round > 0 {
		return nil
	}
	return func(fits func(bound.Used) bool) bool {
		// Messages refuses a limit that leaves no room beside what the model may think.
		least := bound.LeastOutput + c.field("thinking").Get("budget_tokens").Int()
		return a.highest(&a.fitted, least, fits)
	}
}

// highest sets a limit of the attempt's output to the highest limit that fits, from least on. It
// reports whether a limit fits.
func (a *attempt) highest(limit *int64, least int64, fits func(bound.Used) bool) bool {
	*limit = bound.Lower(least, a.mostOutput(), func(asked int64) bool {
		*limit = asked
		return fits(a.atMost())
	})
	return *limit > 0
}

// cut returns how the stream of the attempt is ended at what a budget covers, nil if it
// cannot be: the request asks for no stream or several answers, or the stream does not show
// all that is charged.
func (a *attempt) cut() func(fits func(bound.Used) bool) bool {
	c, m := a.call, a.target.Listed
	if m == nil || !c.streams() || !cut.Possible(c.dialect) || c.compacts || a.round > 0 || a.mcp != nil || c.demanded().Answers() > 1 ||
		c.demanded().Silent(m) || a.request != nil && m.Reasoning { // a translation may make the model think
		return nil
	}
	return func(fits func(bound.Used) bool) bool {
		return a.highest(&a.cutAt, bound.LeastOutput, fits)
	}
}

// cutBytes is after how many bytes the stream of the attempt is ended, 0 if it is not.
func (a *attempt) cutBytes() int64 { return a.cutAt * bound.Most.TextBytes }

// mostOutput returns how many tokens each answer of the attempt has at most.
func (a *attempt) mostOutput() int64 {
	most := a.target.Listed.OutputLimit()
	if asked := a.outputLimit(); asked > 0 {
		most = min(most, asked)
	}
	return most
}

// lower makes the request of the attempt again, with the limit that the credits cover.
func (a *attempt) lower() (err error) {
	a.warnings, a.client = nil, client{w: a.call.w}
	a.req, err = a.upstreamRequest()
	return err
}

// outputLimit returns the limit of output tokens of each answer, 0 for none.
func (a *attempt) outputLimit() int64 {
	if a.fitted > 0 {
		return a.fitted
	}
	asked, _ := a.call.demanded().OutputLimit() // allow has refused what is no limit
	return asked
}

// limitField is the field by which the client limits the output, or can limit it.
func (a *attempt) limitField() string {
	fields := observe.OutputLimits(a.call.dialect)
	for _, field := range fields {
		if a.call.field(field).Type == gjson.Number {
			return field
		}
	}
	return fields[0]
}

// lowered is the warning that tells the client what became of its limit.
func (a *attempt) lowered() string {
	return fmt.Sprintf("%s: lowered to %d, which the credits cover", a.limitField(), a.fitted)
}

// limited returns a body in the client's dialect with the limit that the credits cover.
func (a *attempt) limited(body []byte) ([]byte, error) {
	a.warnings = append(a.warnings, a.lowered())
	body, err := sjson.SetBytes(body, a.limitField(), a.fitted)
	for _, field := range observe.OutputLimits(a.call.dialect) { // vendors differ in which field they obey
		if err == nil && a.call.field(field).Type != gjson.Null {
			body, err = sjson.SetBytes(body, field, a.fitted)
		}
	}
	return body, err
}
