package llmgateway

import (
	"fmt"
	"sort"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins/observe"
)

// leastFitted is the lowest limit of output tokens that a call is given. With fewer tokens
// an answer is paid for and of no use.
const leastFitted = 256

// fit returns how the output of the attempt is lowered to what credits cover, nil if the
// request has no limit of its output, or must be sent as it is.
func (a *attempt) fit() func(fits func(llmapp.Used) bool) bool {
	c := a.call
	if len(observe.OutputLimits(c.dialect)) == 0 || c.controls.Strict || c.compacts || c.route.native || a.round > 0 {
		return nil
	}
	return func(fits func(llmapp.Used) bool) bool {
		// Messages refuses a limit that leaves no room beside what the model may think.
		least := int(leastFitted + c.field("thinking").Get("budget_tokens").Int())
		asked := int(a.outputLimit())
		if most := int(a.target.Listed.OutputLimit()); asked == 0 || asked > most {
			asked = most
		}
		covered := func(limit int) bool {
			a.fitted = int64(limit)
			return fits(a.atMost())
		}
		if asked <= least || !covered(least) { // the search reads the request for each limit
			a.fitted = 0
			return false
		}
		dearer := sort.Search(asked-least, func(i int) bool { return !covered(least + i) })
		a.fitted = int64(least + dearer - 1)
		return true
	}
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
		if err == nil && a.call.field(field).Type == gjson.Number {
			body, err = sjson.SetBytes(body, field, a.fitted)
		}
	}
	return body, err
}
