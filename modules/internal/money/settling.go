package money

import (
	"net/http"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// Ending is how the answer to a request ended.
type Ending struct {
	// Status is the provider's, 0 if there was none.
	Status int64
	// Left: the client, or Weir on its behalf, stopped waiting while the provider continues.
	Left bool
	// Broken: the answer is incomplete, because of the client, the provider or a budget.
	// Provider: the provider is the cause.
	Broken, Provider bool
	// Stream: the answer is a stream, or the request asked for one.
	Stream bool
	// Served: the client has received a part of the answer.
	Served bool
	// Final: the usage that the provider has stated covers the whole answer.
	Final bool
	// Cost is the cost of the stated usage. It is unknown if no usage is stated, if the usage has no
	// price, or if the provider also bills something whose cost is unknown.
	Cost plugins.Cost
	// Stated is the usage that the provider has stated.
	Stated plugins.Usage
	// Unbegun: the provider has not begun the response in a socket, or has refused it.
	Unbegun bool
	// Hosted: the answer may have called tools that the provider runs and bills.
	Hosted bool
	// Length returns the length of the answer so far. It may have to read the answer.
	Length func() Length
}

// Rule is how an answer is counted.
type Rule int

const (
	// AsStated counts what the provider has stated, and nothing more.
	AsStated Rule = iota
	// AtMaximum counts the reserved amount. The cost is unknown if nothing was reserved.
	AtMaximum
	// ByLength estimates the output from the length of the answer so far.
	ByLength
	// ByRequest counts the usage that the request alone determines. If it determines none,
	// ByRequest is AtMaximum.
	ByRequest
)

// Rule returns the rule of the first row of the table that matches the ending.
func (e *Ending) Rule() Rule {
	complete := !e.Broken && !e.Left
	switch {
	case e.Unbegun, !e.Left && (e.Status < http.StatusOK || e.Status >= http.StatusMultipleChoices):
		return AsStated
	case e.CostStated() && e.Stated.Input.Valid:
		return AsStated
	case complete && e.Stated == (plugins.Usage{}):
		return ByRequest
	case complete || e.Final:
		return AtMaximum
	case e.Provider && !e.Served && !e.Left:
		return AsStated
	case !e.Stream || e.Hosted:
		return AtMaximum
	}
	return ByLength
}

// Unstated returns the cost of an answer with that status that states no usage and is not settled: 0
// for an error, unknown for any other. Only the rule of its ending makes an error cost anything.
func Unstated(status int64) plugins.Cost {
	return plugins.Cost{Valid: status >= http.StatusBadRequest && status != storage.StatusClientLeft}
}

// CostStated reports whether the stated usage determines the cost of the whole answer. The usage
// may have no tokens, if the provider bills something else, such as seconds of audio.
func (e *Ending) CostStated() bool { return e.Cost.Valid && (e.Final || !e.Broken && !e.Left) }

// Length is the length of an answer so far.
type Length struct {
	// Bytes is the number of bytes that the model has written, and Events the number of events
	// that carried them. Events count because each carries at least one token, and tokens of digits
	// or rare characters have fewer than four bytes.
	Bytes, Events int64
	// Took is the time that the provider has had.
	Took plugins.Milliseconds
}

// Settle returns what a call has used, by the rule of its ending, which must not be AsStated.
// upperBound bounds its usage. tier is the service tier that the provider has named. call is nil if
// nothing is known about the call.
func (e *Ending) Settle(call *bound.Call, upperBound bound.Used, tier string) bound.Used {
	used, rule := upperBound, e.Rule()
	switch {
	case call != nil && rule == ByRequest && call.Estimated != nil && call.Model != nil:
		used.Usage = call.Estimated()
		return withCost(used, call.Cost(used.Usage, tier))
	case rule != ByLength || call == nil:
		used.Usage.Input = e.Stated.Input.Or(used.Usage.Input)
		if e.Final || !e.Broken && !e.Left {
			used.Usage.Output = e.Stated.Output.Or(used.Usage.Output)
		}
		return used
	}
	output := plugins.Known(e.Written(call))
	if used.Usage.Output.Valid {
		output.N = max(min(output.N, used.Usage.Output.N), e.Stated.Output.N)
	}
	if !e.Stated.Input.Valid {
		used.Usage.Output = output
		return withCost(used, call.MaxCost(used.Usage))
	}
	used.Usage = e.Stated
	used.Usage.Output = output
	return withCost(used, call.Cost(used.Usage, tier))
}

// withCost returns used with its cost lowered to cost, if both are known.
func withCost(used bound.Used, cost plugins.Cost) bound.Used {
	if used.Cost.Valid && cost.Valid {
		used.Cost.N = min(used.Cost.N, cost.N)
	}
	return used
}

// Written estimates the tokens of an answer from its length. If the model may have written tokens
// that the answer does not show, such as its reasoning, the time that it had counts as well.
func (e *Ending) Written(call *bound.Call) int64 {
	length := e.Length()
	written := max(bound.Likely.Text(length.Bytes), length.Events)
	if e.Left || call.Silent() {
		thought := bound.Thought(length.Took)
		if limit := call.Lowerable(0).Asked; limit > 0 {
			thought = min(thought, limit)
		}
		written = max(written, thought)
	}
	return max(written, e.Stated.Output.N)
}
