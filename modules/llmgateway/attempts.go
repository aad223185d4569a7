package llmgateway

import (
	"time"

	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/llmgateway/routing"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// tryTargets makes attempts until one has answered the client, or no other may
// follow. Each target is tried again as the policy allows, and then the next one.
func (c *call) tryTargets(targets []routing.Target) {
	var (
		deadline = time.Now().Add(c.h.policy.TryDuration)
		last     *attempt // the latest one that was sent: its failure is the answer unless another follows
		failures []apierror.Attempt
		failure  *plugins.Error
		outcome  routing.Outcome
	)
	breakers := c.h.breakers()
	targets = routing.Order(targets, breakers)
	for i, tries := 0, 1; i < len(targets); {
		target, final := targets[i], i == len(targets)-1
		a, err := c.prepare(target, len(failures)+1)
		if err != nil { // nothing was sent: another target may take what this one does not
			outcome, failure = routing.Failover, apierror.Of(err)
		} else {
			if last != nil {
				last.x.Supersede(last.end)
			}
			last = a
			outcome, failure = a.send(c.h.policy.FirstByte(c.streams(), final))
			if outcome == routing.Answered {
				breakers.Succeeded(target.Circuit())
				return
			}
			if outcome == routing.Retry || failure.Status >= 500 {
				breakers.Failed(target.Circuit())
			}
		}
		failures = append(failures, apierror.Attempt{Target: target.Name(), Status: failure.Status, Message: failure.Message})
		if outcome == routing.Abort {
			break
		}
		if pause, ok := c.h.policy.Pause(tries, failure.RetryAfter, deadline); ok && outcome == routing.Retry {
			tries++
			if !routing.Sleep(c.ctx, pause) {
				break
			}
			continue
		}
		if i, tries = i+1, 1; time.Now().After(deadline) {
			break
		}
	}
	if len(failures) == 1 && outcome == routing.Abort {
		failures = nil // there was no choice to tell of
	}
	switch {
	case last == nil && c.dialect.CountsTokens() && failure.Code == unsupportedEndpoint && !c.controls.Strict:
		c.answerEstimate(targets[0])
		return
	case last == nil:
		c.refuse(failure)
		return
	}
	last.answerFailure()
	c.writeError(last.failure, failures...)
}

// answerFailure makes the record of a failed attempt the record of the call.
func (a *attempt) answerFailure() {
	if a.call.ctx.Err() != nil { // between two attempts, perhaps
		a.end = storage.ClientAborted
	}
	a.commit(a.end)
	a.x.End(a.end)
}
