package llmgateway

import (
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/money/cut"
	"github.com/weirhq/weir/plugins/observe"
)

// fit returns the limits of output tokens to which the attempt can be lowered. There are none if the
// dialect has no such limit, or if the request must be sent as it is.
func (a *attempt) fit(of *bound.Call) bound.Limits {
	c := a.call
	if len(observe.OutputLimits(c.dialect)) == 0 || c.controls.Strict || c.input.compaction != nil || c.route.native {
		return bound.Limits{}
	}
	// Messages refuses a limit up to the budget of thinking.
	return of.Lowerable(bound.LeastOutput + c.input.field("thinking").Get("budget_tokens").Int())
}

// cut returns the limits at which the stream of the attempt can be ended. There are none if the request
// asks for no stream, or for several answers, or if the stream does not show everything that is
// charged.
func (a *attempt) cut(of *bound.Call) bound.Limits {
	c := a.call
	if of.Model == nil || !c.input.streams() || !cut.Possible(c.dialect) || c.input.compaction != nil || of.Answers() > 1 || of.Hidden || of.Silent() {
		return bound.Limits{}
	}
	return of.Lowerable(bound.LeastOutput)
}

// cutBytes returns how many bytes the stream of the attempt may have, 0 for any number.
func (a *attempt) cutBytes() int64 { return a.x.Bill.CutAt * bound.UpperBound.TextBytes }

// loweredLimit returns the limit of output tokens to which the request is lowered, 0 if it is not.
func (a *attempt) loweredLimit() int64 {
	if a.x.Bill == nil { // nothing has been set aside yet
		return 0
	}
	return a.x.Bill.Fitted
}

// limitField returns the field that limits the output: the one in the request, else the dialect's first.
func (a *attempt) limitField() string {
	fields := observe.OutputLimits(a.call.dialect)
	for _, field := range fields {
		if a.call.input.field(field).Type == gjson.Number {
			return field
		}
	}
	return fields[0]
}

// loweredWarning tells the client that its limit is lowered.
func (a *attempt) loweredWarning() string {
	return fmt.Sprintf("%s: lowered to %d, for which budgets and credits have room", a.limitField(), a.loweredLimit())
}
