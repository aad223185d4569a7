package llmgateway

import (
	"net/http"
	"slices"
	"time"
	"unsafe"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage/shared"
)

// choose returns the targets in the order in which the call tries them.
func (c *call) choose(targets []routing.Target) ([]routing.Place, error) {
	return routing.Choose(targets, func() *routing.Ask { return c.ask(len(targets) > 1) }, routing.Health{Breakers: c.h.breakers(), Loads: &routing.InProcess})
}

// ask is what the choice of a target depends on, which other nodes are asked for too where there is a
// choice.
func (c *call) ask(isChoice bool) *routing.Ask {
	ask := &routing.Ask{Record: &c.exchange.Record, Stream: c.input.streams(), Tokens: c.input.tokens(bound.Likely)}
	ask.Images = c.input.reader.Request().Media
	if outline := c.input.reader.Outline(); outline != nil {
		ask.Tools, ask.Marked = outline.Tools != 0, outline.Marked
	}
	warm := new(warmth)
	if !c.controls.DryRun {
		warm.target, warm.tokens = c.exchange.Warm()
	} else {
		outline, previous := c.continues()
		warm.target, warm.tokens = c.h.site.Warm(&c.exchange.Record, outline, previous)
	}
	// Only what a model has answered before can be in a cache.
	if outline := c.input.reader.Outline(); warm.target == 0 && isChoice && outline != nil && slices.ContainsFunc(outline.Messages, func(m observe.MessageHash) bool { return m.Model }) {
		warm.nodes = c.affinity()
		warm.elsewhere, warm.tokensElsewhere = warm.nodes.find(c.ctx)
	}
	ask.Warm = warm.tokensAt
	return ask
}

// warmth says which target's provider has the beginning of a call in its cache, and how many tokens
// it has.
type warmth struct {
	nodes           *affinity // nil if they were not asked
	target          uint64    // as this node knows it, 0 if it knows none
	tokens          int64
	elsewhere       shared.Key // as other nodes know it
	tokensElsewhere int64      // 0 if they know none
}

// tokensAt returns how many tokens of the call the provider of a target has cached.
func (w *warmth) tokensAt(t routing.Target) int64 {
	switch {
	case w.target != 0 && w.target == t.Lineage:
		return w.tokens
	case w.tokensElsewhere > 0:
		if w.nodes.target(t) == w.elsewhere {
			return w.tokensElsewhere
		}
	}
	return 0
}

// variant returns the call with the parameters that its alias gives to a choice.
func (c *call) variant(choice *routing.Choice) (*call, error) {
	if !choice.HasParameters() || c.dialect.CountsTokens() {
		return c, nil
	}
	if v := c.variants[choice]; v != nil {
		return v, nil
	}
	v := *c
	warnings := []string{"model: the alias sets parameters, and has no place for them in this request"}
	if c.input.form == nil && c.input.body != nil {
		var err error
		v.input.body, warnings, err = choice.Apply(c.dialect, c.input.body)
		if v.input.sent = v.input.body; err == nil && unsafe.SliceData(c.input.sent) != unsafe.SliceData(c.input.body) {
			v.input.sent, _, err = choice.Apply(c.dialect, c.input.sent)
		}
		if err != nil {
			return nil, plugins.Invalid("model", "The parameters of the alias do not fit the request: %v.", err)
		}
		v.input.last, v.input.neutral, v.input.parseErr = nil, nil, nil
	}
	controls := *c.controls
	controls.Warnings = append(slices.Clip(c.controls.Warnings), warnings...)
	v.controls = &controls
	if c.variants == nil {
		c.variants = make(map[*routing.Choice]*call)
	}
	c.variants[choice] = &v
	return &v, nil
}

// observe tells the loads how a target has answered, or that it refuses calls for now.
func (a *attempt) observe(outcome routing.Outcome, failure *plugins.Error) {
	r := &a.x.Record
	switch {
	case outcome == routing.Answered:
		first := r.TimeToFirstToken
		if !first.Valid {
			first = r.Latency
		}
		routing.InProcess.Answered(a.target.Circuit, time.Duration(first.N)*time.Millisecond, r.Usage.Output.N)
	case a.empty:
		routing.InProcess.Limited(a.target.Circuit, time.Hour) // as long as targets are left alone
	case waits(failure):
		routing.InProcess.Limited(a.target.Circuit, failure.RetryAfter)
	}
}

// waits reports whether the provider refuses calls for a time.
func waits(e *plugins.Error) bool { return e.Status == http.StatusTooManyRequests || e.RetryAfter > 0 }

// sendCounted is send, which counts as a call under way at the target.
func (a *attempt) sendCounted(firstByte time.Duration) (routing.Outcome, *plugins.Error) {
	defer routing.InProcess.Begin(a.target.Circuit)()
	return a.send(firstByte)
}
