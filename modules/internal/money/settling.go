package money

import (
	"net/http"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/plugins"
)

// Ending is how the answer to a request ended.
type Ending struct {
	// Status is the provider's, 0 if there was none.
	Status int64
	// Left: the client, or Weir for it, did not wait for the provider, which works on.
	Left bool
	// Broken: the answer has not come to its end, because of the client, the provider or a
	// budget. Provider: it was because of the provider.
	Broken, Provider bool
	// Stream: the answer is a stream, or was to be one.
	Stream bool
	// Served: the client has a part of the answer.
	Served bool
	// Final: the usage that the provider has stated is that of the whole answer.
	Final bool
	// Cost is known if the stated usage has a price, and nothing unknown was billed beside it.
	Cost plugins.Cost
	// Stated is the usage that the provider has stated.
	Stated plugins.Usage
	// Hosted: the answer may have called tools that the provider runs and bills.
	Hosted bool
}

// Rule is how an answer is counted.
type Rule int

const (
	// AsStated counts what the provider has stated, and nothing more.
	AsStated Rule = iota
	// AtMaximum counts what was set aside. If nothing was, the cost is unknown.
	AtMaximum
	// ByLength counts the output by the length of what has come.
	ByLength
	// ByRequest counts what the request alone tells, if it does. Else it is AtMaximum.
	ByRequest
)

// Rule returns the rule of the first row of the table that fits.
func (e *Ending) Rule() Rule {
	complete := !e.Broken && !e.Left
	switch {
	case !e.Left && (e.Status < http.StatusOK || e.Status >= http.StatusMultipleChoices):
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

// CostStated reports whether what the provider has stated tells the cost of the whole answer. It
// may tell no tokens, if the provider bills something else, such as the seconds of audio.
func (e *Ending) CostStated() bool { return e.Cost.Valid && (e.Final || !e.Broken && !e.Left) }

// Length is how much of an answer has come.
type Length struct {
	// Bytes is how many the model has written, and Events how many events they came in: each
	// has a token or more, and a token of digits or rare characters has less than four bytes.
	Bytes, Events int64
	// Took is how long the provider had.
	Took plugins.Milliseconds
}

// Settle returns what a call uses by the rule of its ending, which is not AsStated. most is what
// it uses at most. tier is the service tier that the provider has named. call is nil if nothing
// is known of it.
func (e *Ending) Settle(call *bound.Call, most bound.Used, length Length, tier string) bound.Used {
	used, rule := most, e.Rule()
	switch {
	case call != nil && rule == ByRequest && call.Told != nil && call.Model != nil:
		used.Usage = call.Told()
		return atMost(used, call.Cost(used.Usage, tier))
	case rule != ByLength || call == nil:
		used.Usage.Input = e.Stated.Input.Or(used.Usage.Input)
		if e.Final || !e.Broken && !e.Left {
			used.Usage.Output = e.Stated.Output.Or(used.Usage.Output)
		}
		return used
	}
	output := plugins.Known(e.Written(call, length))
	if used.Usage.Output.Valid {
		output.N = max(min(output.N, used.Usage.Output.N), e.Stated.Output.N)
	}
	if !e.Stated.Input.Valid {
		used.Usage.Output = output
		return atMost(used, call.MaxCost(used.Usage))
	}
	used.Usage = e.Stated
	used.Usage.Output = output
	return atMost(used, call.Cost(used.Usage, tier))
}

// atMost is used, at a cost that is known and lower.
func atMost(used bound.Used, cost plugins.Cost) bound.Used {
	if used.Cost.Valid && cost.Valid {
		used.Cost.N = min(used.Cost.N, cost.N)
	}
	return used
}

// Written estimates the tokens of an answer by its length: by the time, too, that the model had
// to write what does not show.
func (e *Ending) Written(call *bound.Call, length Length) int64 {
	written := max(bound.Likely.Text(length.Bytes), length.Events)
	if e.Left || call.Silent() {
		thought := bound.Thought(length.Took)
		if most := call.Lowerable(0).Asked; most > 0 {
			thought = min(thought, most)
		}
		written = max(written, thought)
	}
	return max(written, e.Stated.Output.N)
}
