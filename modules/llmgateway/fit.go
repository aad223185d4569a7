package llmgateway

import (
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/money/cut"
	"github.com/weirhq/weir/plugins/observe"
)

// fit returns the limits to which the output of the attempt can be lowered, none if the request has
// no limit of its output, or must be sent as it is.
func (a *attempt) fit(of *bound.Call) bound.Limits {
	c := a.call
	if len(observe.OutputLimits(c.dialect)) == 0 || c.controls.Strict || c.compaction != nil || c.route.native {
		return bound.Limits{}
	}
	// Messages refuses a limit that leaves no room beside what the model may think.
	return of.Lowerable(bound.LeastOutput + c.field("thinking").Get("budget_tokens").Int())
}

// cut returns the limits at which the stream of the attempt can be ended, none if the request asks
// for no stream or several answers, or if the stream does not show all that is charged.
func (a *attempt) cut(of *bound.Call) bound.Limits {
	c := a.call
	if of.Model == nil || !c.streams() || !cut.Possible(c.dialect) || c.compaction != nil || of.Answers() > 1 || of.Hidden || of.Silent() {
		return bound.Limits{}
	}
	return of.Lowerable(bound.LeastOutput)
}

// cutBytes is after how many bytes the stream of the attempt is ended, 0 if it is not.
func (a *attempt) cutBytes() int64 { return a.x.Bill.CutAt * bound.UpperBound.TextBytes }

// fitted is the limit of output tokens to which the request is lowered, 0 if it is not.
func (a *attempt) fitted() int64 {
	if a.x.Bill == nil { // nothing has been set aside yet
		return 0
	}
	return a.x.Bill.Fitted
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
	return fmt.Sprintf("%s: lowered to %d, for which budgets and credits have room", a.limitField(), a.fitted())
}
