package llmgateway

import (
	"time"

	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// tryTargets makes attempts until one has answered the client, or no other may
// follow. Each target is tried again as the policy allows, and then the next one. It returns the
// alias of the target that answered, nil if none did, or if it has no alias.
func (c *call) tryTargets(targets []routing.Target) *routing.Alias {
	var (
		deadline = time.Now().Add(c.h.policy.TryDuration)
		last     *attempt // the latest one that was sent: its failure is the answer unless another follows
		failures []apierror.Attempt
		failure  *plugins.Error
		outcome  routing.Outcome
	)
	places := c.cache.places
	if places == nil {
		var err error
		if places, err = c.choose(targets); err != nil {
			c.refuse(err)
			return nil
		}
	}
	breakers := c.h.breakers()
	for i, tries := 0, 1; i < len(places); {
		target, final := places[i].Target, i == len(places)-1
		a, err := c.prepare(target, len(failures)+1)
		if err != nil { // nothing was sent: another target may take what this one does not
			outcome, failure = routing.Failover, apierror.Of(err)
		} else {
			if last != nil {
				last.x.Supersede(last.end)
			}
			last = a
			if places[i].State == routing.Warm {
				a.x.Equals = routing.Equals(places[i:])
			}
			outcome, failure = a.sendCounted(c.h.policy.FirstByte(c.input.streams(), final))
			a.observe(outcome, failure)
			if outcome != routing.Answered && c.ctx.Err() == nil && a.isFirst() {
				c.cache.lead.Withhold()
			}
			if outcome == routing.Answered {
				breakers.Succeeded(target.Circuit)
				if len(places) > 1 {
					c.affinity().tell(target, a.x.Record.Usage.Input)
				}
				return target.Alias
			}
			if outcome == routing.Retry || failure.Status >= 500 {
				breakers.Failed(target.Circuit)
			}
		}
		failures = append(failures, apierror.Attempt{Target: target.Name, Status: failure.Status, Message: failure.Message})
		if outcome == routing.Again {
			continue
		}
		if failure.Code == plugins.ContextExceeded && outcome == routing.Abort {
			// A larger model may take it, also one that has failed before: its failure passes.
			if larger := places[i].Larger(places); len(larger) > 0 {
				places, i, tries = larger, 0, 1
				continue
			}
		}
		if outcome == routing.Abort {
			break
		}
		atOnce := waits(failure) && !final && places[i+1].CanReplace(&places[i])
		if pause, ok := c.h.policy.Pause(tries, failure.RetryAfter, deadline); ok && outcome == routing.Retry && !atOnce {
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
	case c.dialect.CountsTokens() && failure.Code == unsupportedEndpoint && !c.controls.Strict:
		if last != nil {
			last.x.Supersede(last.end)
		}
		c.at(places[0].Target).answerEstimate()
		return nil
	case last == nil:
		c.refuse(failure)
		return nil
	}
	last.answerFailure()
	c.writeError(apierror.To(c.r, c.dialect, last.failure), failures...)
	return nil
}

// answerFailure makes the record of a failed attempt the record of the call.
func (a *attempt) answerFailure() {
	if a.call.ctx.Err() != nil { // between two attempts, perhaps
		a.end = storage.ClientAborted
	}
	a.x.Commit(a.end)
	a.x.End(a.end)
}
